//! `POST /ids/{format}`: mints ids.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::Uri;
use axum::http::request::Parts;

use super::appends;
use super::reports;
use crate::access::{Permit, permit_of};
use crate::answer::{
    Admitted, Answer, AnswerBody, IdEncoder, MediaType, Problem, Slug, media_type_of_body, minted,
    negotiate_minted,
};
use crate::request::{
    Object, Query, bulk_of, count, encoding, encoding_named, owner_of, percent_decode, prefix,
    query_of, read_body, strict_json,
};
use idmint_core::id::{DomainHash, FieldKind, Format, FormatAlias, Prefix};
use idmint_core::minting::{BatchRequest, Minter, Refusal};
use idmint_service::{IdSource, MaybeReady, ServedFormat, Service, ServiceError};
use idmint_wire::MintRequest;

/// The maximum number of ids in a request that counts as short work. A larger request may need a
/// permit, with which callers share the cores fairly.
const IDS_AT_ONCE_MAX: u64 = 1024;

/// The maximum length, in bytes, of a response for which no memory is reserved in advance. A
/// response with at most `SHORT_COUNT_MAX` ids never needs a reservation.
const SHORT_LEN_MAX: usize = 4 * 1024;
const SHORT_COUNT_MAX: u64 = 16;

/// The estimated time per id, in nanoseconds, to mint, write and send many ids.
const NANOS_FOR_AN_ID: u64 = 20;

/// The maximum length of the body of a mint request, in bytes.
const BODY_LEN_MAX: usize = 16 * 1024;

/// The path of this route.
pub(crate) const ROUTE: &str = "/ids/{format}";

/// Returns the parameter `{format}` of a path of [`ROUTE`], still percent-encoded. Returns `None`
/// for any other path.
///
/// Like `path_params` for this route, but faster, because it has no loops.
#[inline]
pub(crate) fn format_name(path: &str) -> Option<&str> {
    const PREFIX: &str = ROUTE.split_at(ROUTE.len() - "{format}".len()).0;
    path.strip_prefix(PREFIX)
        .filter(|name| !name.is_empty() && !name.contains('/'))
}

/// Handles a mint request for the route table, by calling [`mint`].
pub(crate) async fn route(State(service): State<Arc<Service>>, request: Request) -> Answer {
    mint(&service, request)
        .await
        .map(|answer| answer.map(Body::new))
}

/// Mints the requested number of ids, all of them or none.
///
/// # Errors
/// Returns a [`Problem`] if the request fails. The caller then gets no id. After 503 or 504, the
/// reports or events in the request may have been stored nevertheless.
#[inline]
pub(crate) fn mint(service: &Arc<Service>, request: Request) -> MaybeReady<Answer<AnswerBody>> {
    let served = match format_in(service, request.uri()) {
        Ok(served) => served,
        Err(problem) => return MaybeReady::ready(Err(problem)),
    };
    match served.source() {
        IdSource::Count(_) | IdSource::DecodeOnly => mint_by_count(service, served, request),
        IdSource::Reports(minter) => {
            let (service, served, minter) =
                (Arc::clone(service), Arc::clone(served), Arc::clone(minter));
            MaybeReady::pending(async move {
                let answer =
                    reports::mint_reports(&service, &served, &minter, reports::PARAMETERS, request)
                        .await;
                count_refusal(&served, answer, || {
                    reports::example(&minter, served.format())
                })
            })
        }
        IdSource::Events => {
            let (service, served) = (Arc::clone(service), Arc::clone(served));
            let permit = request.extensions().get::<Arc<Permit>>().cloned();
            MaybeReady::pending(async move {
                let answer = appends::append_events(&service, &served, None, request).await;
                count_refusal(&served, answer, || {
                    appends::example(&service, served.format(), permit.as_deref())
                })
            })
        }
    }
}

fn format_in<'a>(service: &'a Service, uri: &Uri) -> Result<&'a Arc<ServedFormat>, Problem> {
    let name = percent_decode(format_name(uri.path()).unwrap_or_default())?;
    Ok(service.formats().named(&name)?)
}

/// If the request was refused, counts it in the metrics of its format, and adds to the problem an
/// example of a request that works.
pub(super) fn count_refusal(
    served: &ServedFormat,
    answer: Answer<AnswerBody>,
    example: impl FnOnce() -> String,
) -> Answer<AnswerBody> {
    answer.map_err(|problem| {
        if problem.status().is_client_error() {
            served.counters().count_invalid();
        } else {
            served.counters().count_refused();
        }
        problem.or_example(example)
    })
}

