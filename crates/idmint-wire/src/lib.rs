//! Internal to idmint: the types of the JSON API, which the server and its clients share.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod decode;
mod formats;
mod health;
mod inspection;
mod ledger;
mod mint;
mod numbers;
mod range;
mod report;
mod storage;

pub use decode::{
    AnswerParts, BriefReading, ColumnIds, DECODED_LEN_MAX, DecodeAnswer, EncodeAnswer,
    FieldReading, KnownDomains, Label, MatchReading, RejectedFormat, RowReading, Style, ruler,
};
pub use formats::{
    EncodingInfo, ExampleId, FieldInfo, FieldWidth, FormatBrief, FormatInfo, OddsInfo,
};
pub use health::Readiness;
pub use inspection::InspectAnswer;
pub use ledger::{
    AppendRequest, EVENT_LEN_MAX, EVENTS_MAX, EventDetail, LEDGER_BODY_LEN_MAX, LedgerCheck,
    LedgerIds, LedgerInfo, LedgerList,
};
pub use mint::{IdRow, MintAnswer, MintDetails, MintRequest, MintRows};
pub use numbers::{
    BlockAnswer, CloseAnswer, CloseInfo, NumberAnswer, NumberInfo, NumberList, ResumeAnswer,
    SeriesInfo, SeriesList, SkippedNumbers, VoidAnswer, VoidBody, VoidInfo,
};
pub use range::{RangeAnswer, SortedEncodings};
pub use report::{
    AnalysedObject, AnalysisRequest, ConjunctionInfo, ConjunctionInfos, PartialDetail,
    PartialReports, ReportDetail, ReportRequest,
};
pub use storage::{StorageInfo, StorageSql};
