//! `POST /ids/{format}`: mint.

use std::num::NonZeroU32;
use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Response, Uri, header};

use super::{appends, reports};
use crate::http::answer::{MediaType, Problem, Slug, Spelling, body, choose, media_type_of_body};
use crate::http::request::{Object, Query, percent_decoded, read_body, strict_json, strict_query};
use crate::id::{DomainHash, FieldKind, Format, Rule};
use crate::minting::{Order, Refusal};
use crate::service::{Service, Soon};
use crate::wire::MintRequest;

/// The longest body of a mint request, in bytes.
const BODY_LEN_MAX: usize = 16 * 1024;

const IDMINT_COUNT: HeaderName = HeaderName::from_static("idmint-count");
const IDMINT_WIDTH: HeaderName = HeaderName::from_static("idmint-width");

/// What a mint answer can be.
pub(in crate::http) const MEDIA_TYPES: [MediaType; 4] =
    [MediaType::Json, MediaType::Text, MediaType::Ndjson, MediaType::OctetStream];

/// The path of this route.
pub(in crate::http) const ROUTE: &str = "/ids/{format}";

/// What a path that matches [`ROUTE`] has for `format`, still percent-encoded; `None` for any other path.
pub(in crate::http) fn format_name(uri: &Uri) -> Option<&str> {
    uri.path().strip_prefix("/ids/").filter(|name| !name.is_empty() && !name.contains('/'))
}

/// [`mint`], for the table of routes.
pub(in crate::http) async fn route(State(service): State<Arc<Service>>, request: Request) -> Answer {
    mint(&service, request).await
}

type Answer = Result<Response<Body>, Problem>;

/// Mints as many ids as asked for, all of them or none.
///
/// # Errors
/// A [`Problem`]: nothing was minted.
pub(in crate::http) fn mint(service: &Arc<Service>, request: Request) -> Soon<Answer> {
    let (position, format) = match format_asked_for(service, request.uri()) {
        Ok(found) => found,
        Err(problem) => return Soon::now(Err(problem)),
    };
    match format.rule {
        Rule::Grouped => {
            let (service, format) = (Arc::clone(service), Arc::clone(format));
            Soon::later(async move {
                let answer = reports::mint_reports(&service, position, &format, request).await;
                counted(&service, position, answer, || reports::example(&service, position, &format))
            })
        }
        Rule::Chained => {
            let (service, format) = (Arc::clone(service), Arc::clone(format));
            Soon::later(async move {
                let answer = appends::append_events(&service, position, &format, request).await;
                counted(&service, position, answer, || appends::example(&service, &format))
            })
        }
        Rule::Sequenced | Rule::Random | Rule::DecodeOnly => mint_by_number(service, position, request),
    }
}

fn format_asked_for<'a>(service: &'a Service, uri: &Uri) -> Result<(usize, &'a Arc<Format>), Problem> {
    let name = percent_decoded(format_name(uri).unwrap_or_default())?;
    service.mint.format(&name).ok_or_else(|| unknown_format(service, &name))
}

/// An answer, counted for its format if it is a refusal, and then with a request that works.
fn counted(service: &Service, position: usize, answer: Answer, example: impl FnOnce() -> String) -> Answer {
    answer.map_err(|problem| {
        let stats = service.mint.stats(position);
        if problem.status().is_client_error() {
            stats.count_invalid()
        } else {
            stats.count_refused()
        }
        problem.or_example(example)
    })
}

fn mint_by_number(service: &Arc<Service>, position: usize, request: Request) -> Soon<Answer> {
    let (parts, request_body) = request.into_parts();
    if request_body.is_end_stream() {
        return mint_ask(service, position, &parts, &[]);
    }
    let service = Arc::clone(service);
    Soon::later(async move {
        match read_body(request_body, BODY_LEN_MAX, service.limits.body_timeout).await {
            Ok(request_body) => mint_ask(&service, position, &parts, &request_body).await,
            Err(problem) => refused(&service, position, problem, None),
        }
    })
}

fn mint_ask(service: &Arc<Service>, position: usize, parts: &Parts, request_body: &[u8]) -> Soon<Answer> {
    let Ask { order, media, encoding, label } =
        match Ask::read(service, service.mint.format_at(position), parts, request_body) {
            Ok(ask) => ask,
            Err(problem) => return Soon::now(refused(service, position, problem, None)),
        };
    let of_service = Arc::clone(service);
    service.mint(position, &order).map(move |ids| match ids {
        Ok(ids) => {
            let format = of_service.mint.format_at(position);
            let spelling = Spelling::new(media, format, encoding, order.count(), label);
            Ok(answer(media, format, order.count(), body(spelling, ids)))
        }
        Err(refusal) => {
            let most = if let Refusal::TooMany { most, .. } = refusal { Some(most) } else { None };
            refused(&of_service, position, refusal.into(), most)
        }
    })
}

/// A refusal of ids by number, with a request for so many that works.
fn refused(service: &Service, position: usize, problem: Problem, count: Option<u64>) -> Answer {
    counted(service, position, Err(problem), || example(service, service.mint.format_at(position), count))
}

/// What a request for so many ids asks for.
struct Ask {
    order: Order,
    media: MediaType,
    /// The position of the spelling.
    encoding: usize,
    /// What is to be said about the ids.
    label: Option<&'static str>,
}

