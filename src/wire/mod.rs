//! The shapes of the API, written by the server and read by clients, and the messages of others that it reads.

mod answer_parts;
mod brief;
mod decode;
mod formats;
mod health;
mod json_text;
mod ledger;
mod ledger_check;
mod mint;
mod range;
mod report;
mod ruler;
mod storage;

pub use answer_parts::AnswerParts;
pub use brief::BriefReading;
pub use decode::{DECODED_LEN_MAX, DecodeAnswer, FieldReading, KnownDomains, MatchReading, RejectedFormat};
pub use formats::{EncodingInfo, ExampleId, FieldInfo, FieldWidth, FormatInfo, FormatList, OddsInfo};
pub use health::Readiness;
pub use ledger::{AppendRequest, EVENT_LEN_MAX, EventDetail, LEDGER_BODY_LEN_MAX, LedgerIds, LedgerInfo, LedgerList};
pub use ledger_check::{LedgerCheck, LedgerFault};
pub use mint::{MintAnswer, MintDetails, MintRequest};
pub use range::{RangeAnswer, SortedSpellings};
pub use report::{ReportDetail, ReportRequest};
pub use ruler::{Style, ruler};
pub use storage::{StorageInfo, StorageSql};
