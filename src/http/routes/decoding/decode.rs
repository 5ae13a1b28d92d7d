//! `GET /decode/{id}`: what can this text be? And its inverse, `GET /encode/{format}`: the id of given fields.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Extensions, Response};

use crate::http::access::{Permit, permit_of};
use crate::http::answer::{ANSWER_LEN, MediaType, Problem, Slug, negotiate, no_store};
use crate::http::request::{Query, path_params, strict_query};
use crate::id::{DecodeFilter, FieldsError, Format};
use crate::service::{DecodeOutcome, Service, ServiceError};
use crate::wire::{DecodeAnswer, Style, ruler};

pub(in crate::http) const ROUTE: &str = "/decode/{*id}";
pub(in crate::http) const EMPTY_ROUTE: &str = "/decode/";
pub(in crate::http) const ENCODE_ROUTE: &str = "/encode/{format}";

/// As long as what is told of an id is, in bytes, so that it does not move while it grows: a decimal number of ten formats takes 9 206.
const READING_LEN: usize = 12 * 1024;

/// Every reading of the id. Never touches what is minted, and works while nothing can be.
///
/// # Errors
/// 404 `no-format-matches` with a reason for each format.
pub(in crate::http) async fn decode(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    // The list of formats: what to decode is the caller's, and may be no id at all.
    let answer = read(&service, &request)
        .map_err(|problem| problem.or_example(|| "GET /formats".to_owned()));
    service.counters().count_decode(outcome_of(&answer));
    answer
}

fn read(service: &Service, request: &Request) -> Result<Response<Body>, Problem> {
    let media = negotiate(request.headers(), &[MediaType::Json, MediaType::Text])?;
    let [id] = path_params(ROUTE, request.uri())?;
    let query = strict_query(
        request.uri().query().unwrap_or_default(),
        &["format", "encoding", "lenient"],
    )?;
    let filter = decode_filter(&query, request.extensions())?;
    service.decoding().check(filter)?;
    let decoding = service.decoding().at(service.clock().now());
    let mut answer = decoding.decode(&id, filter);
    if let Some(permit) = permit_of(request.extensions()) {
        answer
            .numbers
            .retain(|reading| permit.reads_number(reading.series.as_ref()));
    }
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

/// What is to be tried, of what the caller may read.
///
/// # Errors
/// 403 `forbidden`, 422 `invalid-parameter`.
pub(in crate::http) fn decode_filter<'a>(
    query: &'a Query<'_>,
    extensions: &'a Extensions,
) -> Result<DecodeFilter<'a>, Problem> {
    let (format, permit) = (query.get("format"), permit_of(extensions));
    if let (Some(format), Some(permit)) = (format, permit) {
        permit.check_format(format)?;
    }
    let (encoding, among) = (query.get("encoding"), permit.and_then(Permit::formats));
    Ok(DecodeFilter {
        format,
        encoding,
        among,
        lenient: query.flag("lenient")?,
    })
}

/// What a decode request ended in.
pub(in crate::http) fn outcome_of(answer: &Result<Response<Body>, Problem>) -> DecodeOutcome {
    match answer.as_ref().err().map(Problem::slug) {
        None => DecodeOutcome::Matched,
        Some(Slug::NoFormatMatches) => DecodeOutcome::NoMatch,
        Some(_) => DecodeOutcome::Invalid,
    }
}

fn no_match(answer: &DecodeAnswer<'_>) -> Problem {
    let mut detail = format!("{:?} is not an id of any format that was tried", answer.id);
    if let Some(shape) = answer.shape() {
        detail.push_str(&format!("; {shape}"));
    }
    let mut unlikely = answer.unlikely();
    if let Some(reading) = unlikely.next() {
        let (name, bits) = (&reading.found.format().name, reading.evidence_bits());
        detail.push_str(&format!(
            ": as one of {name} it has {bits} bits of evidence, below {}; format={name} reads it",
            reading.found.evidence_bits_min()
        ));
    }
    let problem = Problem::new(Slug::NoFormatMatches, detail);
    let rejected: Vec<_> = answer.rejected().collect();
    let problem = match rejected.as_slice() {
        [only] => problem.reason(only.reason),
        _ => problem,
    };
    let rejected = serde_json::to_value(rejected).expect("strings always serialize");
    let problem = problem.with("rejected", rejected);
    let problem = match answer.unlikely().next() {
        None => problem,
        Some(_) => {
            let mut unlikely = Vec::new();
            answer.write_unlikely(&mut unlikely);
            problem.with(
                "unlikely",
                serde_json::from_slice::<serde_json::Value>(&unlikely).expect("written as JSON"),
            )
        }
    };
    let problem = problem.with(
        "did_you_mean",
        answer.did_you_mean().collect::<serde_json::Value>(),
    );
    match answer.shaped_like.as_slice() {
        [] => problem,
        names => problem.with("shaped_like", serde_json::Value::from(names)),
    }
}

/// The id whose fields are given, in every encoding. Mints nothing and reserves nothing, so it may be an id that was minted, or
/// one that will be.
///
/// # Errors
/// 404 `unknown-format`, 406, 422 for what is no field of the format, or no value of one.
pub(in crate::http) async fn encode(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    negotiate(request.headers(), &[MediaType::Json])?;
    let [name] = path_params(ENCODE_ROUTE, request.uri())?;
    let format = service
        .formats()
        .named(&name)
        .map_err(ServiceError::from)?
        .format();
    let query = request.uri().query().unwrap_or_default();
    let json = encoded(&service, format, query)
        .map_err(|problem| problem.or_example(|| encoding_that_works(format)))?;
    Ok(no_store(MediaType::Json, json))
}

fn encoded(service: &Service, format: &Format, query: &str) -> Result<Vec<u8>, Problem> {
    let query = strict_query(query, &format.field_names())?;
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
        let problem = Problem::new(Slug::InvalidParameter, error.to_string()).reason(error.name());
        match error.limit() {
            Some(limit) => problem.limit(limit),
            None => problem,
        }
    }
}

/// A request that works: the fields of the format's example.
fn encoding_that_works(format: &Format) -> String {
    let time = format
        .split(format.example())
        .ok()
        .and_then(|parts| parts.time?.to_exact_text());
    let time = time.map_or_else(String::new, |time| format!("?time={time}"));
    format!("GET /encode/{}{time}", format.name)
}
