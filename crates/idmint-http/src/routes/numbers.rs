//! `/numbers`: issues, voids and lists the numbers of named series, such as invoice numbers, and
//! closes or resumes series.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Response};

use crate::access::{DurableWork, Permit, Scope, permit_of};
use crate::answer::{
    Answer, IDMINT_COUNT, MediaType, Problem, Slug, json, mark_outcome, media_type_of_body,
    negotiate,
};
use crate::request::{
    Object, Query, bulk_of, idempotency_key, key_required, owner_of, page_limit, paid_with,
    path_params, query_of, read_body, read_page, reserve_answer, strict_json, strict_query,
    whole_number,
};
use idmint_records::ledger::{
    COUNT_MAX, CloseRequest, ClosedSeries, FormChange, GivenNumbers, NUMBER_MAX, NumberForm,
    NumberKind, NumberRequest, NumberRules, NumberTemplate, REASON_LEN_MAX, ResumeRequest,
    SeriesName, SeriesNameError, VoidReason, VoidRequest, VoidedNumber,
};
use idmint_service::{PAGE_LEN, Service};
use idmint_storage::{NumberRecord, Numbered, RecordError, SeriesSummary};
use idmint_wire::{
    BlockAnswer, CloseAnswer, CloseInfo, NumberAnswer, NumberInfo, NumberList, ResumeAnswer,
    SeriesInfo, SeriesList, SkippedNumbers, VoidAnswer, VoidBody, VoidInfo,
};

pub(crate) const ROUTE: &str = "/numbers/{series}";
pub(crate) const CLOSE_ROUTE: &str = "/numbers/{series}/close";
pub(crate) const RESUME_ROUTE: &str = "/numbers/{series}/resume";
pub(crate) const VOID_ROUTE: &str = "/numbers/{series}/{n}/void";

/// The maximum length of a body, in bytes.
const BODY_LEN_MAX: usize = 16 * 1024;

/// The maximum length of a number's text in JSON, in bytes, with its quotes and a comma. JSON
/// escapes `"` and `\`, the only such characters that a template may have, with a second byte.
const NUMBER_TEXT_LEN: usize = 2 * NumberTemplate::TEXT_LEN_MAX + "\"\",".len();

/// The default number of listed numbers.
const LIMIT: usize = 100;

/// The estimated time to read a page of numbers.
const PAGE_ESTIMATE: Duration = Duration::from_millis(2);

const EXAMPLE: &str = "POST /numbers/invoice-2026 Idempotency-Key: order-1";
const RESUME_EXAMPLE: &str = "POST /numbers/invoice-2026/resume?from=4712";
const LIST_EXAMPLE: &str = "GET /numbers";

/// Issues the next numbers of a series.
///
/// # Errors
/// Returns a [`Problem`] if the request fails. Unless the problem is 504 `outcome-unknown`, no
/// number was issued.
pub(crate) async fn give(State(service): State<Arc<Service>>, request: Request) -> Answer {
    give_next(&service, request)
        .await
        .map_err(|problem| problem.or_example(|| EXAMPLE.to_owned()))
}

