//! `GET /decode/{id}`: what can this text be?

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Extensions, Response};

use crate::http::access::{Permit, permit_of};
use crate::http::answer::{ANSWER_LEN, MediaType, Problem, Slug, negotiate, no_store};
use crate::http::request::{Query, path_params, strict_query};
use crate::id::DecodeFilter;
use crate::service::{DecodeOutcome, Service};
use crate::wire::{DecodeAnswer, Style, ruler};

pub(in crate::http) const ROUTE: &str = "/decode/{*id}";
pub(in crate::http) const EMPTY_ROUTE: &str = "/decode/";

/// Every reading of the id. Never touches what is minted, and works while nothing can be.
///
/// # Errors
/// 404 `no-format-matches` with a reason for each format.
pub(in crate::http) async fn decode(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    // The list of formats: what to decode is the caller's, and may be no id at all.
    let answer = read(&service, &request).map_err(|problem| problem.or_example(|| "GET /formats".to_owned()));
    service.counters().count_decode(outcome_of(&answer));
    answer
}

fn read(service: &Service, request: &Request) -> Result<Response<Body>, Problem> {
    let media = negotiate(request.headers(), &[MediaType::Json, MediaType::Text])?;
    let [id] = path_params(ROUTE, request.uri())?;
    let query = strict_query(request.uri().query().unwrap_or_default(), &["format", "encoding"])?;
    let filter = decode_filter(&query, request.extensions())?;
    service.decoding().check(filter)?;
    let decoding = service.decoding().at(service.clock().now());
    let answer = decoding.decode(&id, filter);
    match media {
        _ if !answer.is_match() => Err(no_match(&answer)),
        MediaType::Text => Ok(no_store(media, ruler(&answer, Style::Plain))),
        _ => {
            let mut json = Vec::with_capacity(ANSWER_LEN);
            answer.write_json(&mut json);
            Ok(no_store(media, json))
        }
    }
}

/// What is to be tried, of what the caller may read.
///
/// # Errors
/// 403 `forbidden`.
pub(in crate::http) fn decode_filter<'a>(
    query: &'a Query<'_>,
    extensions: &'a Extensions,
) -> Result<DecodeFilter<'a>, Problem> {
    let (format, permit) = (query.get("format"), permit_of(extensions));
    if let (Some(format), Some(permit)) = (format, permit) {
        permit.check_format(format)?;
    }
    Ok(DecodeFilter { format, encoding: query.get("encoding"), among: permit.and_then(Permit::formats) })
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
    if !answer.shaped_like.is_empty() {
        let names = answer.shaped_like.join(" or ");
        detail.push_str(&format!("; it has the shape of one of {names}, with another salt or a wrong letter"));
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
            problem.with("unlikely", serde_json::from_slice::<serde_json::Value>(&unlikely).expect("written as JSON"))
        }
    };
    let problem = problem.with("did_you_mean", serde_json::Value::from(answer.did_you_mean.as_slice()));
    match answer.shaped_like.as_slice() {
        [] => problem,
        names => problem.with("shaped_like", serde_json::Value::from(names)),
    }
}
