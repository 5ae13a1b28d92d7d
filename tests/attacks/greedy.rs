//! Callers whose short requests are long work, or long answers, and who want the next as soon as they have one.

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

/// The longest body that is not long by itself.
const BODY_LEN: usize = 60 * 1024;

/// About how long the answers are.
pub(super) const REFUSAL_LEN: usize = 600;
pub(super) const PAGE_LEN: usize = 140_000;
pub(super) const FORMATS_LEN: usize = 137_000;
pub(super) const SINGLE_LEN: usize = 66;

const EVENTS: usize = 1_000;

/// So many requests are sent before an answer is read, or none is.
const PIPELINED: usize = 16;
const PIPELINED_UNREAD: usize = 60;

/// Reports of nothing, as many as fit.
pub(super) fn empty_reports() -> Ask {
    let item = "{},";
    let body = format!("[{}{{}}]", item.repeat(BODY_LEN / item.len() - 1));
    Ask::post_json("/ids/conjunction?partial=true", body)
}

pub(super) fn reports(aim: &Aim) -> JoinSet<()> {
    ask::again(aim, REPORTERS, &empty_reports(), 1)
}

/// Reports that are none, as many as are told apart. Whoever sends them has an answer of megabytes, and reads it.
pub(super) fn told_reports(aim: &Aim) -> JoinSet<()> {
    let body = format!("[{}{{}}]", "{},".repeat(9_999));
    ask::again(
        aim,
        REPORTERS,
        &Ask::post_json("/ids/conjunction?partial=true", body),
        1,
    )
}

/// Gives the service a ledger of a page.
pub(super) fn prepare_page(door: &Door) {
    listed::fill(door, 1, EVENTS);
}

pub(super) fn page(ledger: &str) -> Ask {
    Ask::get(format!("/ledgers/{ledger}/ids"))
}

/// The control has no ledgers, and answers whatever is asked.
pub(super) fn pages(aim: &Aim) -> JoinSet<()> {
    ask::again(aim, PAGERS, &page(&listed::any_ledger(&aim.door)), 1)
}

pub(super) fn formats() -> Ask {
    Ask::get("/formats")
}

pub(super) fn lists_of_formats(aim: &Aim) -> JoinSet<()> {
    ask::again(aim, LISTERS, &formats(), PIPELINED)
}

/// As many texts as fit, of which everything is told: 4 000 bytes for each that is sent.
pub(super) fn decodes_in_full(aim: &Aim) -> JoinSet<()> {
    ask::again(
        aim,
        DECODERS,
        &Ask::post_lines("/decode?detail=full", "1\n".repeat(BODY_LEN / 2)),
        1,
    )
}

pub(super) fn single() -> Ask {
    Ask::post("/ids/snowflake")
}

/// Each wants one id after the other, as fast as they come.
pub(super) fn singles(aim: &Aim) -> JoinSet<()> {
    ask::again(aim, MINTERS, &single(), 1)
}

pub(super) fn interfaces(aim: &Aim) -> JoinSet<()> {
    ask::unread(aim, UNREAD, &Ask::get("/openapi.yaml"), PIPELINED_UNREAD)
}