async fn give_next(service: &Arc<Service>, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    negotiate(&parts.headers, &[MediaType::Json])?;
    let query = strict_query(
        parts.uri.query().unwrap_or_default(),
        &["count", "first", "instead_of"],
    )?;
    let [series] = path_params(ROUTE, &parts.uri)?;
    let series = SeriesName::from_text(&series)?;
    let number = |name| query.get(name).map(|text| read_number(name, text));
    let first = number("first").transpose()?;
    let wrong = number("instead_of").transpose()?;
    if let (Some(wrong), None) = (wrong, first) {
        let detail = format!(
            "instead_of={wrong} also needs the parameter first, with the right first number"
        );
        return Err(Problem::parameter("first", detail));
    }
    if let (Some(_), Some(permit)) = (first, permit_of(&parts.extensions)) {
        permit.check_scope(Scope::Import)?;
    }
    let count = whole_number(&query, "count", COUNT_MAX.into())?
        .and_then(|count| u32::try_from(count).ok());
    let count = count.and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN);
    let key = idempotency_key(&parts.headers)?;
    let detail = "a request for numbers must have no body; set the count with ?count=";
    no_body(body, service, detail).await?;
    let admitted = service.number_rules().admit(&series);
    let key = match (service.number_rules().kind(&series), key) {
        (NumberKind::Gapless, key) => key.ok_or_else(|| key_required("a number"))?,
        (NumberKind::Blocks { .. }, key) if first.is_some() => {
            key.ok_or_else(|| key_required("a first number"))?
        }
        (NumberKind::Blocks { reserve }, None) => {
            admitted.map_err(|refusal| RecordError::Number(refusal.into()))?;
            return give_block(service, &parts, series, count, reserve).await;
        }
        (NumberKind::Blocks { .. }, Some(_)) => {
            let detail = format!(
                "{series} is a series of blocks, which uses no keys: leave Idempotency-Key out"
            );
            let problem = Problem::new(Slug::InvalidParameter, detail).reason("idempotency-key");
            return Err(problem.or_example(|| format!("POST /numbers/{series}?count={count}")));
        }
    };
    let bounds = service.number_rules().bounds(&series);
    let form = form_of_new(service.number_rules(), &series);
    let request = NumberRequest {
        form,
        instead_of: wrong,
        refused: admitted.err(),
        ..NumberRequest::new(series, count, bounds, key, caller_of(&parts))
    };
    let request = match first {
        Some(first) => request.beginning_with(first),
        None => request,
    };
    let owner = owner_of(service, &parts.extensions);
    let reserved = reserve_answer(&owner, None, answer_len_max(count)).await?;
    let of_service = Arc::clone(service);
    let give = async move {
        let numbered = of_service.give_numbers(request).await?;
        Ok(paid_with(given(&of_service, &numbered), reserved))
    };
    DurableWork::of(&parts, &service.load().requests, give).await
}

/// Checks that a request has no body. `detail` is the text of the problem for a request with a
/// body.
async fn no_body(body: Body, service: &Service, detail: &str) -> Result<(), Problem> {
    let body = read_body(body, BODY_LEN_MAX, service.limits().body_timeout).await?;
    if body.is_empty() {
        Ok(())
    } else {
        Err(Problem::new(Slug::MalformedRequest, detail).reason("body"))
    }
}

/// Issues numbers from a reserved block of numbers, which the service keeps in memory.
async fn give_block(
    service: &Arc<Service>,
    parts: &Parts,
    series: SeriesName,
    count: NonZeroU32,
    reserve: NonZeroU32,
) -> Answer {
    let of_service = Arc::clone(service);
    let give = async move {
        let first = of_service.give_block(&series, count, reserve).await?;
        let (series, count) = (series.to_string(), count.get());
        let mut response = json(&BlockAnswer {
            series,
            first: first.to_string(),
            count,
        });
        mark_outcome(&mut response, false);
        response
            .headers_mut()
            .insert(IDMINT_COUNT, HeaderValue::from(count));
        Ok(response)
    };
    DurableWork::of(parts, &service.load().requests, give).await
}

/// Returns the form in which new numbers of a series are written as text. Returns `None` for a
/// series that issues blocks of numbers, because such numbers have no text.
fn form_of_new(rules: &NumberRules, series: &SeriesName) -> Option<NumberForm> {
    (rules.kind(series) == NumberKind::Gapless).then(|| rules.form(series))
}

/// Returns the maximum length of the response with `count` numbers, in bytes. The response repeats
/// the first text, and its other members are shorter than one more text.
fn answer_len_max(count: NonZeroU32) -> usize {
    let count = usize::try_from(count.get()).unwrap_or(usize::MAX);
    NUMBER_TEXT_LEN.saturating_mul(count.saturating_add(2))
}

