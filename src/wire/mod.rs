//! The JSON of the API: the shapes of requests and answers, which server and clients share.

mod decode;
mod formats;
mod health;
mod inspection;
mod ledger;
mod ledger_check;
mod mint;
mod numbers;
mod range;
mod report;
mod storage;

pub use decode::{
    AnswerParts, BriefReading, DECODED_LEN_MAX, DecodeAnswer, EncodeAnswer, FieldReading,
    KnownDomains, Label, MatchReading, RejectedFormat, Style, ruler,
};
pub use formats::{
    EncodingInfo, ExampleId, FieldInfo, FieldWidth, FormatInfo, FormatList, OddsInfo,
};
pub use health::Readiness;
pub use inspection::InspectAnswer;
pub use ledger::{
    AppendRequest, EVENT_LEN_MAX, EVENTS_MAX, EventDetail, LEDGER_BODY_LEN_MAX, LedgerIds,
    LedgerInfo, LedgerList,
};
pub use ledger_check::{LedgerCheck, LedgerFault};
pub use mint::{IdRow, MintAnswer, MintDetails, MintRequest, MintRows};
pub use numbers::{
    BlockAnswer, NumberAnswer, NumberInfo, NumberList, SeriesInfo, SeriesList, VoidAnswer,
    VoidBody, VoidInfo,
};
pub use range::{RangeAnswer, SortedEncodings};
pub use report::{
    AnalysedObject, AnalysisRequest, ConjunctionInfo, ConjunctionInfos, PartialDetail,
    PartialReports, ReportDetail, ReportRequest,
};
pub use storage::{StorageInfo, StorageSql};
