//! `GET /formats`, `GET /formats/{format}` and its `/range`: describes formats, and returns the
//! range of ids for a time span.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::Uri;

use crate::access::{Permit, permit_of};
use crate::answer::{Answer, MediaType, Problem, Slug, json, negotiate, no_store};
use crate::request::{Query, no_query, page_limit, path_params, query_of};
use idmint_core::id::{Format, IdRange, RangeError};
use idmint_core::time::{UnixTime, UnixTimeError};
use idmint_service::Service;
use idmint_wire::RangeAnswer;

pub(crate) const ROUTE: &str = "/formats/{format}";
pub(crate) const RANGE_ROUTE: &str = "/formats/{format}/range";

const DAY: Duration = Duration::from_secs(86_400);

/// An example request that works for every caller who may list formats.
pub(crate) const LIST_EXAMPLE: &str = "GET /formats?detail=brief";

/// Lists formats, in the order in which decoding tries them. Without `after` and `limit`, lists all
/// formats.
///
/// # Errors
/// Returns 406 or 422 if the request is not acceptable or has an invalid parameter.
pub(crate) async fn list(State(service): State<Arc<Service>>, request: Request) -> Answer {
    negotiate(request.headers(), &[MediaType::Json])?;
    list_of(&service, &request).map_err(|problem| problem.or_example(|| LIST_EXAMPLE.to_owned()))
}

fn list_of(service: &Service, request: &Request) -> Answer {
    let query = query_of(request.uri(), &["detail", "after", "limit"])?;
    let is_brief = query.is_set_to("detail", "brief")?;
    let limit = page_limit(&query, usize::MAX)?;
    let permit = permit_of(request.extensions());
    let is_readable = |name: &str| permit.is_none_or(|permit| permit.has_format(name));
    let readable: Vec<_> = service
        .formats()
        .iter()
        .filter(|served| is_readable(&served.format().name))
        .collect();
    let first = match query.get("after") {
        None => 0,
        Some(after) => {
            let at = readable
                .iter()
                .position(|served| served.format().name == after);
            1 + at.ok_or_else(|| {
                let detail =
                    format!("after is {after:?}, which is not the name of a listed format");
                Problem::parameter("after", detail)
            })?
        }
    };
    let rest = &readable[first..];
    let page = &rest[..limit.min(rest.len())];
    let formats: Vec<_> = page
        .iter()
        .map(|served| match is_brief {
            true => service.brief_format_json(served),
            false => service.format_json(served),
        })
        .collect();
    // Without `after` and `limit` the list is complete and has no `next`, as in older versions of
    // the service, which had no pages.
    let next = match page.last().filter(|_| page.len() < rest.len()) {
        _ if query.get("after").is_none() && query.get("limit").is_none() => String::new(),
        None => ",\"next\":null".to_owned(),
        // A name needs no escaping: it has only lower-case letters, digits, `_` and `-`.
        Some(last) => format!(",\"next\":\"{}\"", last.format().name),
    };
    Ok(no_store(
        MediaType::Json,
        format!("{{\"formats\":[{}]{next}}}\n", formats.join(",")),
    ))
}

/// Describes one format.
///
/// # Errors
/// Returns 404 `unknown-format` if the format does not exist, and 406 or 422 if the request is not
/// acceptable or has parameters.
pub(crate) async fn one(State(service): State<Arc<Service>>, request: Request) -> Answer {
    negotiate(request.headers(), &[MediaType::Json])?;
    no_query(request.uri())?;
    let [name] = path_params(ROUTE, request.uri())?;
    let served = service.formats().named(&name)?;
    Ok(no_store(
        MediaType::Json,
        format!("{}\n", service.format_json(served)),
    ))
}

/// Returns the smallest and the greatest id of a time span, in every encoding whose texts sort by
/// time.
///
/// # Errors
/// Returns 404 `unknown-format` if the format does not exist. Returns 406 if the request is not
/// acceptable, and 422 if the span has no range of ids.
pub(crate) async fn range(State(service): State<Arc<Service>>, request: Request) -> Answer {
    negotiate(request.headers(), &[MediaType::Json])?;
    let [name] = path_params(RANGE_ROUTE, request.uri())?;
    let format = service.formats().named(&name)?.format();
    let found = range_of(format, request.uri());
    let example = || range_that_works(&service, format, permit_of(request.extensions()));
    let found = found.map_err(|problem| problem.or_example(example))?;
    Ok(json(&RangeAnswer::new(format, &found)))
}

fn range_of(format: &Format, uri: &Uri) -> Result<IdRange, Problem> {
    let query = query_of(uri, &["from", "to"])?.with_times(&["from", "to"]);
    let [from, to] = [instant(&query, "from")?, instant(&query, "to")?];
    format
        .range(from, to)
        .map_err(|error| no_range(format, &error))
}

fn instant(query: &Query<'_>, name: &'static str) -> Result<UnixTime, Problem> {
    let refuse = |detail: String| Problem::parameter(name, detail);
    let text = query
        .get(name)
        .ok_or_else(|| refuse(format!("{name} is missing: a range needs from and to")))?;
    text.parse()
        .map_err(|error: UnixTimeError| refuse(format!("{name}: {error}")))
}

fn no_range(format: &Format, error: &RangeError) -> Problem {
    let problem = Problem::new(Slug::InvalidParameter, format!("{}: {error}", format.name));
    match error {
        RangeError::NoTime => problem.reason("no_time"),
        RangeError::TimeNotLeading => problem.reason("time_not_leading"),
        RangeError::NotBefore { .. } => problem.reason("not_before"),
        RangeError::Outside { first, end, .. } => {
            let end = end.map_or_else(String::new, |end| format!(" to {end}"));
            problem
                .reason("outside")
                .limit(format!("from {first}{end}"))
        }
        RangeError::WithinOneTick { tick } => {
            problem.reason("within_one_tick").limit(tick.to_string())
        }
    }
}

/// Returns an example request that finds a range of ids. If this format has no ranges, the example
/// uses the first permitted format that has them.
fn range_that_works(service: &Service, format: &Format, permit: Option<&Permit>) -> String {
    let formats = service.formats().iter().map(|served| served.format());
    let formats =
        formats.filter(|format| permit.is_none_or(|permit| permit.has_format(&format.name)));
    let example = std::iter::once(format)
        .chain(formats)
        .find_map(|format: &Format| {
            let from = format.split(format.example()).ok()?.time?;
            let to = from.after(DAY);
            format.range(from, to).ok()?;
            Some(format!(
                "GET /formats/{}/range?from={}&to={}",
                format.name,
                from.to_exact_text()?,
                to.to_exact_text()?
            ))
        });
    example.unwrap_or_else(|| LIST_EXAMPLE.to_owned())
}