fn given(service: &Service, numbered: &Numbered<GivenNumbers>) -> Response<Body> {
    let given = &numbered.stored;
    let form = service.number_form(&given.series, numbered.form.as_ref());
    let mut response = json(&number_answer(given, &form));
    mark_outcome(&mut response, numbered.is_replayed);
    response
        .headers_mut()
        .insert(IDMINT_COUNT, HeaderValue::from(given.count()));
    response
}

fn number_answer(given: &GivenNumbers, form: &NumberForm) -> NumberAnswer {
    let text = |number| form.text(number);
    let several =
        (given.count() > 1).then(|| (given.first..=given.last).map(text).collect::<Vec<_>>());
    NumberAnswer {
        series: given.series.to_string(),
        number: given.first.to_string(),
        text: text(given.first),
        count: several.as_ref().map(|_| given.count()),
        texts: several,
    }
}

/// Resumes a series that is held after a restore. A held series issues no numbers until an operator
/// resumes it. The path `*` stands for all held series.
///
/// # Errors
/// Returns a [`Problem`] if the request fails. The request may be repeated safely.
pub(crate) async fn resume(State(service): State<Arc<Service>>, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    negotiate(&parts.headers, &[MediaType::Json])?;
    let query = strict_query(parts.uri.query().unwrap_or_default(), &["from"])?;
    let [series] = path_params(RESUME_ROUTE, &parts.uri)?;
    let from = query
        .get("from")
        // Accept one number above the greatest. A series whose last number is the greatest one
        // continues there, and so ends.
        .map(|text| read_number_to(NUMBER_MAX + 1, "from", text))
        .transpose()?;
    let detail = "a request to resume a series must have no body";
    no_body(body, &service, detail).await?;
    let request = match (&*series, from) {
        ("*", None) => None,
        ("*", Some(_)) => {
            let detail = "from is only for a single series, because all series continue at their stored numbers; leave \
                          it out";
            return Err(Problem::parameter("from", detail).example("POST /numbers/*/resume"));
        }
        (_, None) => {
            let detail = "from is missing; set it to the highest number of the series in your own records, plus one";
            return Err(Problem::parameter("from", detail).example(RESUME_EXAMPLE));
        }
        (series, Some(from)) => {
            let series = SeriesName::from_text(series).map_err(Problem::from)?;
            Some(ResumeRequest {
                from,
                bounds: service.number_rules().bounds(&series),
                form: form_of_new(service.number_rules(), &series),
                by: caller_of(&parts).map(str::to_owned),
                series,
            })
        }
    };
    let (of_service, named) = (Arc::clone(&service), series.into_owned());
    let resume = async move {
        let (from, skipped) = match request {
            None => {
                of_service.resume_all_series().await?;
                (None, None)
            }
            Some(request) => {
                let from = request.from;
                (Some(from), of_service.resume_series(request).await?)
            }
        };
        Ok(json(&ResumeAnswer {
            series: named,
            next: from.map(|from| from.to_string()),
            skipped: skipped.map(|skipped| SkippedNumbers {
                first: skipped.first.to_string(),
                last: skipped.last.to_string(),
            }),
        }))
    };
    DurableWork::of(&parts, &service.load().requests, resume).await
}

