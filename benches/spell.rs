//! Measures the work from the reservation of an id to the bytes of the response, compared with
//! plain code. The goals are to be 5 times as fast as `itoa` in decimal, 3 times as fast as a digit
//! loop in base 36, and 3 times as fast as `format!` in hexadecimal.
//!
//! The first part measures the router's whole response to a mint of 100 000 ids as JSON, chunk by
//! chunk, as a connection receives it. The response computes ids, writes them, and frames them as
//! `"…",`. The fixed cost of a request is negligible for this many ids. The plain code writes the
//! same ids in the same frame, but does not compute them. A ratio is computed from two figures of
//! the same round.
//!
//! The second part measures encoding alone, for each built-in format in its default encoding. The
//! ids are random, or consecutive ids of one lane (worker number). They are written in rows, as in
//! a response.

mod harness;

use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use harness::comparison::{Comparison, Target, ratios, report, time_per_unit};
use harness::service::{YEARS, service};
use http_body_util::BodyExt;
use idmint_core::id::{FieldKind, FormatDefinition, IdBlock, PRESETS, Progression, Rule};
use idmint_http::{Api, HostPolicy, HttpMetrics};
use prometheus::Registry;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::runtime::Runtime;
use tower::ServiceExt;

const IDS: u32 = 100_000;
const ROUNDS: usize = 31;

/// The approximate length in bytes of the chunks in which a connection receives a response.
const PIECE_LEN: usize = 256 * 1024;

/// The number of ids that are written at once, as in a response.
const ROW: usize = 512;

fn main() {
    answers();
    encodings();
}

fn answers() {
    let runtime = Runtime::new().expect("a runtime");
    let service = service(&runtime, YEARS);
    let metrics =
        HttpMetrics::register(&Registry::new(), &idmint_http::paths()).expect("an empty registry");
    let router = Api::new(service, Arc::new(metrics), HostPolicy::default());
    let answer = |path: &'static str| {
        let (router, runtime) = (&router, &runtime);
        move || {
            time_per_unit(IDS, || {
                assert!(runtime.block_on(answer_len(router, path)) > 0)
            })
        }
    };
    let mut comparison = Comparison::new();
    comparison.add(
        "flax as base64_lex, drawn and spelled",
        Target::Under(12.0),
        answer("flax?encoding=base64_lex"),
    );
    comparison.add(
        "uuid7 as uuid, drawn and spelled",
        Target::None,
        answer("uuid7?encoding=uuid"),
    );
    comparison.add(
        "snowflake as hashids",
        Target::None,
        answer("snowflake?encoding=hashids"),
    );
    comparison.add("ids of that size, `write!`", Target::None, || {
        time_per_unit(IDS, || write_plainly(with_write))
    });
    comparison.run("An id in an answer of 100 000", ROUNDS);

    for (path, plainly, plain, target) in [
        (
            "snowflake?encoding=decimal",
            "itoa",
            with_itoa as Plain,
            Target::AtLeast(5.0),
        ),
        (
            "payment-90ms?encoding=base36",
            "a loop over digits",
            with_digits,
            Target::AtLeast(3.0),
        ),
        (
            "payment-90ms?encoding=base36",
            "itoa in decimal",
            with_itoa,
            Target::None,
        ),
        (
            "siq?encoding=hex_padded",
            "format!",
            with_format,
            Target::AtLeast(3.0),
        ),
    ] {
        let ours = answer(path);
        let theirs = || time_per_unit(IDS, || write_plainly(plain));
        let (mut figures, mut of): (Vec<f64>, Vec<f64>) =
            (0..=ROUNDS).map(|_| (ours(), theirs())).skip(1).unzip();
        let mut times = ratios(&of, &figures);
        println!("\n{path}, and the plain way: {plainly}");
        report("an id", "ns", Target::None, &mut figures);
        report("the plain way", "ns", Target::None, &mut of);
        report("so many times as fast", "x", target, &mut times);
    }
}

