//! How long an answer may be that is written whole.

use super::problem::{Problem, Slug};

/// No answer is longer, in bytes, unless it comes a line at a time, or has nothing but ids.
pub(in crate::http) const ANSWER_LEN_MAX: usize = 64 * 1024 * 1024;

/// Says of an answer that it would be longer; `instead`: what to ask for.
pub(in crate::http) fn too_long(slug: Slug, instead: &str) -> Problem {
    let detail = format!("the answer would be longer than {ANSWER_LEN_MAX} bytes: {instead}");
    Problem::new(slug, detail)
        .reason("answer_len")
        .limit(format!("{ANSWER_LEN_MAX} bytes"))
}