/// Marks a number of a series as void, for the reason in the body.
///
/// # Errors
/// Returns a [`Problem`] if the request fails. Unless the problem is 504 `outcome-unknown`, the
/// number was not voided.
pub(crate) async fn make_void(State(service): State<Arc<Service>>, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    let example = || {
        format!(
            "POST {} {{\"reason\":\"the order was cancelled\"}}",
            parts.uri.path()
        )
    };
    let or_example = |problem: Problem| problem.or_example(example);
    negotiate(&parts.headers, &[MediaType::Json])?;
    query_of(&parts.uri, &[]).map_err(or_example)?;
    let [series, number] = path_params(VOID_ROUTE, &parts.uri)?;
    let (series, number) = (SeriesName::from_text(&series)?, read_number("n", &number)?);
    if let NumberKind::Blocks { .. } = service.number_rules().kind(&series) {
        let detail = format!(
            "{series} is a series of blocks, which has gaps, so its numbers cannot be void"
        );
        return Err(Problem::parameter("series", detail).example(LIST_EXAMPLE));
    }
    let body = read_body(body, BODY_LEN_MAX, service.limits().body_timeout).await?;
    media_type_of_body(&parts.headers, body.is_empty(), &[MediaType::Json])?;
    let reason = read_reason(&body).map_err(or_example)?;
    let request = VoidRequest {
        series,
        number,
        reason,
        by: caller_of(&parts).map(str::to_owned),
    };
    let of_service = Arc::clone(&service);
    let make_void = async move {
        let numbered = of_service.make_void(request).await?;
        Ok(voided(&of_service, &numbered))
    };
    DurableWork::of(&parts, &service.load().requests, make_void).await
}

fn read_reason(body: &[u8]) -> Result<VoidReason, Problem> {
    let Object(VoidBody { reason }) = strict_json(body, Slug::InvalidParameter)?;
    VoidReason::from_text(&reason).ok_or_else(|| {
        let detail = format!(
            "reason has {} bytes, but must have 1 to {REASON_LEN_MAX}, no control characters, and at least one that is \
             not a space",
            reason.len()
        );
        Problem::new(Slug::InvalidParameter, detail).reason("reason").limit(REASON_LEN_MAX.to_string())
    })
}

fn voided(service: &Service, numbered: &Numbered<VoidedNumber>) -> Response<Body> {
    let void = &numbered.stored;
    let form = service.number_form(&void.series, numbered.form.as_ref());
    let mut response = json(&void_answer(void, &form));
    mark_outcome(&mut response, numbered.is_replayed);
    response
}

fn void_answer(void: &VoidedNumber, form: &NumberForm) -> VoidAnswer {
    VoidAnswer {
        series: void.series.to_string(),
        number: void.number.to_string(),
        text: form.text(void.number),
        void: void_info(void),
    }
}

/// Closes a series, which then issues no more numbers.
///
/// # Errors
/// Returns a [`Problem`] if the request fails. The request may be repeated safely.
pub(crate) async fn close(State(service): State<Arc<Service>>, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    negotiate(&parts.headers, &[MediaType::Json])?;
    let example = || format!("POST {}", parts.uri.path());
    query_of(&parts.uri, &[]).map_err(|problem| problem.or_example(example))?;
    let [series] = path_params(CLOSE_ROUTE, &parts.uri)?;
    let series = SeriesName::from_text(&series)?;
    let detail = "a request to close a series must have no body";
    no_body(body, &service, detail).await?;
    let request = CloseRequest {
        series,
        by: caller_of(&parts).map(str::to_owned),
    };
    let of_service = Arc::clone(&service);
    let close = async move {
        let numbered = of_service.close_series(request).await?;
        let closed = &numbered.stored;
        let mut response = json(&CloseAnswer {
            series: closed.series.to_string(),
            last: closed.last.map(|last| last.to_string()),
            closed: close_info(closed),
        });
        mark_outcome(&mut response, numbered.is_replayed);
        Ok(response)
    };
    DurableWork::of(&parts, &service.load().requests, close).await
}

