//! `/conjunctions`: takes reports, and lists and shows stored conjunctions.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Extensions;

use super::mint::count_refusal;
use super::reports;
use crate::access::permit_of;
use crate::answer::{Answer, MediaType, Problem, Slug, json, negotiate};
use crate::request::{Query, bulk_of, page_limit, path_params, query_of, read_page, whole_number};
use idmint_core::id::Format;
use idmint_core::time::{UnixTime, UtcTextError};
use idmint_records::conjunction::{ExternalId, GroupedMinter, ReportCount, Seen, Tca};
use idmint_service::{
    ConjunctionList, IdSource, ListQuery, ListedConjunction, ServedFormat, Service, ServiceError,
};
use idmint_storage::ListPlace;
use idmint_wire::{ConjunctionInfo, ConjunctionInfos};

pub(crate) const ROUTE: &str = "/conjunctions/{id}";

/// The format whose conjunctions are listed if the request names no format.
const FORMAT: &str = "conjunction";

/// The default number of listed conjunctions.
const LIMIT: usize = 10;

/// The estimated time to search the stored conjunctions.
const LIST_ESTIMATE: Duration = Duration::from_millis(5);

/// The greatest integer that every JSON parser can represent exactly, which is 2^53 - 1.
const NUMBER_MAX: u64 = (1 << 53) - 1;

/// The number of decimals in the seconds of a time.
const TIME_DIGITS: u8 = 6;

