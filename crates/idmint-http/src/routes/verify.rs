//! `POST /ledgers/{ledger}/verify`: checks that the events in the body form a chain of this ledger.
//! It does not read stored events.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use bytes::Bytes;

use super::ledgers::LIST_EXAMPLE;
use crate::access::{Permit, permit_of};
use crate::answer::{Answer, MediaType, Problem, Slug, json, media_type_of_body, negotiate};
use crate::request::{
    bulk_of, event_before, ledger_id, next_piece, owner_of, path_params, query_of, work_on,
};
use idmint_records::ledger::{ChainChecker, ChainLines, LineTooLong};
use idmint_service::{PeerBulk, Service};
use idmint_wire::LedgerCheck;

pub(crate) const ROUTE: &str = "/ledgers/{ledger}/verify";

/// The accepted media types. In each of them, the body has one event per line.
const READ: [MediaType; 3] = [MediaType::Ndjson, MediaType::Text, MediaType::OctetStream];

/// The maximum number of bytes of events that another thread verifies in one step.
const PART_LEN_MAX: usize = 64 * 1024;

/// The maximum number of bytes of events that are verified at once, on the thread that serves the
/// request.
const CHECKED_AT_ONCE_MAX: usize = 4 * 1024;

/// An example request that works for a caller who may read this ledger.
const EXAMPLE: &str = r#"POST /ledgers/aa77f99c/verify {"event":"Ledger Created","entities":{"ledger":"testing⑆preview"},"timestamp":"2021-10-03T16:32:12.816530Z","meta":{"actor":"matt"},"data":{"name":"My Ledger","description":"This ledger is for my example events."},"eventId":"0005cd7556b05092aecc815daa77f99c"}"#;

/// Verifies that the events in the body, one per line, form a chain of this ledger. Verification
/// works even while the service cannot mint.
///
/// # Errors
/// Returns 400, 408, 413, 415 or 422. 413 means that a line is too long. A broken chain is not an
/// error.
pub(crate) async fn verify(State(service): State<Arc<Service>>, request: Request) -> Answer {
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
    let query = query_of(&parts.uri, &["after"])?;
    let after = query
        .get("after")
        .map(|text| event_before(text, ledger))
        .transpose()?;
    media_type_of_body(&parts.headers, body.is_end_stream(), &READ)?;
    let len_max =
        usize::try_from(body.size_hint().upper().unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let _reserved = owner_of(service, &parts.extensions)
        .reserve(2 * len_max.min(LineTooLong::LEN_MAX))
        .await?;
    let bulk = bulk_of(service, &parts.extensions);
    let mut lines = ChainLines::new(ChainChecker::new(ledger, after));
    while let Some(mut piece) = piece_within(&mut body, service.limits().body_timeout).await? {
        while !piece.is_empty() {
            let part = piece.split_to(piece.len().min(PART_LEN_MAX));
            lines = read(lines, part, &bulk).await?;
        }
    }
    let aside = (lines.open_len() > CHECKED_AT_ONCE_MAX).then_some(&bulk);
    let verdict = work_on(aside, move || lines.end()).await;
    if verdict.events == 0 {
        let detail = "the body is empty; send one event a line, each with its eventId";
        return Err(Problem::parameter("body", detail));
    }
    Ok(LedgerCheck::of(verdict))
}

/// Returns the next chunk of a body. A body may have any length, so each chunk has its own timeout.
async fn piece_within(body: &mut Body, timeout: Duration) -> Result<Option<Bytes>, Problem> {
    tokio::time::timeout(timeout, next_piece(body))
        .await
        .unwrap_or_else(|_| {
            let detail = format!("nothing more of the body arrived within {timeout:?}");
            Err(Problem::new(Slug::RequestTimeout, detail).limit(format!("{timeout:?}")))
        })
}

/// Checks each event whose line ends within `part`, the next bytes of the body. A long part is
/// checked on another thread.
async fn read(mut lines: ChainLines, part: Bytes, bulk: &PeerBulk) -> Result<ChainLines, Problem> {
    let read = if lines.open_len() + part.len() <= CHECKED_AT_ONCE_MAX {
        let read = lines.read(&part);
        tokio::task::yield_now().await;
        read.map(|()| lines)
    } else {
        bulk.work_aside(move || lines.read(&part).map(|()| lines))
            .await
    };
    read.map_err(|too_long| {
        let problem = Problem::new(Slug::PayloadTooLarge, too_long.to_string());
        problem.limit(format!("{} bytes a line", LineTooLong::LEN_MAX))
    })
}
