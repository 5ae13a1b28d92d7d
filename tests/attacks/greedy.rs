//! Attackers whose requests cause long work or long responses. Each sends its next request as soon
//! as it has a response.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::aim::Aim;
use super::ask::{self, Ask};
use super::attacker::Attacker;
use super::bodies;
use super::door::Door;
use super::listed;
use idmint_testing::http1::request;

pub(super) const REPORTERS: usize = 32;
pub(super) const PAGERS: usize = 48;
pub(super) const LISTERS: usize = 32;
pub(super) const UNREAD: usize = 300;
pub(super) const DECODERS: usize = 32;
pub(super) const MINTERS: usize = 1_000;
pub(super) const SPENDERS: usize = 3;

/// The length of a body in bytes. It is below 64 KiB, so that the length alone does not make the
/// request count as long work.
const BODY_LEN: usize = 60 * 1024;

/// The approximate length of one refusal in bytes. The constants below are the lengths of other
/// responses.
pub(super) const REFUSAL_LEN: usize = 600;
pub(super) const PAGE_LEN: usize = 140_000;
pub(super) const FORMATS_LEN: usize = 137_000;
pub(super) const SINGLE_LEN: usize = 66;

const EVENTS: usize = 1_000;

/// The number of requests that an attacker sends before it reads a response. `PIPELINED_UNREAD` is
/// the number for an attacker that reads no response.
const PIPELINED: usize = 16;
const PIPELINED_UNREAD: usize = 60;

/// Returns a request whose body contains the maximum number of empty reports.
pub(super) fn empty_reports() -> Ask {
    let item = "{},";
    let body = format!("[{}{{}}]", item.repeat(BODY_LEN / item.len() - 1));
    Ask::post_json("/ids/conjunction?partial=true", body)
}

pub(super) fn reports(aim: &Aim) -> JoinSet<()> {
    ask::again(aim, REPORTERS, &empty_reports(), 1)
}

/// Sends 10 000 invalid reports, which is the maximum number that get an error of their own. The
/// response has several megabytes, and the attacker reads it.
pub(super) fn told_reports(aim: &Aim) -> JoinSet<()> {
    let body = format!("[{}{{}}]", "{},".repeat(9_999));
    ask::again(
        aim,
        REPORTERS,
        &Ask::post_json("/ids/conjunction?partial=true", body),
        1,
    )
}

/// Creates a ledger with one page of events.
pub(super) fn prepare_page(door: &Door) {
    listed::fill(door, 1, EVENTS);
}

pub(super) fn page(ledger: &str) -> Ask {
    Ask::get(format!("/ledgers/{ledger}/ids"))
}

/// Requests a page of a ledger over and over. The control has no ledgers, but sends a response of
/// the same length.
pub(super) fn pages(aim: &Aim) -> JoinSet<()> {
    ask::again(aim, PAGERS, &page(&listed::any_ledger(&aim.door)), 1)
}

pub(super) fn formats() -> Ask {
    Ask::get("/formats")
}

pub(super) fn lists_of_formats(aim: &Aim) -> JoinSet<()> {
    ask::again(aim, LISTERS, &formats(), PIPELINED)
}

/// Decodes the maximum number of texts with full details. Each text causes about 4 000 bytes of
/// response.
pub(super) fn decodes_in_full(aim: &Aim) -> JoinSet<()> {
    ask::again(
        aim,
        DECODERS,
        &Ask::post_lines("/decode?detail=full", "1\n".repeat(BODY_LEN / 2)),
        1,
    )
}

/// Decodes 39 texts that are not ids. The service counts this request as short work until it takes
/// long.
pub(super) fn decodes_of_no_ids(aim: &Aim) -> JoinSet<()> {
    let texts = "0123456789abcdef0123456789abcde\n".repeat(39);
    let ask = Ask::post_lines("/decode?detail=full", texts);
    ask::again(aim, DECODERS, &ask, PIPELINED)
}

pub(super) fn single() -> Ask {
    Ask::post("/ids/snowflake")
}

/// Mints one id with each request, and sends the next request as soon as it has a response.
pub(super) fn singles(aim: &Aim) -> JoinSet<()> {
    ask::again(aim, MINTERS, &single(), 1)
}

pub(super) fn interfaces(aim: &Aim) -> JoinSet<()> {
    ask::unread(aim, UNREAD, &Ask::get("/openapi.yaml"), PIPELINED_UNREAD)
}

/// Sends, in turn, the body that costs the service the most time on each POST route. Each attacker
/// begins with another route.
pub(super) fn dearest_bodies(aim: &Aim) -> JoinSet<()> {
    let ledger = listed::any_ledger(&aim.door);
    let lines = |line: &str, len: usize| line.repeat(len / line.len());
    let no_ids = |len| lines("0123456789abcdef0123456789abcde\n", len);
    let event = r#"{"event":"Counted","entities":{},"eventId":"0005cd7556b05092aecc815daa77f99c"}"#;
    let post = |target: &str, media: &str, body: &str| {
        let headers = format!("content-type: {media}\r\n");
        request(&format!("POST {target}"), &headers, body)
    };
    let text = |target: &str, body: String| post(target, "text/plain", &body);
    let requests = Arc::new([
        post("/ids/uuid4?count=100000", "application/json", ""),
        post(
            "/ids/conjunction",
            "application/json",
            &bodies::many_reports(),
        ),
        text("/decode", no_ids(bodies::DECODE_LEN)),
        text("/decode?detail=full", no_ids(BODY_LEN)),
        text("/decode?column=true", no_ids(bodies::DECODE_LEN)),
        text("/inspect", no_ids(bodies::DECODE_LEN)),
        text(
            &format!("/ledgers/{ledger}/verify"),
            lines(&format!("{event}\n"), bodies::DECODE_LEN),
        ),
    ]);
    let events = vec![r#"{"event":"Counted","entities":{}}"#; listed::EVENTS].join(",");
    let append: Arc<str> = format!(r#"{{"ledger":"{ledger}","events":[{events}]}}"#).into();
    aim.attackers(SPENDERS, move |aim, number| {
        let (requests, append) = (Arc::clone(&requests), Arc::clone(&append));
        async move {
            let mut attacker = Attacker::connect(&aim, number).await;
            for turn in number * requests.len() / SPENDERS.. {
                // An append with a key that was used before would get the stored response.
                let headers = format!(
                    "content-type: application/json\r\nidempotency-key: {number}-{turn}\r\n"
                );
                let append = || request("POST /ids/evently", &headers, &append).into_bytes();
                let is_sent = match requests.get(turn % (requests.len() + 1)) {
                    Some(request) => attacker.send(request.as_bytes()).await,
                    None => attacker.send(&append()).await,
                };
                attacker.deeds.requests.add(1);
                if !is_sent || attacker.next_status().await.is_none() {
                    attacker = Attacker::connect(&aim, number).await;
                }
            }
        }
    })
}