/// Mints one id for each report, like `POST /ids/{format}`.
///
/// # Errors
/// Returns a [`Problem`] if the request fails. The caller then gets no id. After 503 or 504, some
/// conjunctions may have been stored, and a retry returns their ids.
pub(crate) async fn report(State(service): State<Arc<Service>>, request: Request) -> Answer {
    let query = query_of(request.uri(), &reports::ALL_PARAMETERS)?;
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

/// Lists conjunctions by time of closest approach. The latest one comes first, unless the request
/// sets a start time.
///
/// # Errors
/// Returns a [`Problem`] if the request is invalid or the conjunctions cannot be read.
pub(crate) async fn list(State(service): State<Arc<Service>>, request: Request) -> Answer {
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
    let query = query_of(request.uri(), &known)?.with_times(&["from", "to"]);
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
    let bulk = bulk_of(&service, request.extensions());
    let _pass = bulk.enter(LIST_ESTIMATE)?;
    // A read has to wait while report counts are written. Wait here, because the read below would
    // occupy a core while it waits.
    service.wait_for_report_counts().await;
    let latest_first = asked.from.is_none() || external.is_some();
    let read = move |service: &Service| {
        let after = after
            .map(|(id, text)| place_of(service, &minter, id, &text, latest_first))
            .transpose()
            .map_err(example)?;
        let asked = ListQuery { after, ..asked };
        let ConjunctionList { items, next } = match external {
            Some(external) => service.conjunctions_of_external(&minter, &external, &asked)?,
            None => service.conjunctions_listed(&minter, &asked)?,
        };
        Ok(json(&ConjunctionInfos {
            format: format.name.clone(),
            conjunctions: items.iter().map(|listed| info(&format, listed)).collect(),
            next: next.map(|id| format.canonical().to_text(id)),
        }))
    };
    read_page(&service, &bulk, read).await
}

/// Returns one conjunction.
///
/// # Errors
/// Returns a [`Problem`] if the request is invalid or the conjunction cannot be read.
pub(crate) async fn one(State(service): State<Arc<Service>>, request: Request) -> Answer {
    negotiate(request.headers(), &[MediaType::Json])?;
    let query = query_of(request.uri(), &["format"])?;
    let (format, minter) = grouped_format(&service, &query, request.extensions())?;
    let [text] = path_params(ROUTE, request.uri())?;
    let id = read_id(&format, "id", &text);
    let id = id.map_err(|problem| problem.or_example(|| list_example(&format)))?;
    let found = service
        .read_aside(move |service| service.conjunction(&minter, id))
        .await?;
    Ok(json(&info(&format, &found)))
}

/// Returns an example request to list this format's conjunctions, for a caller who may read them.
fn list_example(format: &Format) -> String {
    match format.name.as_str() {
        FORMAT => format!("GET /conjunctions?limit={LIMIT}"),
        name => format!("GET /conjunctions?format={name}&limit={LIMIT}"),
    }
}

/// Returns the requested format of conjunction ids and its minter. The caller must be permitted to
/// use the format.
fn grouped_format(
    service: &Service,
    query: &Query<'_>,
    extensions: &Extensions,
) -> Result<(Arc<Format>, Arc<GroupedMinter>), Problem> {
    let (served, minter) = grouped(service, query, extensions)?;
    Ok((Arc::clone(&served.counted().format), minter))
}

/// Returns the requested format and its minter. The caller must be permitted to use the format, and
/// its ids must be ids of conjunctions.
fn grouped(
    service: &Service,
    query: &Query<'_>,
    extensions: &Extensions,
) -> Result<(Arc<ServedFormat>, Arc<GroupedMinter>), Problem> {
    let name = query.get("format").unwrap_or(FORMAT);
    permit_of(extensions).map_or(Ok(()), |permit| permit.check_format(name))?;
    let served = service.formats().named(name)?;
    match served.source() {
        IdSource::Reports(minter) => Ok((Arc::clone(served), Arc::clone(minter))),
        _ => {
            let detail = format!(
                "format is {name}, which has the rule `{}`, but only formats with the rule `grouped` have conjunctions",
                served.format().rule.name()
            );
            Err(Problem::parameter("format", detail))
        }
    }
}

/// Returns the list position of the conjunction whose id the caller gave as the cursor `after`. The
/// page begins after this position. `text` is the id as the caller wrote it, for error messages.
///
/// If the conjunction is no longer stored, its exact time is unknown. The page then begins with the
/// id's tick, so that the list repeats conjunctions of this tick rather than leaving one out.
fn place_of(
    service: &Service,
    minter: &GroupedMinter,
    id: u128,
    text: &str,
    latest_first: bool,
) -> Result<ListPlace, Problem> {
    match service.conjunction(minter, id) {
        Ok(listed) => Ok((listed.stored.anchor.tca, listed.stored.pair)),
        Err(ServiceError::UnknownConjunction) => {
            let (pair, times) = minter.event_of(id).ok_or_else(|| {
                let detail = format!("after is {text:?}, which is the id of no conjunction");
                Problem::parameter("after", detail)
            })?;
            let (first, last) = times.into_inner();
            Ok((if latest_first { last } else { first }, pair))
        }
        Err(error) => Err(error.into()),
    }
}

/// Parses the parameters of a list, for its first page.
fn list_query(query: &Query<'_>) -> Result<ListQuery, Problem> {
    Ok(ListQuery {
        from: instant(query, "from")?,
        to: instant(query, "to")?,
        primary: whole_number(query, "primary", NUMBER_MAX)?,
        secondary: whole_number(query, "secondary", NUMBER_MAX)?,
        after: None,
        limit: page_limit(query, LIMIT)?,
    })
}

/// Parses the external id with which conjunctions are looked up.
fn external(query: &Query<'_>) -> Result<Option<ExternalId>, Problem> {
    let Some(text) = query.get("external") else {
        return Ok(None);
    };
    let most = ExternalId::LEN_MAX;
    let too_long = || {
        format!(
            "external has {} characters, but must have from 1 to {most}",
            text.chars().count()
        )
    };
    ExternalId::new(text)
        .map(Some)
        .ok_or_else(|| Problem::parameter("external", too_long()).limit(most.to_string()))
}

fn read_id(format: &Format, name: &'static str, text: &str) -> Result<u128, Problem> {
    let id = format
        .encodings
        .iter()
        .find_map(|encoding| encoding.read(text).ok());
    id.ok_or_else(|| {
        let detail = format!("{name} is {text:?}, which is not an id of {}", format.name);
        Problem::parameter(name, detail)
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
    let report_count: Option<ReportCount> = listed
        .stored
        .report_count
        .filter(|report_count| report_count.count > 0);
    let came = |seen: fn(&ReportCount) -> Seen| {
        report_count
            .as_ref()
            .and_then(|report_count| told(UnixTime::from(seen(report_count).at)))
    };
    let tca = |seen: fn(&ReportCount) -> Seen| {
        report_count
            .as_ref()
            .and_then(|report_count| told(UnixTime::from(seen(report_count).tca)))
    };
    ConjunctionInfo {
        id: text(listed.id),
        anchor_tca: told(listed.stored.anchor.tca.into()).unwrap_or_default(),
        primary: listed.stored.pair.primary,
        secondary: listed.stored.pair.secondary,
        rank: listed.stored.anchor.rank,
        reports: report_count.map(|report_count| report_count.count),
        first_reported: came(|report_count| report_count.first),
        last_reported: came(|report_count| report_count.last),
        first_tca: tca(|report_count| report_count.first),
        last_tca: tca(|report_count| report_count.last),
        near: listed.near.iter().map(|id| text(*id)).collect(),
        external: listed.externals.iter().map(ExternalId::to_string).collect(),
    }
}
