//! `GET /decode/{id}` decodes a text. Its inverse, `GET /encode/{format}`, returns the id with the
//! given field values.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{Extensions, Uri};
use serde_json::{Value, json};

use super::formats::LIST_EXAMPLE;
use crate::access::{Permit, permit_of};
use crate::answer::{ANSWER_LEN, Answer, MediaType, Problem, Slug, negotiate, no_store};
use crate::request::{Query, path_params, query_of};
use idmint_core::id::{DecodeFilter, FieldsError, Format, Liberty};
use idmint_service::{DecodeOutcome, DecodingAt, Service};
use idmint_wire::{DecodeAnswer, Style, ruler};

pub(crate) const ROUTE: &str = "/decode/{*id}";
pub(crate) const EMPTY_ROUTE: &str = "/decode/";
pub(crate) const ENCODE_ROUTE: &str = "/encode/{format}";

/// The initial capacity of a result, in bytes, so that a result is not moved while it grows. The
/// result for a decimal number takes 9 206 bytes with ten formats.
const READING_LEN: usize = 12 * 1024;

/// Returns every reading of the text: the formats and encodings that it matches, and the series of
/// which it may be a number. If all matches are unlikely, they are left out unless the request
/// names a format or encoding. Uses no minter, so it works even while the service cannot mint.
///
/// # Errors
/// Returns 404 `no-format-matches`, with a reason for each format, if the text has no reading.
/// Returns another [`Problem`] if the format, the media type or a parameter is refused.
pub(crate) async fn decode(State(service): State<Arc<Service>>, request: Request) -> Answer {
    // By default, suggest a request that lists the formats, because the text may not be an id of
    // any format.
    let answer =
        read(&service, &request).map_err(|problem| problem.or_example(|| LIST_EXAMPLE.to_owned()));
    service.counters().count_decode(outcome_of(&answer));
    answer
}

fn read(service: &Service, request: &Request) -> Answer {
    let media = negotiate(request.headers(), &[MediaType::Json, MediaType::Text])?;
    let [id] = path_params(ROUTE, request.uri())?;
    let query = query_of(request.uri(), &["format", "encoding", "lenient"])?;
    let filter = decode_filter(&query, request.extensions())?;
    service.decoding().check(filter)?;
    let decoding = service.decoding().at(service.clock().now());
    let answer = readings(&decoding, &id, filter, permit_of(request.extensions()));
    match media {
        _ if !answer.is_match() => Err(no_match(&answer)),
        MediaType::Text => Ok(no_store(media, ruler(&answer, Style::Plain))),
        _ => {
            let mut json = Vec::with_capacity(READING_LEN);
            answer.write_json(&mut json);
            json.push(b'\n');
            Ok(no_store(media, json))
        }
    }
}

/// Returns the filter that limits decoding to the requested format and encoding, and to the formats
/// that the caller may read.
///
/// # Errors
/// Returns 403 `forbidden` if the caller may not read the format, and 422 `invalid-parameter` if a
/// parameter is invalid.
pub(crate) fn decode_filter<'a>(
    query: &'a Query<'_>,
    extensions: &'a Extensions,
) -> Result<DecodeFilter<'a>, Problem> {
    let (format, permit) = (query.get("format"), permit_of(extensions));
    if let (Some(format), Some(permit)) = (format, permit) {
        permit.check_format(format)?;
    }
    let (encoding, among) = (query.get("encoding"), permit.and_then(Permit::formats));
    let liberty = match query.flag("lenient")? {
        true => Liberty::Lenient,
        false => Liberty::Specified,
    };
    let filter = DecodeFilter {
        format,
        encoding,
        among,
        liberty,
    };
    Ok(filter.with_current_names())
}

/// Returns all readings of a text, which are the possible ways to decode it. Leaves out numbers of
/// series that the caller may not read.
pub(super) fn readings<'a>(
    decoding: &'a DecodingAt<'_>,
    text: &'a str,
    filter: DecodeFilter<'_>,
    permit: Option<&Permit>,
) -> DecodeAnswer<'a> {
    let mut answer = decoding.decode(text, filter);
    if let Some(permit) = permit {
        answer
            .numbers
            .retain(|reading| permit.reads_number(reading.series.as_ref()));
    }
    answer
}

/// Returns the outcome of a decode request, for its metric.
pub(crate) fn outcome_of(answer: &Answer) -> DecodeOutcome {
    match answer {
        Ok(_) => DecodeOutcome::Matched,
        Err(problem) if problem.slug() == Slug::NoFormatMatches => DecodeOutcome::NoMatch,
        Err(problem) if problem.status().is_server_error() => DecodeOutcome::Refused,
        Err(_) => DecodeOutcome::Invalid,
    }
}