/// Lists all series that the caller may read, in pages.
///
/// # Errors
/// Returns a [`Problem`] if the request is invalid or the series cannot be read.
pub(crate) async fn list_series(State(service): State<Arc<Service>>, request: Request) -> Answer {
    negotiate(request.headers(), &[MediaType::Json])?;
    let query = query_of(request.uri(), &["after", "limit"])?;
    let after = query.get("after").map(SeriesName::from_text).transpose();
    let after = after.map_err(|error| Problem::from(error).example(LIST_EXAMPLE))?;
    let limit = page_limit(&query, PAGE_LEN);
    let limit = limit.map_err(|problem| problem.or_example(|| LIST_EXAMPLE.to_owned()))?;
    let among = permit_of(request.extensions())
        .and_then(Permit::series)
        .map(<[_]>::to_vec);
    let bulk = bulk_of(&service, request.extensions());
    let _pass = bulk.enter(PAGE_ESTIMATE)?;
    let read = move |service: &Service| {
        let page = service.series(among.as_deref(), after, limit)?;
        let next = page.next(|last| last.series.to_string());
        Ok(json(&SeriesList {
            series: page.items.iter().map(series_info).collect(),
            next,
        }))
    };
    read_page(&service, &bulk, read).await
}

/// Lists the numbers of a series, in pages.
///
/// # Errors
/// Returns a [`Problem`] if the request is invalid or the numbers cannot be read.
pub(crate) async fn list(State(service): State<Arc<Service>>, request: Request) -> Answer {
    negotiate(request.headers(), &[MediaType::Json])?;
    let query = query_of(request.uri(), &["after", "limit"])?;
    let [series] = path_params(ROUTE, request.uri())?;
    let series = SeriesName::from_text(&series)
        .map_err(|error| Problem::from(error).example(LIST_EXAMPLE))?;
    let asked = list_query(&query);
    let (after, limit) = asked
        .map_err(|problem| problem.or_example(|| format!("GET /numbers/{series}?limit=100")))?;
    let bulk = bulk_of(&service, request.extensions());
    let _pass = bulk.enter(PAGE_ESTIMATE)?;
    let read = move |service: &Service| {
        let page = service.numbers(&series, after, limit)?;
        let cursor = |last: &NumberRecord| last_of(service.number_rules(), last).to_string();
        let info = |listed: &NumberRecord| number_info(service, &page.forms, listed);
        let numbers = page.numbers.items.iter().map(info).collect();
        Ok(json(&NumberList {
            series: series.to_string(),
            closed: page.closed.as_ref().map(close_info),
            numbers,
            next: page.numbers.next(cursor),
        }))
    };
    read_page(&service, &bulk, read).await
}

fn list_query(query: &Query<'_>) -> Result<(Option<u64>, usize), Problem> {
    let after = query
        .get("after")
        .map(|text| read_number("after", text))
        .transpose()?;
    Ok((after, page_limit(query, LIMIT)?))
}

/// Parses a number of a series. `name` is the parameter of the path or the query that contains the
/// number.
fn read_number(name: &'static str, text: &str) -> Result<u64, Problem> {
    read_number_to(NUMBER_MAX, name, text)
}

/// Parses a number that is at most `max`, like [`read_number`].
fn read_number_to(max: u64, name: &'static str, text: &str) -> Result<u64, Problem> {
    let is_plain =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    let number = text
        .parse()
        .ok()
        .filter(|number| is_plain && *number <= max);
    number.ok_or_else(|| {
        let detail = format!(
            "{name} is {text:?}, but must be a whole number from 0 to {max}, as it is listed"
        );
        Problem::parameter(name, detail)
            .limit(max.to_string())
            .example(LIST_EXAMPLE)
    })
}

/// Returns the name of the caller's credential, such as "the token `billing`".
fn caller_of(parts: &Parts) -> Option<&str> {
    permit_of(&parts.extensions).map(Permit::shown_by)
}

fn series_info(summary: &SeriesSummary) -> SeriesInfo {
    SeriesInfo {
        series: summary.series.to_string(),
        first: summary.first.to_string(),
        last: summary.last.to_string(),
        updated: summary.updated.to_string(),
        closed: summary.closed.as_ref().map(close_info),
    }
}

