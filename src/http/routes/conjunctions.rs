//! `/conjunctions`: reports in, and the conjunctions that are stored, listed and shown.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Extensions, Response};

use super::mint::count_refusal;
use super::reporting::reports;
use crate::conjunction::{ExternalId, GroupedMinter, ReportTally, Seen, Tca};
use crate::http::access::permit_of;
use crate::http::answer::{MediaType, Problem, Slug, json, negotiate};
use crate::http::request::{Query, path_params, strict_query, whole_number};
use crate::id::Format;
use crate::service::{
    CONJUNCTIONS_MAX, ConjunctionList, IdSource, ListQuery, ListedConjunction, ServedFormat,
    Service, ServiceError,
};
use crate::storage::ListPlace;
use crate::time::{UnixTime, UtcTextError};
use crate::wire::{ConjunctionInfo, ConjunctionInfos};

pub(in crate::http) const ROUTE: &str = "/conjunctions/{id}";

/// The format of which conjunctions are listed unless another one is named.
const FORMAT: &str = "conjunction";

/// How many are listed unless it is said.
const LIMIT: usize = 10;

/// About what looking through stored conjunctions takes.
const LIST_ESTIMATE: Duration = Duration::from_millis(5);

/// The greatest number that every reader of JSON reads alike.
const NUMBER_MAX: u64 = (1 << 53) - 1;

/// Digits of a second that are told of a time.
const TIME_DIGITS: u8 = 6;

/// Mints ids of reports, as `POST /ids/{format}` does.
///
/// # Errors
/// A [`Problem`]: nothing was minted.
pub(in crate::http) async fn report(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let query = strict_query(
        request.uri().query().unwrap_or_default(),
        &reports::ALL_PARAMETERS,
    )?;
    let (served, minter) = grouped(&service, &query, request.extensions())?;
    let answer = reports::mint_reports(
        &service,
        &served,
        &minter,
        &reports::ALL_PARAMETERS,
        request,
    )
    .await;
    let answer = count_refusal(&served, answer, || {
        reports::example(&minter, served.format())
    });
    answer.map(|answer| answer.map(Body::new))
}

/// Conjunctions by time; the latest first, unless the list begins at a time.
///
/// # Errors
/// A [`Problem`].
pub(in crate::http) async fn list(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    negotiate(request.headers(), &[MediaType::Json])?;
    let known = [
        "format",
        "from",
        "to",
        "primary",
        "secondary",
        "external",
        "after",
        "limit",
    ];
    let query = strict_query(request.uri().query().unwrap_or_default(), &known)?;
    let (format, minter) = grouped_format(&service, &query, request.extensions())?;
    let works = Arc::clone(&format);
    let example = move |problem: Problem| problem.or_example(|| list_example(&works));
    let asked = list_query(&query).map_err(&example)?;
    let external = external(&query).map_err(&example)?;
    let after = query
        .get("after")
        .map(|text| Ok((read_id(&format, "after", text)?, text.to_owned())))
        .transpose();
    let after = after.map_err(&example)?;
    let _pass = service.load().requests.enter_bulk(LIST_ESTIMATE)?;
    let reading = Arc::clone(&service);
    let read = move || {
        let after = after
            .map(|(id, text)| known_place(&reading, &minter, id, &text))
            .transpose()
            .map_err(example)?;
        let ConjunctionList { items, next } = match external {
            Some(external) => {
                let items = reading.conjunctions_of_external(&minter, &external, &asked)?;
                ConjunctionList { items, next: None }
            }
            None => reading.conjunctions_listed(&minter, &ListQuery { after, ..asked })?,
        };
        Ok(json(&ConjunctionInfos {
            format: format.name.clone(),
            conjunctions: items.iter().map(|listed| info(&format, listed)).collect(),
            next: next.map(|id| format.canonical().to_text(id)),
        }))
    };
    service.load().requests.work_aside(read).await
}

/// One conjunction.
///
/// # Errors
/// A [`Problem`].
pub(in crate::http) async fn one(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    negotiate(request.headers(), &[MediaType::Json])?;
    let query = strict_query(request.uri().query().unwrap_or_default(), &["format"])?;
    let (format, minter) = grouped_format(&service, &query, request.extensions())?;
    let [text] = path_params(ROUTE, request.uri())?;
    let id = read_id(&format, "id", &text);
    let id = id.map_err(|problem| problem.or_example(|| list_example(&format)))?;
    let found = service
        .read_records(move |service| service.conjunction(&minter, id))
        .await?;
    Ok(json(&info(&format, &found)))
}

/// A request that works for a caller who may read conjunctions of this format.
fn list_example(format: &Format) -> String {
    match format.name.as_str() {
        FORMAT => format!("GET /conjunctions?limit={LIMIT}"),
        name => format!("GET /conjunctions?format={name}&limit={LIMIT}"),
    }
}

/// The format that is asked for, which the caller may read, and what mints it.
fn grouped_format(
    service: &Service,
    query: &Query<'_>,
    extensions: &Extensions,
) -> Result<(Arc<Format>, Arc<GroupedMinter>), Problem> {
    let (served, minter) = grouped(service, query, extensions)?;
    Ok((Arc::clone(&served.counted().format), minter))
}

