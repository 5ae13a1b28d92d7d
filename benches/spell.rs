//! What an id costs between its reservation and the bytes of the answer: under 10 ns as decimal number, 15 ns with 56
//! random bits.
//!
//! Measured is the router's whole answer to a mint of 100 000 ids as JSON, as it is handed to a connection, piece by
//! piece: ids are computed, spelled and framed as `"…",`. What else a request costs is spread over so many ids that it
//! does not show. The others write the same ids in the same frame, computed before, with `itoa` and with `format!`.

mod harness;

use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use harness::comparison::{Comparison, Target, timed};
use harness::workshop::{YEARS, service};
use http_body_util::BodyExt;
use idmint::http;
use idmint::http::Api;
use idmint::http::metrics::HttpMetrics;
use prometheus::Registry;
use tokio::runtime::Runtime;
use tower::ServiceExt;

const IDS: u32 = 100_000;
const ROUNDS: usize = 31;

/// About as many bytes as a connection is handed at once.
const PIECE_LEN: usize = 64 * 1024;

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let service = service(&runtime, YEARS);
    let metrics = HttpMetrics::register(&Registry::new(), &http::paths()).expect("an empty registry");
    let router = Api::new(service, Arc::new(metrics));
    let mut comparison = Comparison::new();
    for (path, target) in [
        ("snowflake?encoding=decimal", Target::Under(10.0)),
        ("flax?encoding=base64_lex", Target::Under(15.0)),
        ("payment-90ms?encoding=base36", Target::None),
        ("siq?encoding=hex_padded", Target::None),
        ("conjunction-v1?encoding=decimal", Target::None),
        ("snowflake?encoding=hashids", Target::None),
    ] {
        let (router, runtime) = (&router, &runtime);
        comparison.add(path.replace("?encoding=", " as "), target, move || {
            timed(IDS, || assert!(runtime.block_on(answer_len(router, path)) > 0))
        });
    }
    comparison.add("ids of that size, `itoa`", Target::None, || timed(IDS, || written(with_itoa)));
    comparison.add("ids of that size, `write!`", Target::None, || timed(IDS, || written(with_write)));
    comparison.add("ids of that size, `format!`", Target::None, || timed(IDS, || written(with_format)));
    comparison.run("An id in an answer of 100 000", ROUNDS);
}

/// Mints, takes the answer as a connection does, and says how long it was.
async fn answer_len(router: &Api, path: &str) -> usize {
    let request = Request::post(format!("/ids/{path}&count={IDS}")).body(Body::empty()).expect("a request");
    let response = router.clone().oneshot(request).await.expect("the router answers everything");
    assert!(response.status().is_success(), "{path}: {}", response.status());
    let mut body = response.into_body();
    let mut len = 0;
    while let Some(frame) = body.frame().await {
        len += black_box(frame.expect("bodies do not fail").into_data().expect("no trailers")).len();
    }
    len
}

/// As many ids as [`IDS`], in pieces as an answer has them.
fn written(write: impl Fn(u64, &mut String)) {
    let mut piece = String::new();
    for number in 0..u64::from(IDS) {
        if piece.len() >= PIECE_LEN {
            black_box(std::mem::take(&mut piece));
        }
        if piece.is_empty() {
            piece.reserve(PIECE_LEN + PIECE_LEN / 8);
        }
        write(black_box(1_587_974_656_345_886_720) + number, &mut piece);
    }
    black_box(piece);
}

fn with_itoa(id: u64, piece: &mut String) {
    piece.push('"');
    piece.push_str(itoa::Buffer::new().format(id));
    piece.push_str("\",");
}

fn with_write(id: u64, piece: &mut String) {
    write!(piece, "\"{id}\",").expect("a string takes everything");
}

fn with_format(id: u64, piece: &mut String) {
    piece.push_str(&format!("\"{id}\","));
}