fn number_info(service: &Service, forms: &[FormChange], listed: &NumberRecord) -> NumberInfo {
    let (number, given) = (listed.number, &listed.given);
    let form = service.number_form(&given.series, FormChange::form_at(forms, number));
    NumberInfo {
        number: number.to_string(),
        last: is_range(service.number_rules(), listed).then(|| given.last.to_string()),
        text: form.text(number),
        time: given.recorded.to_string(),
        key: format!("{:032x}", given.mark.key.0),
        by: given.by.clone(),
        void: listed.void.as_ref().map(void_info),
    }
}

/// `true` if this record's series issues numbers in blocks. The record then stands for a whole
/// block, even if the block has only one number.
fn is_range(rules: &NumberRules, listed: &NumberRecord) -> bool {
    matches!(rules.kind(&listed.given.series), NumberKind::Blocks { .. })
}

/// Returns the last number of a record, which has a block of consecutive numbers or a single one.
fn last_of(rules: &NumberRules, listed: &NumberRecord) -> u64 {
    match is_range(rules, listed) {
        true => listed.given.last,
        false => listed.number,
    }
}

fn void_info(void: &VoidedNumber) -> VoidInfo {
    VoidInfo {
        reason: void.reason.as_str().to_owned(),
        time: void.recorded.to_string(),
        by: void.by.clone(),
    }
}

fn close_info(closed: &ClosedSeries) -> CloseInfo {
    CloseInfo {
        time: closed.recorded.to_string(),
        by: closed.by.clone(),
    }
}

impl From<SeriesNameError> for Problem {
    fn from(error: SeriesNameError) -> Problem {
        Problem::parameter("series", error.to_string()).example(EXAMPLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::json_bytes;
    use crate::request::ANSWER_LEN_SHORT;
    use idmint_records::ledger::{CALLER_LEN_MAX, EventTime, FormerTemplate, KeyHash, RequestMark};

    /// Returns the longest name of a series, and the form of its texts that is longest in JSON.
    fn longest() -> (SeriesName, NumberForm) {
        let series = SeriesName::from_text(&"s".repeat(64)).expect("a name");
        let quotes = "\"".repeat(128 - "{series}{n:019}".len());
        let line = format!("*\t{quotes}{{series}}{{n:019}}\tmod97\t-\t0-{NUMBER_MAX}");
        let template = FormerTemplate::from_line(&line).expect("a template of 128 bytes");
        let form = template.form_of(&series).expect("every series matches");
        (series, form)
    }

    #[test]
    fn an_answer_with_the_longest_texts_is_no_longer_than_reserved() {
        let (series, form) = longest();
        for count in (1..=20).chain([COUNT_MAX]) {
            let given = GivenNumbers {
                series: series.clone(),
                first: NUMBER_MAX - u64::from(count) + 1,
                last: NUMBER_MAX,
                recorded: EventTime::from_micros(0).expect("in range"),
                mark: RequestMark {
                    key: KeyHash(0),
                    digest: [0; 32],
                },
                by: None,
            };
            let len = json_bytes(&number_answer(&given, &form)).len();
            let len_max = answer_len_max(NonZeroU32::new(count).expect("not 0"));
            assert!(len <= len_max, "{count}: {len} > {len_max}");
        }
    }

    #[test]
    fn the_longest_answer_about_a_void_number_needs_no_reservation() {
        let (series, form) = longest();
        let void = VoidedNumber {
            series,
            number: NUMBER_MAX,
            recorded: EventTime::from_micros(0).expect("in range"),
            reason: VoidReason::from_text(&"\"".repeat(REASON_LEN_MAX)).expect("a reason"),
            by: Some("\u{1}".repeat(CALLER_LEN_MAX)),
        };
        let len = json_bytes(&void_answer(&void, &form)).len();
        assert!(len <= 2 * ANSWER_LEN_SHORT, "{len}");
    }
}