fn no_match(answer: &DecodeAnswer<'_>) -> Problem {
    let mut detail = format!("{:?} is not an id of any format that was tried", answer.id);
    if let Some(shape) = answer.shape() {
        detail.push_str(&format!("; {shape}"));
    }
    if let Some(reading) = answer.unlikely().next() {
        let (name, bits) = (&reading.found.format().name, reading.evidence_bits());
        detail.push_str(&format!(
            "; read as {name}, the text has {bits} bits of evidence, but needs {}; use format={name} to read it \
             nevertheless",
            reading.found.evidence_bits_min()
        ));
    }
    let mut problem = Problem::new(Slug::NoFormatMatches, detail);
    let rejected: Vec<_> = answer.rejected().collect();
    if let [only] = rejected.as_slice() {
        problem = problem.reason(only.reason);
    }
    let rejected = serde_json::to_value(rejected).expect("strings always serialize");
    problem = problem.with("rejected", rejected);
    if answer.unlikely().next().is_some() {
        let mut unlikely = Vec::new();
        answer.write_unlikely(&mut unlikely);
        let unlikely = serde_json::from_slice::<Value>(&unlikely).expect("written as JSON");
        problem = problem.with("unlikely", unlikely);
    }
    problem = problem.with("did_you_mean", answer.did_you_mean().collect::<Value>());
    if !answer.notes.is_empty() {
        let notes = answer.notes.iter();
        let notes = notes.map(|note| json!({ "kind": note.kind.name(), "detail": note.detail }));
        problem = problem.with("notes", notes.collect::<Value>());
    }
    if !answer.shaped_like.is_empty() {
        let shapes = answer.shaped_like.iter().map(|shape| shape.name);
        problem = problem.with("shaped_like", shapes.collect::<Value>());
    }
    problem
}

/// Returns the id with these field values, in every encoding. Encoding neither mints nor reserves
/// the id, so it may have been minted before, or may be minted later.
///
/// # Errors
/// Returns 404 `unknown-format` if the format does not exist, and 406 if the request is not
/// acceptable. Returns 422 if a field does not exist or its value is invalid.
pub(crate) async fn encode(State(service): State<Arc<Service>>, request: Request) -> Answer {
    negotiate(request.headers(), &[MediaType::Json])?;
    let [name] = path_params(ENCODE_ROUTE, request.uri())?;
    let format = service.formats().named(&name)?.format();
    let json = encoded(&service, format, request.uri())
        .map_err(|problem| problem.or_example(|| encoding_that_works(format)))?;
    Ok(no_store(MediaType::Json, json))
}

fn encoded(service: &Service, format: &Format, uri: &Uri) -> Result<Vec<u8>, Problem> {
    let names = format.field_names();
    let query = query_of(uri, &names)?.with_times(&["time"]);
    let made = format.id_of_fields(&query.pairs().collect::<Vec<_>>())?;
    let mut json = Vec::with_capacity(ANSWER_LEN);
    service
        .decoding()
        .at(service.clock().now())
        .encoded(format, &made)
        .write_json(&mut json);
    json.push(b'\n');
    Ok(json)
}

impl From<FieldsError> for Problem {
    fn from(error: FieldsError) -> Problem {
        let problem = Problem::parameter(error.name(), error.to_string());
        match error.limit() {
            Some(limit) => problem.limit(limit),
            None => problem,
        }
    }
}

/// Returns a working request to encode an id. If the format's ids have a time, the request uses the
/// time of the format's example id.
fn encoding_that_works(format: &Format) -> String {
    let time = format
        .split(format.example())
        .ok()
        .and_then(|parts| parts.time?.to_exact_text());
    let time = time.map_or_else(String::new, |time| format!("?time={time}"));
    format!("GET /encode/{}{time}", format.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use idmint_service::Shed;

    #[test]
    fn a_decode_that_the_service_refuses_is_not_counted_as_invalid() {
        let outcome = |problem: Problem| outcome_of(&Err(problem));
        assert_eq!(outcome(Shed::Bulk.into()), DecodeOutcome::Refused);
        for (slug, counted) in [
            (Slug::NoFormatMatches, DecodeOutcome::NoMatch),
            (Slug::InvalidParameter, DecodeOutcome::Invalid),
            (Slug::RequestTimeout, DecodeOutcome::Invalid),
        ] {
            assert_eq!(outcome(Problem::new(slug, "detail")), counted);
        }
    }
}
