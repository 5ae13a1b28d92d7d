//! Callers whose short requests are long work, or long answers, and who want the next as soon as they have one.

use std::fmt::Write as _;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::aim::Aim;
use super::attacker::Attacker;
use super::listed;
use crate::http1::{post_json, request};

pub(super) const REPORTERS: usize = 32;
pub(super) const PAGERS: usize = 48;
pub(super) const LISTERS: usize = 32;
pub(super) const UNREAD: usize = 300;
pub(super) const DECODERS: usize = 32;

/// The longest body that is not long by itself.
const BODY_LEN: usize = 60 * 1024;

/// About how long the answers are.
pub(super) const REFUSAL_LEN: usize = 600;
pub(super) const PAGE_LEN: usize = 140_000;
pub(super) const FORMATS_LEN: usize = 137_000;

const EVENTS: usize = 1_000;

/// So many requests are sent before an answer is read, or none is.
const PIPELINED: usize = 16;
const PIPELINED_UNREAD: usize = 60;

/// What the kernel keeps for a caller that does not read.
const RECEIVE_LEN: u32 = 2_304;

/// Each sends this so many times, reads all answers, and sends it again.
fn ask_again(aim: &Aim, callers: usize, ask: String, times: usize) -> JoinSet<()> {
    let asks: Arc<str> = ask.repeat(times).into();
    aim.attackers(callers, move |aim, number| {
        let asks = Arc::clone(&asks);
        async move {
            loop {
                let mut attacker = Attacker::connect(&aim, number).await;
                while attacker.send(asks.as_bytes()).await {
                    attacker.deeds.requests.add(times);
                    for _ in 0..times {
                        if attacker.next_status().await.is_none() {
                            break;
                        }
                    }
                }
            }
        }
    })
}

/// Reports of nothing, as many as fit.
pub(super) fn empty_reports() -> String {
    let item = "{},";
    let body = format!("[{}{{}}]", item.repeat(BODY_LEN / item.len() - 1));
    post_json("/ids/conjunction?partial=true", "", &body)
}

pub(super) fn reports(aim: &Aim) -> JoinSet<()> {
    ask_again(aim, REPORTERS, empty_reports(), 1)
}

/// Reports that are none, as many as are told apart.
pub(super) fn refused_reports() -> String {
    let body = format!("[{}{{}}]", "{},".repeat(9_999));
    post_json("/ids/conjunction?partial=true", "", &body)
}

/// Whoever sends as many as are told apart has an answer of megabytes, and reads it.
pub(super) fn told_reports(aim: &Aim) -> JoinSet<()> {
    ask_again(aim, REPORTERS, refused_reports(), 1)
}

/// Gives the service a ledger of a page.
pub(super) fn prepare_page(service: &crate::service::Service) {
    listed::fill(service, 1, EVENTS);
}

pub(super) fn page(ledger: &str) -> String {
    request(&format!("GET /ledgers/{ledger}/ids"), "", "")
}

/// The control has no ledgers, and answers whatever is asked.
pub(super) fn pages(aim: &Aim) -> JoinSet<()> {
    ask_again(aim, PAGERS, page(&listed::any_ledger(aim.service)), 1)
}

pub(super) fn formats() -> String {
    request("GET /formats", "", "")
}

pub(super) fn lists_of_formats(aim: &Aim) -> JoinSet<()> {
    ask_again(aim, LISTERS, formats(), PIPELINED)
}

/// As many texts as fit, of which everything is told: 4 000 bytes for each that is sent.
pub(super) fn decodes_in_full(aim: &Aim) -> JoinSet<()> {
    let body = "1\n".repeat(BODY_LEN / 2);
    let head = format!("content-type: text/plain\r\naccept: text/plain\r\ncontent-length: {}\r\n", body.len());
    ask_again(aim, DECODERS, request("POST /decode?detail=full", &head, &body), 1)
}

/// Each sends all of these, and reads nothing.
fn ask_unread(aim: &Aim, callers: usize, ask: &str, times: usize) -> JoinSet<()> {
    let mut asks = String::new();
    (0..times).for_each(|_| asks.write_str(ask).unwrap());
    let asks: Arc<str> = asks.into();
    aim.attackers(callers, move |aim, number| {
        let asks = Arc::clone(&asks);
        async move {
            let mut attacker = Attacker::connect_with(&aim, number, Some(RECEIVE_LEN)).await;
            let is_sent = attacker.send(asks.as_bytes()).await;
            attacker.deeds.requests.add(if is_sent { times } else { 0 });
            attacker.hold().await;
        }
    })
}

pub(super) fn interfaces(aim: &Aim) -> JoinSet<()> {
    ask_unread(aim, UNREAD, &request("GET /openapi.yaml", "", ""), PIPELINED_UNREAD)
}
