//! Measures how fast a chain of events is checked. The id of each event contains a checksum of the
//! event and of the previous id. The goals are at least 200 MB/s on one core, and at least 300 MB/s
//! for canonical JSON of ordinary events.
//!
//! Fractions with all digits of a double are the slowest input, because they are parsed and printed
//! again. Other numbers are copied as they are written. The throughput counts all bytes of the
//! lines, including ids. Two baselines are measured in addition: CRC-32C alone, and serde_json
//! reading the same lines without storing anything.

use std::fmt::Write;
use std::sync::LazyLock;

use divan::Bencher;
use divan::counter::BytesCount;
use idmint_records::ledger::{
    ChainChecker, ChainLines, Event, EventId, EventTime, LedgerId, canonical_json,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::de::IgnoredAny;

/// The approximate length of a chain, in bytes.
const CHAIN_LEN: usize = 4 * 1024 * 1024;

/// The length in bytes of the chunks in which a file is read.
const PIECE_LEN: usize = 256 * 1024;

/// The shapes of events, each of which has its own chain.
const SHAPES: [&str; 4] = ["small", "nested", "numbers", "text"];

fn main() {
    divan::main();
}

/// One chain of events for each shape in [`SHAPES`]. All benchmarks share these chains.
static CHAINS: LazyLock<Vec<String>> = LazyLock::new(|| SHAPES.map(chain).into());

fn chain_of(shape: &str) -> &'static str {
    &CHAINS[SHAPES
        .iter()
        .position(|known| *known == shape)
        .expect("a shape")]
}

#[divan::bench(args = SHAPES)]
fn verify(bencher: Bencher<'_, '_>, shape: &str) {
    let chain = chain_of(shape);
    bencher.counter(BytesCount::of_str(chain)).bench(|| {
        let mut lines = ChainLines::new(ChainChecker::from_genesis());
        chain
            .as_bytes()
            .chunks(PIECE_LEN)
            .for_each(|piece| lines.read(piece).expect("short lines"));
        let verdict = lines.end();
        assert_eq!(verdict.error, None);
        verdict.head
    });
}

#[divan::bench(args = SHAPES)]
fn canonical(bencher: Bencher<'_, '_>, shape: &str) {
    let chain = chain_of(shape);
    bencher.counter(BytesCount::of_str(chain)).bench(|| {
        chain
            .lines()
            .map(|line| canonical_json(line.as_bytes()).expect("JSON").len())
            .sum::<usize>()
    });
}

#[divan::bench(args = SHAPES)]
fn crc32c_alone(bencher: Bencher<'_, '_>, shape: &str) {
    let chain = chain_of(shape);
    bencher
        .counter(BytesCount::of_str(chain))
        .bench(|| crc32c::crc32c(chain.as_bytes()));
}

#[divan::bench(args = SHAPES)]
fn serde_json_ignoring_all(bencher: Bencher<'_, '_>, shape: &str) {
    let chain = chain_of(shape);
    bencher.counter(BytesCount::of_str(chain)).bench(|| {
        for line in chain.lines() {
            let IgnoredAny = serde_json::from_str(line).expect("JSON");
        }
    });
}

/// Returns a chain of events with this shape, one event on each line.
fn chain(shape: &str) -> String {
    let mut random = StdRng::seed_from_u64(1);
    let mut chain = String::new();
    let mut last: Option<EventId> = None;
    let mut micros = 1_700_000_000_000_000;
    while chain.len() < CHAIN_LEN {
        micros += random.random_range(1..1_000_000);
        let time = EventTime::from_micros(micros).expect("long before the last");
        let members = members(shape, &mut random);
        let event = Event::from_json(format!("{{{members}}}").as_bytes()).expect("an event");
        let ledger = last.map_or_else(|| LedgerId::of_genesis(&event, time), EventId::ledger);
        let id = event.seal(
            time,
            ledger,
            last.unwrap_or_else(|| EventId::before_genesis(time, ledger)),
        );
        writeln!(
            chain,
            "{{{members},\"timestamp\":\"{time}\",\"eventId\":\"{id}\"}}"
        )
        .expect("a string takes everything");
        last = Some(id);
    }
    chain
}

/// Draws the name, entities, meta and data of an event with this shape.
fn members(shape: &str, random: &mut StdRng) -> String {
    let order: u32 = random.random();
    let mut members = format!(
        r#""event":"Item Ordered","entities":{{"patron":["patron-{order}"]}},"meta":{{"actor":"register-2","commandId":"e33692e9-3e73-4028-8962-{order:012x}"}},"data":"#
    );
    let mut write =
        |text: std::fmt::Arguments<'_>| members.write_fmt(text).expect("a string takes everything");
    match shape {
        "small" => write(format_args!(
            r#"{{"menuItem":"Bean Burrito","peppers":{},"price":{}.25,"spicy":true,"toppings":["chiles","salsa"]}}"#,
            order % 6,
            order % 90,
        )),
        // These members are about 4 KiB long. Their keys are in the order in which a program would
        // write them, so they must be sorted.
        "nested" => {
            write(format_args!("{{\"order\":{{\"lines\":["));
            for line in 0..24 {
                let comma = if line == 0 { "" } else { "," };
                write(format_args!(
                    r#"{comma}{{"sku":"SKU-{:08}","name":"Bean Burrito \"grande\"","quantity":{},"price":{{"amount":{}.99,"currency":"EUR"}},"tags":["spicy","vegan"],"note":null}}"#,
                    random.random_range(0..100_000_000),
                    random.random_range(1..10),
                    random.random_range(1..100),
                ));
            }
            write(format_args!(
                "]}},\"customer\":{{\"id\":{order},\"address\":{{\"street\":\"Straße 1\",\"city\":\"Köln\"}}}}}}"
            ));
        }
        // These members look like measurements. Half of the fractions are short decimals, and the
        // others have all digits of a double.
        "numbers" => {
            write(format_args!("{{\"samples\":["));
            for sample in 0..200 {
                let comma = if sample == 0 { "" } else { "," };
                match sample % 4 {
                    0 => write(format_args!("{comma}{}", random.random::<u32>())),
                    1 => write(format_args!(
                        "{comma}{:.3}",
                        random.random_range(-100.0..100.0)
                    )),
                    2 => write(format_args!(
                        "{comma}{:.7}",
                        random.random_range(-180.0..180.0)
                    )),
                    _ => write(format_args!("{comma}{}", random.random::<f64>())),
                }
            }
            write(format_args!("]}}"));
        }
        _ => {
            let text =
                "Der Gast wünscht den Burrito ohne Zwiebeln, dafür mit \\\"extra\\\" Salsa.\\n"
                    .repeat(50);
            write(format_args!("{{\"note\":\"{text}\"}}"));
        }
    }
    members
}
