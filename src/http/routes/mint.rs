//! `POST /ids/{format}`: mint.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{Response, Uri};

use super::appends;
use super::reporting::reports;
use crate::http::access::{Permit, permit_of};
use crate::http::answer::{
    Admitted, AnswerBody, IdEncoder, MediaType, Problem, Slug, media_type_of_body, minted,
    negotiate_minted,
};
use crate::http::request::{
    Object, Query, count, encoding, payer_of, percent_decode, prefix, read_body, strict_json,
    strict_query,
};
use crate::id::{DomainHash, FieldKind, Format, Prefix};
use crate::minting::{BatchRequest, Minter, Refusal};
use crate::service::{IdSource, MaybeReady, ServedFormat, Service, ServiceError};
use crate::wire::MintRequest;

/// More ids than these are long work.
const IDS_AT_ONCE_MAX: u64 = 1024;

/// Answers that may be longer are paid for before they are made, in bytes; so many ids never are.
const SHORT_LEN_MAX: usize = 4 * 1024;
const SHORT_COUNT_MAX: u64 = 16;

/// About what minting, writing and sending one takes when there are many.
const NANOS_FOR_AN_ID: u64 = 20;

/// The longest body of a mint request, in bytes.
const BODY_LEN_MAX: usize = 16 * 1024;

/// The path of this route.
pub(in crate::http) const ROUTE: &str = "/ids/{format}";

/// What a path of [`ROUTE`] has for `{format}`, still percent-encoded; `None` for any other path.
///
/// The same as `path_params` for this one route, without its loops.
#[inline]
pub(in crate::http) fn format_name(path: &str) -> Option<&str> {
    const PREFIX: &str = ROUTE.split_at(ROUTE.len() - "{format}".len()).0;
    path.strip_prefix(PREFIX)
        .filter(|name| !name.is_empty() && !name.contains('/'))
}

/// [`mint`], for the table of routes.
pub(in crate::http) async fn route(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    mint(&service, request)
        .await
        .map(|answer| answer.map(Body::new))
}

type Answer = Result<Response<AnswerBody>, Problem>;

/// Mints as many ids as asked for, all of them or none.
///
/// # Errors
/// A [`Problem`]: nothing was minted.
#[inline]
pub(in crate::http) fn mint(service: &Arc<Service>, request: Request) -> MaybeReady<Answer> {
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
    service
        .formats()
        .named(&name)
        .map_err(|unknown| ServiceError::from(unknown).into())
}

