//! Callers whose short requests cause long work or long responses. Each sends the next request as
//! soon as it has a response.

use tokio::task::JoinSet;

use super::aim::Aim;
use super::ask::{self, Ask};
use super::door::Door;
use super::listed;

pub(super) const REPORTERS: usize = 32;
pub(super) const PAGERS: usize = 48;
pub(super) const LISTERS: usize = 32;
pub(super) const UNREAD: usize = 300;
pub(super) const DECODERS: usize = 32;
pub(super) const MINTERS: usize = 1_000;

/// Length of the longest body that is not expensive by its length alone.
const BODY_LEN: usize = 60 * 1024;

/// Approximate lengths of the responses in bytes.
pub(super) const REFUSAL_LEN: usize = 600;
pub(super) const PAGE_LEN: usize = 140_000;
pub(super) const FORMATS_LEN: usize = 137_000;
pub(super) const SINGLE_LEN: usize = 66;

const EVENTS: usize = 1_000;

/// Number of requests that a caller sends before it reads a response, or without reading any.
const PIPELINED: usize = 16;
const PIPELINED_UNREAD: usize = 60;

/// Returns a request with as many empty reports as fit into the body.
pub(super) fn empty_reports() -> Ask {
    let item = "{},";
    let body = format!("[{}{{}}]", item.repeat(BODY_LEN / item.len() - 1));
    Ask::post_json("/ids/conjunction?partial=true", body)
}

pub(super) fn reports(aim: &Aim) -> JoinSet<()> {
    ask::again(aim, REPORTERS, &empty_reports(), 1)
}

/// Sends the maximum number of reports that get an error of their own, all of them invalid. The
/// response has megabytes, and the attacker reads it.
pub(super) fn told_reports(aim: &Aim) -> JoinSet<()> {
    let body = format!("[{}{{}}]", "{},".repeat(9_999));
    ask::again(
        aim,
        REPORTERS,
        &Ask::post_json("/ids/conjunction?partial=true", body),
        1,
    )
}

/// Creates a ledger with one page of events in the service.
pub(super) fn prepare_page(door: &Door) {
    listed::fill(door, 1, EVENTS);
}

pub(super) fn page(ledger: &str) -> Ask {
    Ask::get(format!("/ledgers/{ledger}/ids"))
}

/// Reads a page of a ledger of the service. The control has no ledgers, but answers any request.
pub(super) fn pages(aim: &Aim) -> JoinSet<()> {
    ask::again(aim, PAGERS, &page(&listed::any_ledger(&aim.door)), 1)
}

pub(super) fn formats() -> Ask {
    Ask::get("/formats")
}

pub(super) fn lists_of_formats(aim: &Aim) -> JoinSet<()> {
    ask::again(aim, LISTERS, &formats(), PIPELINED)
}

/// Decodes as many texts as fit, in full detail. Each text sent causes 4 000 bytes of response.
pub(super) fn decodes_in_full(aim: &Aim) -> JoinSet<()> {
    ask::again(
        aim,
        DECODERS,
        &Ask::post_lines("/decode?detail=full", "1\n".repeat(BODY_LEN / 2)),
        1,
    )
}

/// Decodes 39 texts that are no ids, which counts as short work until it takes long.
pub(super) fn decodes_of_no_ids(aim: &Aim) -> JoinSet<()> {
    let texts = "0123456789abcdef0123456789abcde\n".repeat(39);
    let ask = Ask::post_lines("/decode?detail=full", texts);
    ask::again(aim, DECODERS, &ask, PIPELINED)
}

pub(super) fn single() -> Ask {
    Ask::post("/ids/snowflake")
}

/// Mints one id after the other, as fast as responses come.
pub(super) fn singles(aim: &Aim) -> JoinSet<()> {
    ask::again(aim, MINTERS, &single(), 1)
}

pub(super) fn interfaces(aim: &Aim) -> JoinSet<()> {
    ask::unread(aim, UNREAD, &Ask::get("/openapi.yaml"), PIPELINED_UNREAD)
}