#[inline]
fn mint_by_count(
    service: &Arc<Service>,
    served: &Arc<ServedFormat>,
    request: Request,
) -> MaybeReady<Answer<AnswerBody>> {
    let is_sequenced = matches!(served.source(), IdSource::Count(minter) if minter.is_sequenced());
    if is_sequenced && service.is_starting() {
        let (service, served) = (Arc::clone(service), Arc::clone(served));
        return MaybeReady::pending(async move {
            service.wait_for_start().await;
            mint_at_once(&service, &served, request).await
        });
    }
    mint_at_once(service, served, request)
}

#[inline]
fn mint_at_once(
    service: &Arc<Service>,
    served: &Arc<ServedFormat>,
    request: Request,
) -> MaybeReady<Answer<AnswerBody>> {
    let (parts, request_body) = request.into_parts();
    if request_body.is_end_stream() {
        return mint_as_asked(service, served, &parts, &[]);
    }
    let (service, served) = (Arc::clone(service), Arc::clone(served));
    MaybeReady::pending(async move {
        match read_body(request_body, BODY_LEN_MAX, service.limits().body_timeout).await {
            Ok(request_body) => mint_as_asked(&service, &served, &parts, &request_body).await,
            Err(problem) => refuse(&service, &served, problem, None),
        }
    })
}

#[inline]
fn mint_as_asked(
    service: &Arc<Service>,
    served: &Arc<ServedFormat>,
    parts: &Parts,
    request_body: &[u8],
) -> MaybeReady<Answer<AnswerBody>> {
    match MintQuery::read(service, served, parts, request_body) {
        Ok(asked) if asked.request.count() <= SHORT_COUNT_MAX => {
            mint_few(service, served, &asked, None)
        }
        Ok(asked) => mint_many(service, served, &asked, parts),
        Err(problem) => {
            let example = || example(service, served, None, permit_of(&parts.extensions));
            MaybeReady::ready(count_refusal(served, Err(problem), example))
        }
    }
}

/// Mints ids for a response whose memory must be reserved in advance. Above [`IDS_AT_ONCE_MAX`] ids
/// the request also needs a permit for long work, so that concurrent callers share the node's
/// capacity. If the memory or the permit is unavailable, the request is refused before anything is
/// minted.
fn mint_many(
    service: &Arc<Service>,
    served: &Arc<ServedFormat>,
    asked: &MintQuery,
    parts: &Parts,
) -> MaybeReady<Answer<AnswerBody>> {
    let count = asked.request.count();
    let price = asked.price(served.format());
    if price <= SHORT_LEN_MAX {
        return mint_few(service, served, asked, None);
    }
    let is_long = count > IDS_AT_ONCE_MAX;
    let owner = owner_of(service, &parts.extensions);
    // If memory for a short response is free, reserve it now, without waiting in the queue of
    // requests for memory.
    if !is_long
        && asked.answer_len_max(served.format()) <= SHORT_LEN_MAX
        && let Some(reserved) = owner.reserve_if_free(price)
    {
        let pass = None;
        let admitted = Some(Box::new(Admitted { reserved, pass }));
        return mint_few(service, served, asked, admitted);
    }
    let estimate = Duration::from_nanos(NANOS_FOR_AN_ID.saturating_mul(count));
    let mut pass = match is_long
        .then(|| bulk_of(service, &parts.extensions).enter(estimate))
        .transpose()
    {
        Ok(pass) => pass,
        Err(shed) => return MaybeReady::ready(refuse(service, served, shed.into(), None)),
    };
    let (service, served, asked) = (Arc::clone(service), Arc::clone(served), asked.clone());
    // Count this request as held now, and not inside the future. An HTTP/2 connection accepts all
    // of its requests before it polls the first future. Until then, its requests would count
    // towards the limit of requests in flight.
    //
    // Held requests do not count towards that limit. Thousands of requests may wait here at no
    // cost.
    let held = service.load().requests.hold();
    MaybeReady::pending(async move {
        let reserved = match owner.reserve(price).await {
            Ok(reserved) => reserved,
            Err(shed) => return refuse(&service, &served, shed.into(), None),
        };
        // Let requests that have already arrived begin before this request mints. Short requests
        // are then served first. Long requests are refused if the service has too much work.
        tokio::task::yield_now().await;
        drop(held);
        let ids = match &mut pass {
            None => service.mint(&asked.minter, &asked.request).await,
            Some(pass) => {
                pass.pause();
                service
                    .mint_many(&served, &asked.minter, &asked.request)
                    .await
            }
        };
        match ids {
            Ok(ids) => {
                let encoder = asked.encoder(served.format());
                let admitted = Box::new(Admitted { reserved, pass });
                let answer_body =
                    AnswerBody::of_ids(encoder, &served.counted().format, ids, Some(admitted));
                Ok(minted(asked.media, served.format(), count, answer_body))
            }
            Err(refusal) => refuse_to_mint(&service, &served, refusal),
        }
    })
}