/// An answer, counted for its format if it is a refusal, and then with a request that works.
pub(super) fn count_refusal(
    served: &ServedFormat,
    answer: Answer,
    example: impl FnOnce() -> String,
) -> Answer {
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
) -> MaybeReady<Answer> {
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
) -> MaybeReady<Answer> {
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

/// Mints so many ids that their answer is paid for before it is made, or so many more that callers who come at the same time
/// share what this node can do. Who finds too little left is refused before anything is minted.
fn mint_many(
    service: &Arc<Service>,
    served: &Arc<ServedFormat>,
    asked: &MintQuery,
    parts: &Parts,
) -> MaybeReady<Answer> {
    let count = asked.request.count();
    let price = asked.price(served.format());
    if price <= SHORT_LEN_MAX {
        return mint_few(service, served, asked, None);
    }
    let is_long = count > IDS_AT_ONCE_MAX;
    let payer = payer_of(service, &parts.extensions);
    // A short answer gives way to nobody.
    if !is_long
        && asked.answer_len_max(served.format()) <= SHORT_LEN_MAX
        && let Some(paid) = payer.pay_if_free(price)
    {
        return mint_few(
            service,
            served,
            asked,
            Some(Box::new(Admitted { paid, pass: None })),
        );
    }
    let estimate = Duration::from_nanos(NANOS_FOR_AN_ID.saturating_mul(count));
    let mut pass = match is_long
        .then(|| service.load().requests.enter_bulk(estimate))
        .transpose()
    {
        Ok(pass) => pass,
        Err(shed) => return MaybeReady::ready(refuse(service, served, shed.into(), None)),
    };
    let (service, served, asked) = (Arc::clone(service), Arc::clone(served), asked.clone());
    // Thousands may wait for their turn, which costs nothing: whoever asks for less is not refused for them. Held from now on,
    // since a connection of HTTP/2 takes all its requests before the first of them goes on.
    let held = service.load().requests.hold();
    MaybeReady::pending(async move {
        let paid = match payer.pay(price).await {
            Ok(paid) => paid,
            Err(shed) => return refuse(&service, &served, shed.into(), None),
        };
        // Whoever else has arrived by now is looked at first: refused if it is too much, or let past if it is short.
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
                let (encoder, admitted) = (
                    asked.encoder(served.format()),
                    Box::new(Admitted { paid, pass }),
                );
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
) -> MaybeReady<Answer> {
    let (encoder, media, count) = (
        asked.encoder(served.format()),
        asked.media,
        asked.request.count(),
    );
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

/// A refusal to mint what was asked for, with a count that works where there is one.
fn refuse_to_mint(service: &Service, served: &ServedFormat, refusal: Refusal) -> Answer {
    let most = if let Refusal::TooMany { most, .. } = refusal {
        Some(most)
    } else {
        None
    };
    refuse(service, served, ServiceError::from(refusal).into(), most)
}

/// A refusal of ids by number, of a format that is minted, with a request for so many that works.
fn refuse(
    service: &Service,
    served: &ServedFormat,
    problem: Problem,
    count: Option<u64>,
) -> Answer {
    count_refusal(served, Err(problem), || {
        example(service, served, count, None)
    })
}

/// What a request for so many ids wants.
#[derive(Clone)]
struct MintQuery {
    minter: Arc<Minter>,
    request: BatchRequest,
    media: MediaType,
    /// The position of the encoding among those of the format.
    encoding: usize,
    /// What is to be said about the ids.
    label: Option<&'static str>,
    /// What stands before each of them.
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
        let query = strict_query(
            parts.uri.query().unwrap_or_default(),
            &["count", "encoding", "prefix", "type", "domain"],
        )?;
        let in_body = if request_body.is_empty() {
            MintRequest::default()
        } else {
            media_type_of_body(&parts.headers, false, &[MediaType::Json])?;
            match request_body.trim_ascii() {
                // What clients send for no body.
                b"null" => MintRequest::default(),
                json => strict_json::<Object<MintRequest>>(json, Slug::InvalidParameter)?.0,
            }
        };
        let count = count(&query, &in_body, service.limits().batch_max)?;
        let encoding = encoding(&query, served.format())?;
        if media == MediaType::OctetStream {
            refuse_encoding(&query, served.format())?;
        }
        let minter = served.minter().ok_or_else(|| not_minted(served.format()))?;
        let (request, label) = batch_request(service, minter, &query, count)?;
        let prefix =
            prefix(&query, served.format(), encoding, media).map_err(ServiceError::from)?;
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

    /// What the memory for the first piece of the answer costs. Rows are paid for as texts of as many ids are, so that they
    /// are refused, and wait, like these: minting them is the same work.
    fn price(&self, format: &Format) -> usize {
        let of_texts = self
            .encoder_of_texts(format)
            .first_piece_len_max(self.request.count(), format);
        of_texts.max(self.answer_len_max(format))
    }

    /// How much memory the first piece of the answer takes.
    fn answer_len_max(&self, format: &Format) -> usize {
        self.encoder(format)
            .first_piece_len_max(self.request.count(), format)
    }
}

/// That no encoding is asked for where ids are bytes.
fn refuse_encoding(query: &Query<'_>, format: &Format) -> Result<(), Problem> {
    if query.get("encoding").is_none() {
        return Ok(());
    }
    let (media, width) = (MediaType::OctetStream.essence(), format.byte_width());
    let detail = format!(
        "encoding does not go with {media}: there each id of {} is its number in {width} bytes",
        format.name
    );
    Err(Problem::new(Slug::InvalidParameter, detail).reason("encoding"))
}

fn not_minted(format: &Format) -> ServiceError {
    ServiceError::NotMinted {
        format: format.name.clone(),
        rule: format.rule,
    }
}

/// A request that works: a mint of this format, or of the first one of the permit that is minted where this one is only read.
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

/// The request to the minter, and what is to be said about its ids.
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
    let request = minter
        .request(count, of_type.or(default_type))
        .map_err(ServiceError::from)?;
    let has_domain = format.variants[0]
        .layout
        .field_of(FieldKind::Object)
        .is_some();
    let domain = match (query.get("domain"), has_domain) {
        (None, false) => return Ok((request, None)),
        (Some(given), false) => {
            let detail = format!(
                "{} has no domains, domain {given:?} means nothing to it",
                format.name
            );
            return Err(Problem::new(Slug::InvalidParameter, detail).reason("domain"));
        }
        (None, true) => siq.default_domain.unwrap_or(DomainHash::DEVELOPMENT),
        (Some(given), true) => *siq.domains.get(given).ok_or_else(|| {
            let detail = format!("domain {given:?} is not configured (siq.domains)");
            Problem::new(Slug::InvalidParameter, detail).reason("domain")
        })?,
    };
    let label = (domain == DomainHash::DEVELOPMENT).then_some("development");
    Ok((request.for_domain(domain), label))
}