/// The format that is asked for, which the caller may mint or read, and what mints it.
fn grouped(
    service: &Service,
    query: &Query<'_>,
    extensions: &Extensions,
) -> Result<(Arc<ServedFormat>, Arc<GroupedMinter>), Problem> {
    let name = query.get("format").unwrap_or(FORMAT);
    permit_of(extensions).map_or(Ok(()), |permit| permit.check_format(name))?;
    let served = service.formats().named(name).map_err(ServiceError::from)?;
    match served.source() {
        IdSource::Reports(minter) => Ok((Arc::clone(served), Arc::clone(minter))),
        _ => {
            let detail = format!(
                "format is {name}, whose rule is {}, and not grouped",
                served.format().rule.name()
            );
            Err(Problem::new(Slug::InvalidParameter, detail).reason("format"))
        }
    }
}

/// Where the conjunction stands that a list goes on behind.
fn known_place(
    service: &Service,
    minter: &GroupedMinter,
    id: u128,
    text: &str,
) -> Result<ListPlace, Problem> {
    match service.conjunction(minter, id) {
        Ok(listed) => Ok((listed.stored.anchor.tca, listed.stored.pair)),
        Err(ServiceError::UnknownConjunction) => {
            let detail = format!("after is {text:?}, which is not stored");
            Err(Problem::new(Slug::InvalidParameter, detail).reason("after"))
        }
        Err(error) => Err(error.into()),
    }
}

/// What is asked for, from the beginning of the list.
fn list_query(query: &Query<'_>) -> Result<ListQuery, Problem> {
    let limit = whole_number(
        query,
        "limit",
        u64::try_from(CONJUNCTIONS_MAX).unwrap_or(u64::MAX),
    )?;
    Ok(ListQuery {
        from: instant(query, "from")?,
        to: instant(query, "to")?,
        primary: whole_number(query, "primary", NUMBER_MAX)?,
        secondary: whole_number(query, "secondary", NUMBER_MAX)?,
        after: None,
        limit: limit.map_or(LIMIT, |limit| usize::try_from(limit).unwrap_or(LIMIT)),
    })
}

/// The id of another originator that conjunctions are looked up by. There are few of each, so that they are not listed in pages.
fn external(query: &Query<'_>) -> Result<Option<ExternalId>, Problem> {
    let Some(text) = query.get("external") else {
        return Ok(None);
    };
    let refuse = |detail: String| Problem::new(Slug::InvalidParameter, detail).reason("external");
    if query.get("after").is_some() {
        return Err(refuse(
            "external does not go with after: all conjunctions with that id are listed at once"
                .to_owned(),
        ));
    }
    let most = ExternalId::LEN_MAX;
    let too_long = || {
        format!(
            "external has {} characters, it must have from 1 to {most}",
            text.chars().count()
        )
    };
    ExternalId::new(text)
        .map(Some)
        .ok_or_else(|| refuse(too_long()).limit(most.to_string()))
}

fn read_id(format: &Format, name: &'static str, text: &str) -> Result<u128, Problem> {
    let id = format
        .encodings
        .iter()
        .find_map(|encoding| encoding.read(text).ok());
    id.ok_or_else(|| {
        let detail = format!("{name} is {text:?}, which is no id of {}", format.name);
        Problem::new(Slug::InvalidParameter, detail).reason(name)
    })
}

fn instant(query: &Query<'_>, name: &'static str) -> Result<Option<Tca>, Problem> {
    let Some(text) = query.get(name) else {
        return Ok(None);
    };
    let refuse = |error: UtcTextError| {
        Problem::new(Slug::InvalidParameter, format!("{name}: {error}")).reason("bad_timestamp")
    };
    Ok(Some(Tca::at(
        UnixTime::from_utc_text(text).map_err(refuse)?,
    )))
}

fn info(format: &Format, listed: &ListedConjunction) -> ConjunctionInfo {
    let text = |id: u128| format.canonical().to_text(id);
    let told = |time: UnixTime| time.to_text(TIME_DIGITS);
    let tally: Option<ReportTally> = listed.stored.tally.filter(|tally| tally.count > 0);
    let came = |seen: fn(&ReportTally) -> Seen| {
        tally
            .as_ref()
            .and_then(|tally| told(UnixTime::from(seen(tally).at)))
    };
    let tca = |seen: fn(&ReportTally) -> Seen| {
        tally
            .as_ref()
            .and_then(|tally| told(UnixTime::from(seen(tally).tca)))
    };
    ConjunctionInfo {
        id: text(listed.id),
        anchor_tca: told(listed.stored.anchor.tca.into()).unwrap_or_default(),
        primary: listed.stored.pair.primary,
        secondary: listed.stored.pair.secondary,
        rank: listed.stored.anchor.rank,
        reports: tally.map(|tally| tally.count),
        first_reported: came(|tally| tally.first),
        last_reported: came(|tally| tally.last),
        first_tca: tca(|tally| tally.first),
        last_tca: tca(|tally| tally.last),
        near: listed.near.iter().map(|id| text(*id)).collect(),
        external: listed.externals.iter().map(ExternalId::to_string).collect(),
    }
}