#[inline]
fn mint_few(
    service: &Arc<Service>,
    served: &Arc<ServedFormat>,
    asked: &MintQuery,
    admitted: Option<Box<Admitted>>,
) -> MaybeReady<Answer<AnswerBody>> {
    let encoder = asked.encoder(served.format());
    let (media, count) = (asked.media, asked.request.count());
    let (of_service, of_format) = (Arc::clone(service), Arc::clone(served));
    service
        .mint(&asked.minter, &asked.request)
        .map(move |ids| match ids {
            Ok(ids) => {
                let answer_body =
                    AnswerBody::of_ids(encoder, &of_format.counted().format, ids, admitted);
                Ok(minted(media, of_format.format(), count, answer_body))
            }
            Err(refusal) => refuse_to_mint(&of_service, &of_format, refusal),
        })
}

/// Returns the error response to a refused mint request. If the request asked for too many ids, the
/// example request in the response asks for the maximum count.
fn refuse_to_mint(
    service: &Service,
    served: &ServedFormat,
    refusal: Refusal,
) -> Answer<AnswerBody> {
    let most = match refusal {
        Refusal::TooMany { most, .. } => Some(most),
        _ => None,
    };
    refuse(service, served, ServiceError::from(refusal).into(), most)
}

/// Counts a refused mint request, and returns `problem` with an example request. The example mints
/// `count` ids of a format that can be minted.
fn refuse(
    service: &Service,
    served: &ServedFormat,
    problem: Problem,
    count: Option<u64>,
) -> Answer<AnswerBody> {
    count_refusal(served, Err(problem), || {
        example(service, served, count, None)
    })
}

/// A parsed mint request.
#[derive(Clone)]
struct MintQuery {
    minter: Arc<Minter>,
    request: BatchRequest,
    media: MediaType,
    /// The index of the encoding among the encodings of the format.
    encoding: usize,
    /// The value of the member `label` of a JSON response: `development` for ids of the development
    /// domain, which contain 0 instead of the hash of a real domain.
    label: Option<&'static str>,
    /// The prefix of each id.
    prefix: Option<Prefix>,
}

impl MintQuery {
    fn read(
        service: &Service,
        served: &ServedFormat,
        parts: &Parts,
        request_body: &[u8],
    ) -> Result<MintQuery, Problem> {
        let media = negotiate_minted(&parts.headers, served.format())?;
        let query = query_of(
            &parts.uri,
            &["count", "encoding", "prefix", "type", "domain"],
        )?;
        let in_body = if request_body.is_empty() {
            MintRequest::default()
        } else {
            media_type_of_body(&parts.headers, false, &[MediaType::Json])?;
            match request_body.trim_ascii() {
                // Some clients send `null` instead of an empty body.
                b"null" => MintRequest::default(),
                json => strict_json::<Object<MintRequest>>(json, Slug::InvalidParameter)?.0,
            }
        };
        let count = count(&query, &in_body, service.limits().batch_max)?;
        let encoding = encoding_of(&query, served.format(), &parts.uri)?;
        if media == MediaType::OctetStream {
            refuse_encoding(&query, served.format())?;
        }
        served.check_minted()?;
        let minter = served
            .minter()
            .expect("a minted format without reports or events has a minter");
        let (request, label) = batch_request(service, minter, &query, count)?;
        let prefix = prefix(&query, served.format(), encoding, media)?;
        Ok(MintQuery {
            minter: Arc::clone(minter),
            request,
            media,
            encoding,
            label,
            prefix,
        })
    }

    fn encoder(&self, format: &Format) -> IdEncoder {
        if self.media == MediaType::Rows {
            let lanes = self
                .minter
                .most_lanes()
                .map_or(1, |lanes| lanes.workers().len());
            return IdEncoder::of_rows(format, lanes, self.request.count(), self.label);
        }
        self.encoder_of_texts(format)
    }

