//! What is asked for with reports: by the query, and by what the caller accepts.

use axum::http::request::Parts;

use crate::conjunction::NotedRule;
use crate::http::answer::{
    MediaType, Problem, Slug, media_type_of_body, negotiate, negotiate_minted,
};
use crate::http::request::{Query, encoding, refuse_count, strict_query};
use crate::id::Format;

/// What a body of reports can be.
pub(super) const BODY_TYPES: [MediaType; 4] = [
    MediaType::Json,
    MediaType::Text,
    MediaType::Xml,
    MediaType::TextXml,
];

/// What comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The ids.
    Ids,
    /// Each by its id or by why it gets none: a report that is wrong refuses none of the others.
    IdsOrProblems,
    /// The messages, with their ids in them.
    Messages,
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReportOrder {
    pub(super) wanted: Wanted,
    /// How ids are written, by its place in the format.
    pub(super) encoding: usize,
    /// What counts of the ids that reports came with.
    pub(super) noted_rule: NotedRule,
    /// The type of the answer.
    pub(super) media: MediaType,
}

impl ReportOrder {
    /// Reads the head of a request. `parameters`: what may stand in the query.
    ///
    /// # Errors
    /// A [`Problem`] that names the parameter or the header.
    pub(super) fn read(
        parts: &Parts,
        parameters: &'static [&'static str],
        format: &Format,
        has_body: bool,
    ) -> Result<ReportOrder, Problem> {
        let query = strict_query(parts.uri.query().unwrap_or_default(), parameters)?;
        refuse_count(&query, "report", format)?;
        let (wanted, encoding) = (wanted(&query)?, encoding(&query, format)?);
        // A message that comes back has the id that it got, so it cannot have got another one than stands in it.
        let noted_rule = NotedRule {
            keep: keeps_noted(&query)?,
            must_agree: wanted == Wanted::Messages,
        };
        let wanted = if is_partial(&query, wanted)? {
            Wanted::IdsOrProblems
        } else {
            wanted
        };
        let media = match wanted {
            Wanted::IdsOrProblems => negotiate(&parts.headers, &[MediaType::Json])?,
            Wanted::Ids => negotiate_minted(&parts.headers, format)?,
            Wanted::Messages => negotiate(
                &parts.headers,
                &[media_type_of_body(&parts.headers, !has_body, &BODY_TYPES)?],
            )?,
        };
        Ok(ReportOrder {
            wanted,
            encoding,
            noted_rule,
            media,
        })
    }
}

fn wanted(query: &Query<'_>) -> Result<Wanted, Problem> {
    match query.get("return") {
        None => Ok(Wanted::Ids),
        Some("cdm") => Ok(Wanted::Messages),
        Some(other) => {
            let detail = format!("return is {other:?}, it can only be cdm");
            Err(Problem::new(Slug::InvalidParameter, detail)
                .reason("return")
                .limit("cdm"))
        }
    }
}

/// Whether a report that is wrong is told beside the others, and refuses none of them.
fn is_partial(query: &Query<'_>, wanted: Wanted) -> Result<bool, Problem> {
    let refuse = |detail: String, limit| {
        Err(Problem::new(Slug::InvalidParameter, detail)
            .reason("partial")
            .limit(limit))
    };
    match query.get("partial") {
        None | Some("false") => Ok(false),
        Some("true") if wanted == Wanted::Ids => Ok(true),
        Some("true") => refuse(
            "partial does not go with return=cdm, which gives all messages back".to_owned(),
            "false",
        ),
        Some(other) => refuse(
            format!("partial is {other:?}, it can only be true or false"),
            "true or false",
        ),
    }
}

/// Whether reports keep the ids that they came with, however far their times have moved.
fn keeps_noted(query: &Query<'_>) -> Result<bool, Problem> {
    match query.get("noted") {
        None => Ok(false),
        Some("keep") => Ok(true),
        Some(other) => {
            let detail = format!("noted is {other:?}, it can only be keep");
            Err(Problem::new(Slug::InvalidParameter, detail)
                .reason("noted")
                .limit("keep"))
        }
    }
}
