//! `GET /decode/{id}`: what can this text be?

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;

use super::mint::unknown_format;
use crate::http::answer::{MediaType, Problem, Slug, choose, unkept};
use crate::http::request::{percent_decoded, strict_query};
use crate::id::DecodeFilter;
use crate::service::Service;
use crate::wire::{DecodeAnswer, Style, ruler};

/// As long as most answers are, in bytes, so that they do not move while they grow.
const ANSWER_LEN: usize = 8 * 1024;

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
    service.metrics.decoded(answer.as_ref().err().map(Problem::slug));
    answer
}

fn read(service: &Service, request: &Request) -> Result<Response<Body>, Problem> {
    let media = choose(request.headers(), &[MediaType::Json, MediaType::Text])?;
    let id = percent_decoded(request.uri().path().strip_prefix("/decode/").unwrap_or_default())?;
    let query = strict_query(request.uri().query().unwrap_or_default(), &["format", "encoding"])?;
    let filter = DecodeFilter { format: query.get("format"), encoding: query.get("encoding") };
    check(service, filter)?;
    let decoder = service.decoder.at(service.mint.clock().now());
    let answer = DecodeAnswer::new(&id, &decoder, filter, &service.answer_parts);
    match media {
        _ if !answer.is_match() => Err(no_match(&answer)),
        MediaType::Text => Ok(unkept(media, ruler(&answer, Style::Plain))),
        _ => {
            let mut json = Vec::with_capacity(ANSWER_LEN);
            answer.write_json(&mut json);
            Ok(unkept(media, json))
        }
    }
}

/// That there are formats and spellings of these names.
///
/// # Errors
/// 404 `unknown-format`, 422 for an encoding that none of the formats has.
pub(in crate::http) fn check(service: &Service, filter: DecodeFilter<'_>) -> Result<(), Problem> {
    let mut formats = service.decoder.formats().iter();
    let tried = match filter.format {
        None => formats.as_slice(),
        Some(name) => match formats.position(|format| format.name == name) {
            None => return Err(unknown_format(service, name)),
            Some(at) => &service.decoder.formats()[at..=at],
        },
    };
    let Some(encoding) = filter.encoding else { return Ok(()) };
    if tried.iter().any(|format| format.encoding(encoding).is_some()) {
        return Ok(());
    }
    let detail = format!("no format that is tried has an encoding {encoding:?}; /formats lists them");
    Err(Problem::new(Slug::InvalidParameter, detail).reason("encoding"))
}

fn no_match(answer: &DecodeAnswer<'_>) -> Problem {
    let problem =
        Problem::new(Slug::NoFormatMatches, format!("{:?} is not an id of any format that was tried", answer.id));
    let rejected: Vec<_> = answer.rejected().collect();
    let problem = match rejected.as_slice() {
        [only] => problem.reason(only.reason),
        _ => problem,
    };
    let rejected = serde_json::to_value(rejected).expect("strings always serialize");
    problem.with("rejected", rejected).with("did_you_mean", serde_json::Value::from(answer.did_you_mean.as_slice()))
}

/// An answer in JSON that is not to be kept.
pub(in crate::http) fn json(answer: &impl serde::Serialize) -> Response<Body> {
    let mut bytes = Vec::with_capacity(ANSWER_LEN);
    serde_json::to_writer(&mut bytes, answer).expect("answers are strings, numbers and lists of them");
    unkept(MediaType::Json, bytes)
}
