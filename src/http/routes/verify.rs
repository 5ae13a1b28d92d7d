//! `POST /ledgers/{ledger}/verify`: does this chain of events hold? Reads what is sent, and nothing that is stored.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::Response;
use bytes::Bytes;

use super::ledgers::LIST_EXAMPLE;
use crate::http::access::{Permit, permit_of};
use crate::http::answer::{MediaType, Problem, Slug, json, media_type_of_body, negotiate};
use crate::http::request::{
    event_before, ledger_id, next_piece, path_params, payer_of, strict_query,
};
use crate::ledger::{ChainChecker, ChainLines, LineTooLong};
use crate::service::{Requests, Service};
use crate::wire::LedgerCheck;

pub(in crate::http) const ROUTE: &str = "/ledgers/{ledger}/verify";

/// The bytes are the same in each.
const READ: [MediaType; 3] = [MediaType::Ndjson, MediaType::Text, MediaType::OctetStream];

/// As much is checked before the thread is left to others; a longer line is checked on a thread of its own.
const CHECKED_AT_ONCE_MAX: usize = 64 * 1024;

/// A request that works for a caller who may read this ledger.
const EXAMPLE: &str = r#"POST /ledgers/aa77f99c/verify {"event":"Ledger Created","entities":{"ledger":"testing⑆preview"},"timestamp":"2021-10-03T16:32:12.816530Z","meta":{"actor":"matt"},"data":{"name":"My Ledger","description":"This ledger is for my example events."},"eventId":"0005cd7556b05092aecc815daa77f99c"}"#;

/// Whether the events of the body, one a line, are a chain of this ledger. Works while nothing can be minted.
///
/// # Errors
/// 400, 408, 413 for a line that is too long, 415, 422. A chain that does not hold is no error.
pub(in crate::http) async fn verify(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let is_confined = permit_of(request.extensions())
        .and_then(Permit::ledgers)
        .is_some();
    let example = if is_confined { LIST_EXAMPLE } else { EXAMPLE };
    let checked = check(&service, request).await;
    checked
        .map(|check| json(&check))
        .map_err(|problem| problem.or_example(|| example.to_owned()))
}

async fn check(service: &Service, request: Request) -> Result<LedgerCheck, Problem> {
    let (parts, mut body) = request.into_parts();
    negotiate(&parts.headers, &[MediaType::Json])?;
    let [ledger] = path_params(ROUTE, &parts.uri)?;
    let ledger = ledger_id(&ledger)?;
    let query = strict_query(parts.uri.query().unwrap_or_default(), &["after"])?;
    let after = query
        .get("after")
        .map(|text| event_before(text, ledger))
        .transpose()?;
    media_type_of_body(&parts.headers, body.is_end_stream(), &READ)?;
    let len_max =
        usize::try_from(body.size_hint().upper().unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let _paid = payer_of(service, &parts.extensions)
        .pay(2 * len_max.min(LineTooLong::LEN_MAX))
        .await?;
    let mut lines = ChainLines::new(ChainChecker::new(ledger, after));
    while let Some(mut piece) = piece_within(&mut body, service.limits().body_timeout).await? {
        while !piece.is_empty() {
            let part = piece.split_to(piece.len().min(CHECKED_AT_ONCE_MAX));
            lines = read(lines, part, &service.load().requests).await?;
        }
    }
    let verdict = lines.end();
    if verdict.events == 0 {
        let detail = "the body is empty, it must be one event a line, each with its eventId";
        return Err(Problem::new(Slug::InvalidParameter, detail).reason("body"));
    }
    Ok(LedgerCheck::of(verdict))
}

/// The next piece of a body that may be of any length, so each piece has a time of its own.
async fn piece_within(body: &mut Body, timeout: Duration) -> Result<Option<Bytes>, Problem> {
    tokio::time::timeout(timeout, next_piece(body))
        .await
        .unwrap_or_else(|_| {
            let detail = format!("nothing more of the body arrived within {timeout:?}");
            Err(Problem::new(Slug::RequestTimeout, detail).limit(format!("{timeout:?}")))
        })
}

/// Checks the lines that end in this part.
async fn read(
    mut lines: ChainLines,
    part: Bytes,
    requests: &Requests,
) -> Result<ChainLines, Problem> {
    let read = if lines.open_len() + part.len() <= CHECKED_AT_ONCE_MAX {
        let read = lines.read(&part);
        tokio::task::yield_now().await;
        read.map(|()| lines)
    } else {
        requests
            .work_aside(move || lines.read(&part).map(|()| lines))
            .await
    };
    read.map_err(|too_long| {
        let problem = Problem::new(Slug::PayloadTooLarge, too_long.to_string());
        problem.limit(format!("{} bytes a line", LineTooLong::LEN_MAX))
    })
}
