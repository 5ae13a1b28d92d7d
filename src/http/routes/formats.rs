//! `GET /formats`, `GET /formats/{format}` and its range: what is minted and read here, and which ids a time span has.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;

use crate::http::access::{Permit, permit_of};
use crate::http::answer::{MediaType, Problem, Slug, json, negotiate, no_store};
use crate::http::request::{Query, no_query, path_params, strict_query};
use crate::id::{Format, IdRange, RangeError};
use crate::service::{Service, ServiceError};
use crate::time::{UnixTime, UnixTimeError};
use crate::wire::RangeAnswer;

pub(in crate::http) const ROUTE: &str = "/formats/{format}";
pub(in crate::http) const RANGE_ROUTE: &str = "/formats/{format}/range";

const DAY: Duration = Duration::from_secs(86_400);

/// All formats, in the order in which decoding tries them.
///
/// # Errors
/// 406, 422.
pub(in crate::http) async fn list(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    negotiate(request.headers(), &[MediaType::Json])?;
    no_query(request.uri())?;
    let permit = permit_of(request.extensions());
    let is_readable = |name: &str| permit.is_none_or(|permit| permit.has_format(name));
    let readable = service
        .formats()
        .iter()
        .filter(|served| is_readable(&served.format().name));
    let formats: Vec<_> = readable.map(|served| service.format_json(served)).collect();
    // As `FormatList` has it.
    Ok(no_store(
        MediaType::Json,
        format!("{{\"formats\":[{}]}}\n", formats.join(",")),
    ))
}

/// One format.
///
/// # Errors
/// 404 `unknown-format`, 406, 422.
pub(in crate::http) async fn one(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    negotiate(request.headers(), &[MediaType::Json])?;
    no_query(request.uri())?;
    let [name] = path_params(ROUTE, request.uri())?;
    let served = service.formats().named(&name).map_err(ServiceError::from)?;
    Ok(no_store(
        MediaType::Json,
        format!("{}\n", service.format_json(served)),
    ))
}

/// The smallest and the greatest id of a time span, in everything that sorts.
///
/// # Errors
/// 404 `unknown-format`, 406, 422 for a span that has no range of ids.
pub(in crate::http) async fn range(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    negotiate(request.headers(), &[MediaType::Json])?;
    let [name] = path_params(RANGE_ROUTE, request.uri())?;
    let format = service
        .formats()
        .named(&name)
        .map_err(ServiceError::from)?
        .format();
    let found = range_of(format, request.uri().query().unwrap_or_default());
    let example = || range_that_works(&service, format, permit_of(request.extensions()));
    let found = found.map_err(|problem| problem.or_example(example))?;
    Ok(json(&RangeAnswer::new(format, &found)))
}

fn range_of(format: &Format, query: &str) -> Result<IdRange, Problem> {
    let query = strict_query(query, &["from", "to"])?;
    let [from, to] = [instant(&query, "from")?, instant(&query, "to")?];
    format
        .range(from, to)
        .map_err(|error| no_range(format, &error))
}

fn instant(query: &Query<'_>, name: &'static str) -> Result<UnixTime, Problem> {
    let refuse = |detail: String| Problem::new(Slug::InvalidParameter, detail).reason(name);
    let text = query
        .get(name)
        .ok_or_else(|| refuse(format!("{name} is missing: a range has a from and a to")))?;
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

/// A request for a range that can be answered: of this format, or of the first of the permit that has ranges.
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
    example.unwrap_or_else(|| "GET /formats".to_owned())
}