fn encodings() {
    let mut random = StdRng::seed_from_u64(1);
    let mut comparison = Comparison::new();
    for preset in PRESETS {
        let definition = FormatDefinition::from_toml(preset.name, preset.toml).expect("built in");
        let format = definition.compile(preset.name).expect("built in");
        let (first, greatest) = (format.example(), format.greatest());
        let encoding = format.canonical().clone();
        let mut piece = Vec::with_capacity(2 * PIECE_LEN);
        let mut spell = move |block: IdBlock<'_>| {
            encoding.write_block(black_box(block), *b"\",\"", &mut piece);
            if piece.len() >= PIECE_LEN {
                black_box(&piece).len();
                piece.clear();
            }
        };
        let step = format.variants[0]
            .layout
            .field_of(FieldKind::Sequence)
            .map_or(1, |field| field.stride);
        let ids: Vec<u128> = (0..ROW)
            .map(|_| random.random_range(0..=greatest))
            .collect();
        let is_random = format.rule == Rule::Random;
        comparison.add(
            format!("{} as {}", format.name, format.canonical().name()),
            Target::None,
            move || {
                time_per_unit(4096, || {
                    for _ in 0..4096 / ROW {
                        spell(match is_random {
                            true => IdBlock::List(&ids),
                            false => IdBlock::Progression(Progression {
                                first,
                                step,
                                count: ROW as u64,
                            }),
                        });
                    }
                })
            },
        );
    }
    comparison.run("An id spelled in its format's default encoding", ROUNDS);
}

/// Mints ids, reads the response as a connection does, and returns its length.
async fn answer_len(router: &Api, path: &str) -> usize {
    let request = Request::post(format!("/ids/{path}&count={IDS}"))
        .body(Body::empty())
        .expect("a request");
    let response = router
        .clone()
        .oneshot(request)
        .await
        .expect("the router answers everything");
    assert!(
        response.status().is_success(),
        "{path}: {}",
        response.status()
    );
    let mut body = response.into_body();
    let mut len = 0;
    while let Some(frame) = body.frame().await {
        len += black_box(
            frame
                .expect("bodies do not fail")
                .into_data()
                .expect("no trailers"),
        )
        .len();
    }
    len
}

/// An id with a typical number of digits.
const SNOWFLAKE: u64 = 1_587_974_656_345_886_720;
const PAYMENT: u64 = 0x0123_4567_89ab;
const SIQ: u128 = 0x6a_1234_5678_9abc_0102_0304_0506;

/// A function that writes the id with this number, counted from the first id.
type Plain = fn(u64, &mut String);

/// Writes [`IDS`] ids with the function `write`, in chunks as in a response.
fn write_plainly(write: Plain) {
    let mut piece = String::new();
    for number in 0..u64::from(IDS) {
        if piece.len() >= PIECE_LEN {
            black_box(std::mem::take(&mut piece));
        }
        if piece.is_empty() {
            piece.reserve(PIECE_LEN + PIECE_LEN / 8);
        }
        write(number, &mut piece);
    }
    black_box(piece);
}

fn with_itoa(number: u64, piece: &mut String) {
    let id = black_box(SNOWFLAKE) + number;
    piece.push('"');
    piece.push_str(itoa::Buffer::new().format(id));
    piece.push_str("\",");
}

fn with_write(number: u64, piece: &mut String) {
    let id = black_box(SNOWFLAKE) + number;
    write!(piece, "\"{id}\",").expect("a string takes everything");
}

fn with_format(number: u64, piece: &mut String) {
    let id = black_box(SIQ) + u128::from(number);
    piece.push_str(&format!("\"{id:028x}\","));
}

fn with_digits(number: u64, piece: &mut String) {
    let mut rest = black_box(PAYMENT) + number;
    let mut digits = [b'0'; 9];
    for digit in digits.iter_mut().rev() {
        *digit =
            b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[usize::try_from(rest % 36).expect("a digit")];
        rest /= 36;
    }
    piece.push_str(&format!("\"{}\",", str::from_utf8(&digits).expect("ASCII")));
}
