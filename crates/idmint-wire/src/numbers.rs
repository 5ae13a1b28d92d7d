//! Requests and responses about series of numbers, such as invoice numbers. Numbers are sent as
//! strings, because many programs cannot read large JSON numbers exactly.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The response of `POST /numbers/{series}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberAnswer {
    /// The series.
    pub series: String,
    /// The number that was issued, or the first one if several numbers were requested.
    pub number: String,
    /// The text of `number`, written by the template of the series.
    pub text: String,
    /// The number of consecutive numbers that were issued. Absent if the request was for a single
    /// number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The texts of all issued numbers. Absent if the request was for a single number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub texts: Option<Vec<String>>,
}

/// The response of `POST /numbers/{series}` if the series has the kind `blocks`. The nodes reserve
/// the numbers of such a series in blocks, so it may have gaps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockAnswer {
    /// The series.
    pub series: String,
    /// The first of the numbers that were issued.
    pub first: String,
    /// The number of consecutive numbers that were issued.
    pub count: u32,
}

/// The body of a request to `POST /numbers/{series}/{n}/void`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VoidBody<'a> {
    /// The reason for voiding the number.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
}

/// The response of `POST /numbers/{series}/{n}/void`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoidAnswer {
    /// The series.
    pub series: String,
    /// The number.
    pub number: String,
    /// The text of the number, written by the template of the series, such as
    /// `INV-acme-2026-00003`.
    pub text: String,
    /// The reason, the time and the caller of the request to void the number.
    pub void: VoidInfo,
}

/// The response of `POST /numbers/{series}/close`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloseAnswer {
    /// The series.
    pub series: String,
    /// The last number of the series, or null if the series was closed before its first number was
    /// issued.
    pub last: Option<String>,
    /// The time of the closing, and the caller.
    pub closed: CloseInfo,
}

/// The time at which a series was closed, and the name of the caller that closed the series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloseInfo {
    /// The time at which the series was closed.
    pub time: String,
    /// The name of the caller, or null if it is unknown.
    pub by: Option<String>,
}

/// The response of `POST /numbers/{series}/resume`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeAnswer {
    /// The name of the resumed series, or `*` if the request resumed all series that had stopped
    /// issuing numbers after a restore from a backup.
    pub series: String,
    /// The number that the series issues next, or null if the request resumed all series at once.
    pub next: Option<String>,
    /// The skipped numbers, which are now void, or null if there are none.
    pub skipped: Option<SkippedNumbers>,
}

/// The numbers that were skipped when a series was resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedNumbers {
    /// The first skipped number.
    pub first: String,
    /// The last skipped number.
    pub last: String,
}

/// The reason why a number was voided, with the time and the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoidInfo {
    /// The reason for voiding the number.
    pub reason: String,
    /// The time at which the number was voided.
    pub time: String,
    /// The name of the caller, or null if it is unknown.
    pub by: Option<String>,
}

/// A number of a series, with the data that an audit of the series needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberInfo {
    /// The number. In a series of the kind `blocks`, the first number of a block, which a node
    /// reserved as a whole.
    pub number: String,
    /// The last number of the block. Absent unless the series has the kind `blocks`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// The text of the number, written by the template of the series, such as
    /// `INV-acme-2026-00003`.
    pub text: String,
    /// The time at which the number was issued.
    pub time: String,
    /// The digest of the idempotency key of the request that got the number, as 32 hexadecimal
    /// digits.
    pub key: String,
    /// The name of the caller, or null if it is unknown.
    pub by: Option<String>,
    /// The reason why the number was voided, with the time and the caller. Null if the number is
    /// not void.
    pub void: Option<VoidInfo>,
}

/// One page of the numbers in a series, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberList {
    /// The series.
    pub series: String,
    /// The time at which the series was closed, and the caller that closed it. Absent if the series
    /// is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<CloseInfo>,
    /// The numbers of this page.
    pub numbers: Vec<NumberInfo>,
    /// The value of `after` that requests the next page, or null on the last page.
    pub next: Option<String>,
}

/// A series, with the first and the last number that it has issued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesInfo {
    /// The name of the series.
    pub series: String,
    /// The first number that the series has issued, or 1 if the series was closed before its first
    /// number was issued.
    pub first: String,
    /// The last number that the series has issued, or 0 if the series was closed before its first
    /// number was issued.
    pub last: String,
    /// The time at which the last number was issued, or at which the series was closed if it has no
    /// number.
    pub updated: String,
    /// The time at which the series was closed, and the caller that closed it. Absent if the series
    /// is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<CloseInfo>,
}

/// One page of the list of series, in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesList {
    /// The series of this page.
    pub series: Vec<SeriesInfo>,
    /// The value of `after` that requests the next page, or null on the last page.
    pub next: Option<String>,
}
