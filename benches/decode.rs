//! Measures the decoding of ids of unknown format. The goal is less than 1 µs for finding the best
//! reading among all built-in formats.
//!
//! The ids are canonical texts of every enabled format, with equally many ids of each format.
//! `every reading` also ranks the other readings and gives the reasons for rejections, as `GET
//! /decode/{id}` does.

mod harness;

use std::hint::black_box;

use harness::comparison::{Comparison, Target, time_per_unit};
use harness::service::{YEARS, service};
use idmint_core::id::{DecodeFilter, Format};
use idmint_core::time::UnixTime;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::runtime::Runtime;

const IDS: u32 = 20_000;
const ROUNDS: usize = 31;

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let service = service(&runtime, YEARS);
    let now = service.clock().now();
    let decoding = service.decoding().at(now);
    let decoder = service.decoding().decoder().at(now);
    let mut random = StdRng::seed_from_u64(1);
    let formats = service.decoding().formats();
    let of_all = formats
        .iter()
        .cycle()
        .map(|format| text(format, now.into(), &mut random))
        .take(IDS as usize);
    let of_all: Vec<String> = of_all.collect();
    let mut comparison = Comparison::new();
    comparison.add("all formats, best reading", Target::Under(500.0), || {
        time_per_unit(IDS, || {
            of_all.iter().for_each(|text| {
                assert!(
                    decoder
                        .best(black_box(text), DecodeFilter::default())
                        .is_some()
                )
            })
        })
    });
    comparison.add("all formats, every reading", Target::None, || {
        time_per_unit(IDS, || {
            of_all
                .iter()
                .for_each(|text| drop(black_box(decoder.decode(text, DecodeFilter::default()))))
        })
    });
    let snowflake = formats
        .iter()
        .find(|format| format.name == "snowflake")
        .expect("is on");
    let of_one: Vec<_> = (0..IDS / 10)
        .map(|_| text(snowflake, now.into(), &mut random))
        .collect();
    let answering = &decoding;
    let mut json = Vec::new();
    comparison.add(
        "snowflake, the whole answer as JSON",
        Target::None,
        move || {
            time_per_unit(IDS / 10, || {
                for text in &of_one {
                    let answer = answering.decode(text, DecodeFilter::default());
                    json.clear();
                    answer.write_json(&mut json);
                    assert!(!black_box(&json).is_empty());
                }
            })
        },
    );
    for format in formats {
        let texts: Vec<_> = (0..IDS / 10)
            .map(|_| text(format, now.into(), &mut random))
            .collect();
        let decoder = &decoder;
        comparison.add(
            format!("{}, best reading", format.name),
            Target::None,
            move || {
                time_per_unit(IDS / 10, || {
                    texts.iter().for_each(|text| {
                        assert!(
                            decoder
                                .best(black_box(text), DecodeFilter::default())
                                .is_some()
                        )
                    })
                })
            },
        );
    }
    comparison.run("Reading an id of an unknown format", ROUNDS);
}

/// Returns the canonical text of an id whose time is in the past.
fn text(format: &Format, now: UnixTime, random: &mut StdRng) -> String {
    let layout = &format.variants[0].layout;
    loop {
        let values = layout.fields().iter().map(|field| {
            field
                .constant
                .unwrap_or_else(|| random.random_range(0..=field.max))
        });
        let id = layout
            .pack(&values.collect::<Vec<_>>())
            .expect("no value is above its field's greatest");
        let Ok(parts) = format.split(id) else {
            continue;
        };
        let is_past = parts.time.is_none_or(|time| time <= now);
        if is_past {
            return format.canonical().to_text(id);
        }
    }
}
