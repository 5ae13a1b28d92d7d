//! Numbers without gaps: requests and answers. Numbers are texts, as ids are: JSON has none that large.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The answer of `POST /numbers/{series}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberAnswer {
    /// The series.
    pub series: String,
    /// The number, or the first of several.
    pub number: String,
    /// That number as it is written.
    pub text: String,
    /// How many there are, one after the other; absent for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Each of them as it is written; absent for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub texts: Option<Vec<String>>,
}

/// The answer of `POST /numbers/{series}` where the series is one of blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockAnswer {
    /// The series.
    pub series: String,
    /// The first number.
    pub first: String,
    /// How many there are, one after the other.
    pub count: u32,
}

/// The body of `POST /numbers/{series}/{n}/void`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VoidBody<'a> {
    /// Why.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
}

/// The answer to that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoidAnswer {
    /// The series.
    pub series: String,
    /// The number.
    pub number: String,
    /// As it is written.
    pub text: String,
    /// What is known of it as void.
    pub void: VoidInfo,
}

/// A number that is void.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoidInfo {
    /// Why.
    pub reason: String,
    /// When it was made void.
    pub time: String,
    /// Who asked; `None` if that was not known.
    pub by: Option<String>,
}

/// One number as an auditor sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberInfo {
    /// The number.
    pub number: String,
    /// As it is written.
    pub text: String,
    /// When it was given.
    pub time: String,
    /// The digest of the key that it was given to, 32 hexadecimal digits.
    pub key: String,
    /// Who asked; `None` if that was not known.
    pub by: Option<String>,
    /// What is known of it as void; `None` if it is not.
    pub void: Option<VoidInfo>,
}

/// Some numbers of a series, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberList {
    /// The series.
    pub series: String,
    /// Its numbers.
    pub numbers: Vec<NumberInfo>,
    /// What `after` must be to get the next ones; `None` if these were the last.
    pub next: Option<String>,
}

/// One series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesInfo {
    /// Its name.
    pub series: String,
    /// Its first number.
    pub first: String,
    /// Its last one.
    pub last: String,
    /// When that was given.
    pub updated: String,
}

/// Some series, in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesList {
    /// The series.
    pub series: Vec<SeriesInfo>,
    /// What `after` must be to get the next ones; `None` if these were the last.
    pub next: Option<String>,
}