    fn encoder_of_texts(&self, format: &Format) -> IdEncoder {
        let count = self.request.count();
        IdEncoder::new(self.media, format, self.encoding, count, self.label)
            .behind(self.prefix.clone())
    }

    /// Returns the memory to reserve for the first chunk of the response. A response in rows is
    /// much shorter, but reserves as much as the texts of the same ids, because minting them is the
    /// same work. Requests for rows and for texts are then refused and delayed alike.
    fn price(&self, format: &Format) -> usize {
        let of_texts = self
            .encoder_of_texts(format)
            .first_piece_len_max(self.request.count(), format);
        of_texts.max(self.answer_len_max(format))
    }

    /// Returns the maximum memory that the first chunk of the response takes.
    fn answer_len_max(&self, format: &Format) -> usize {
        self.encoder(format)
            .first_piece_len_max(self.request.count(), format)
    }
}

/// Returns the requested encoding, as an index into the encodings of the format. A former name of
/// the format sets the default encoding. For example, `conjunction-v1-label` sets `label`.
#[inline]
fn encoding_of(query: &Query<'_>, format: &Format, uri: &Uri) -> Result<usize, Problem> {
    let name = format_name(uri.path()).unwrap_or_default();
    if name == format.name {
        return encoding(query, format);
    }
    match FormatAlias::named(&percent_decode(name)?) {
        None => encoding(query, format),
        Some(alias) => {
            let given = query.get("encoding");
            let name = given.map_or(alias.encoding, |name| alias.current_encoding(name));
            encoding_named(name, format)
        }
    }
}

/// Refuses an explicit `encoding` for ids that are written as bytes.
fn refuse_encoding(query: &Query<'_>, format: &Format) -> Result<(), Problem> {
    if query.get("encoding").is_none() {
        return Ok(());
    }
    let (media, width) = (MediaType::OctetStream.essence(), format.byte_width());
    let detail = format!(
        "encoding cannot be combined with {media}, which has each id of {} as a number of {width} bytes",
        format.name
    );
    Err(Problem::parameter("encoding", detail))
}

/// Returns an example request that works: a mint of this format. If this format is decode-only, the
/// example uses the first permitted format that can be minted.
fn example(
    service: &Service,
    served: &ServedFormat,
    count: Option<u64>,
    permit: Option<&Permit>,
) -> String {
    let permitted = service
        .formats()
        .iter()
        .filter(|other| permit.is_none_or(|permit| permit.has_format(&other.format().name)));
    let minted = std::iter::once(served)
        .chain(permitted.map(AsRef::as_ref))
        .find(|other| other.minter().is_some());
    let Some(format) = minted.map(ServedFormat::format) else {
        return "GET /openapi.yaml".to_owned();
    };
    let types = format
        .variants
        .iter()
        .find_map(|variant| variant.name.as_deref());
    let types = types
        .filter(|_| service.siq().default_type.is_none())
        .or_else(|| format.prefixes.minted_type());
    let of_type = types.map(|name| format!("type={name}"));
    let count = count.map(|count| format!("count={count}"));
    let query: Vec<_> = of_type.into_iter().chain(count).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("POST /ids/{}{mark}{}", format.name, query.join("&"))
}

/// Returns the request to the minter. Also returns the label `development` if the domain is 0,
/// which is no real domain.
fn batch_request(
    service: &Service,
    minter: &Minter,
    query: &Query<'_>,
    count: NonZeroU32,
) -> Result<(BatchRequest, Option<&'static str>), Problem> {
    let format = &minter.counted().format;
    let siq = service.siq();
    let default_type = siq.default_type.as_deref().filter(|_| format.has_types());
    let of_type = query.get("type").filter(|_| !format.prefixes.are_types());
    let request = minter.request(count, of_type.or(default_type))?;
    let has_domain = format.layout().field_of(FieldKind::Object).is_some();
    let domain = match (query.get("domain"), has_domain) {
        (None, false) => return Ok((request, None)),
        (Some(given), false) => {
            let detail = format!(
                "{} has no domains, so domain {given:?} is invalid",
                format.name
            );
            return Err(Problem::parameter("domain", detail));
        }
        (None, true) => siq.default_domain.unwrap_or(DomainHash::DEVELOPMENT),
        (Some(given), true) => *siq.domains.get(given).ok_or_else(|| {
            let detail = format!("domain {given:?} is not configured (siq.domains)");
            Problem::parameter("domain", detail)
        })?,
    };
    let label = (domain == DomainHash::DEVELOPMENT).then_some("development");
    Ok((request.for_domain(domain), label))
}