impl Ask {
    fn read(service: &Service, format: &Format, parts: &Parts, request_body: &[u8]) -> Result<Ask, Problem> {
        let media = choose(&parts.headers, &MEDIA_TYPES)?;
        let query = strict_query(parts.uri.query().unwrap_or_default(), &["count", "encoding", "type", "domain"])?;
        let asked = if request_body.is_empty() {
            MintRequest::default()
        } else {
            media_type_of_body(&parts.headers, &[MediaType::Json])?;
            strict_json::<Object<MintRequest>>(request_body, Slug::InvalidParameter)?.0
        };
        let count = count(&query, &asked, service.limits.batch_max)?;
        let encoding = encoding(&query, format)?;
        let (order, label) = order(service, &query, format, count)?;
        Ok(Ask { order, media, encoding, label })
    }
}

/// An answer of `count` ids.
pub(in crate::http) fn answer(media: MediaType, format: &Format, count: u64, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    // With room for the request id, so that it is allocated once.
    headers.reserve(5);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media.content_type()));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Nearly every answer has one id, and a constant costs nothing.
    headers.insert(IDMINT_COUNT, if count == 1 { HeaderValue::from_static("1") } else { HeaderValue::from(count) });
    if media == MediaType::OctetStream {
        headers.insert(IDMINT_WIDTH, HeaderValue::from(format.byte_width()));
    }
    response
}

/// A mint request that works: of this format, or of the first that is minted where this one is only read.
fn example(service: &Service, format: &Format, count: Option<u64>) -> String {
    let is_minted = |format: &&Format| format.rule.is_counted();
    let minted = service.mint.formats().map(|(format, ..)| &**format).find(is_minted);
    let format = Some(format).filter(is_minted).or(minted).unwrap_or(format);
    let types = format.variants.iter().find_map(|variant| variant.name.as_deref());
    let of_type = types.filter(|_| service.siq.default_type.is_none()).map(|name| format!("type={name}"));
    let count = count.map(|count| format!("count={count}"));
    let query: Vec<_> = of_type.into_iter().chain(count).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("POST /ids/{}{mark}{}", format.name, query.join("&"))
}

/// No format has this name.
pub(in crate::http) fn unknown_format(service: &Service, name: &str) -> Problem {
    let names: Vec<_> = service.mint.formats().map(|(format, ..)| format.name.as_str()).collect();
    let known = names.join(", ");
    Problem::new(Slug::UnknownFormat, format!("format {name:?} is not one of {known}")).example("GET /formats")
}

fn count(query: &Query<'_>, asked: &MintRequest, batch_max: u32) -> Result<NonZeroU32, Problem> {
    let refuse = |given: &str| {
        Problem::new(
            Slug::InvalidParameter,
            format!("count is {given}, it must be a whole number from 1 to {batch_max}"),
        )
        .reason("count")
        .limit(batch_max.to_string())
    };
    let given = match (query.get("count"), asked.count) {
        (Some(_), Some(_)) => {
            let detail = "count is given twice, in the address and in the body: give it once";
            return Err(Problem::new(Slug::InvalidParameter, detail).reason("repeated_parameter"));
        }
        (None, None) => return Ok(NonZeroU32::MIN),
        (None, Some(count)) => count.to_string(),
        (Some(count), None) => count.to_owned(),
    };
    let is_plain = !given.is_empty() && given.bytes().all(|byte| byte.is_ascii_digit());
    let count = given.parse::<NonZeroU32>().ok().filter(|count| is_plain && count.get() <= batch_max);
    count.ok_or_else(|| refuse(if given.is_empty() { "empty" } else { &given }))
}

/// What ids by number are asked with means nothing where each is minted from one `item`.
pub(in crate::http) fn refuse_parameters(query: &Query<'_>, item: &str, format: &Format) -> Result<(), Problem> {
    for name in ["count", "type", "domain"] {
        if query.get(name).is_some() {
            let detail =
                format!("{name} does not go with {item}s: {} mints one id for each {item} in the body", format.name);
            return Err(Problem::new(Slug::InvalidParameter, detail).reason(name));
        }
    }
    Ok(())
}

/// The position of the spelling that is asked for.
pub(in crate::http) fn encoding(query: &Query<'_>, format: &Format) -> Result<usize, Problem> {
    let Some(name) = query.get("encoding") else { return Ok(0) };
    format.encodings.iter().position(|encoding| encoding.name() == name).ok_or_else(|| {
        let names: Vec<_> = format.encodings.iter().map(|encoding| encoding.name()).collect();
        Problem::new(Slug::InvalidParameter, format!("encoding {name:?} is not one of {}", names.join(", ")))
            .reason("encoding")
    })
}

/// The order, and what is to be said about its ids.
fn order(
    service: &Service,
    query: &Query<'_>,
    format: &Format,
    count: NonZeroU32,
) -> Result<(Order, Option<&'static str>), Problem> {
    let default_type = service.siq.default_type.as_deref().filter(|_| format.has_types());
    let order = Order::new(format, count, query.get("type").or(default_type))?;
    let has_domain = format.variants[0].layout.field_of(FieldKind::Object).is_some();
    let domain = match (query.get("domain"), has_domain) {
        (None, false) => return Ok((order, None)),
        (Some(given), false) => {
            let detail = format!("{} has no domains, domain {given:?} means nothing to it", format.name);
            return Err(Problem::new(Slug::InvalidParameter, detail).reason("domain"));
        }
        (None, true) => service.siq.default_domain.unwrap_or(DomainHash::DEVELOPMENT),
        (Some(given), true) => *service.siq.domains.get(given).ok_or_else(|| {
            let detail = format!("domain {given:?} is not configured (siq.domains)");
            Problem::new(Slug::InvalidParameter, detail).reason("domain")
        })?,
    };
    let label = (domain == DomainHash::DEVELOPMENT).then_some("development");
    Ok((order.for_domain(domain), label))
}
