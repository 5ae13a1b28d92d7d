//! Checks that reading never panics, whatever the text is. If a text is read as an id, writing the
//! id must give exactly the same text.
//!
//! The texts are not drawn with proptest, so that ten million of them take only seconds. Every run
//! reads the same texts, no matter how many threads it has. If reading a text panics, the test
//! prints the text.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{panic, thread};

use idmint_core::id::{DecodeFilter, Decoder, Encoding, Format, FormatDefinition, Rejection};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::NOW;
use crate::laws::{DECODER, ENCODINGS};
use idmint_testing::hostile_texts::Target;

/// The number of texts in a block. Each block has its own seed.
const TEXTS_OF_BLOCK: u64 = 10_000;
/// One text in this number is read in every encoding of every format, and compared with the
/// encoding's pattern. All other texts are read only in the encoding for which they were drawn.
const ONE_IN: u32 = 64;

/// A format with every kind of encoding, including kinds that no built-in format has.
static EVERY_KIND: LazyLock<Format> = LazyLock::new(|| {
    let grouped =
        r#"{ kind = "hashids", name = "grouped", min_length = 30, groups = [10, 10, 10] }"#;
    let stripped = r#"{ kind = "b32l", name = "stripped", bytes = 20, strip = true }"#;
    let text = format!(
        "summary = 'any'\nrule = 'decode-only'\nfields = [{{ name = 'n', kind = 'object', bits = 122 }}]\n\
         encodings = [{}, {grouped}, {stripped}]",
        ENCODINGS.join(", ")
    );
    FormatDefinition::from_toml("every-kind", &text)
        .unwrap()
        .compile("every-kind")
        .unwrap()
});

/// A guard that prints the text if reading it panics, because the panic message does not contain
/// the text.
struct Reading<'a>(&'a str);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!(
                "while reading {:?}",
                self.0.chars().take(300).collect::<String>()
            );
        }
    }
}

/// Asserts that the pattern matches this text if it can be read, and does not match it if its
/// length, letters or prefix are wrong.
fn assert_pattern(target: &Target<'_>, text: &str) {
    let is_match = target.pattern.is_match(text);
    match target.encoding.read(text) {
        Ok(_) => assert!(is_match, "{} refuses {text:?}", target.pattern),
        Err(Rejection::WrongLength | Rejection::BadAlphabet | Rejection::BadPrefix) => {
            assert!(!is_match, "{} accepts {text:?}", target.pattern);
        }
        Err(_) => {}
    }
}

/// Returns `true` if this encoding of this format can read the text. Asserts that the id is written
/// as the same text.
fn is_read(format: &Format, encoding: &Encoding, text: &str) -> bool {
    let Ok(id) = encoding.read(text) else {
        return false;
    };
    assert_eq!(
        encoding.to_text(id),
        text,
        "{} of {}",
        encoding.name(),
        format.name
    );
    format.split(id).is_ok()
}

/// Reads the text in every encoding of every format, and asserts that each id is written as the
/// same text. Returns the number of readings.
fn readings(decoder: &Decoder, text: &str) -> usize {
    let decoder = decoder.at(NOW);
    let decoded = decoder.decode(text, DecodeFilter::default());
    for found in &decoded.matches {
        let (encoding, prefix) = (found.encoding(), &text[..found.prefix_len()]);
        assert_eq!(
            format!("{prefix}{}", encoding.to_text(found.id())),
            text,
            "{} of {}",
            encoding.name(),
            found.format().name
        );
        assert_eq!(found.format().split(found.id()), Ok(found.parts()));
    }
    decoded.matches.len()
}

/// Reads the texts of one block. Returns the number of texts, and the number of texts that are ids.
fn read_block(targets: &[Target<'_>], block: u64) -> (u64, u64) {
    let (mut random, mut text, mut read) = (StdRng::seed_from_u64(block), String::new(), 0);
    for _ in 0..TEXTS_OF_BLOCK {
        let target = &targets[random.random_range(0..targets.len())];
        target.draw(&mut random, &mut text);
        let _shown = Reading(&text);
        read += u64::from(is_read(target.format, target.encoding, &text));
        if random.random_ratio(1, ONE_IN) {
            readings(&DECODER, &text);
            assert_pattern(target, &text);
        }
    }
    (TEXTS_OF_BLOCK, read)
}

/// `TEXTS` sets the number of texts (`make torture`: 10 million).
#[test]
fn millions_of_texts_are_read_or_refused_without_a_panic() {
    let wanted = std::env::var("TEXTS").map_or(2_000_000, |texts| texts.parse().unwrap());
    let blocks = wanted / TEXTS_OF_BLOCK;
    let formats = DECODER
        .formats()
        .iter()
        .map(|format| &**format)
        .chain([&*EVERY_KIND]);
    let (targets, next) = (
        Target::all_of(formats, &mut StdRng::seed_from_u64(0)),
        AtomicU64::new(0),
    );
    let read_blocks = || {
        // Relaxed is sufficient, because each block number is taken once, and no other data depends
        // on it.
        let blocks = std::iter::from_fn(|| {
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|block| *block < blocks)
        });
        blocks
            .map(|block| read_block(&targets, block))
            .fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
    };
    let counts = thread::scope(|scope| {
        let threads = [scope.spawn(read_blocks), scope.spawn(read_blocks)];
        threads.map(|thread| {
            thread
                .join()
                .unwrap_or_else(|panicked| panic::resume_unwind(panicked))
        })
    });
    let [texts, read] = [counts[0].0 + counts[1].0, counts[0].1 + counts[1].1];
    assert_eq!(texts, blocks * TEXTS_OF_BLOCK);
    // Check that the texts are a useful mixture of ids and other texts.
    assert!(
        (texts / 10..texts / 2).contains(&read),
        "{read} of {texts} were ids"
    );
    println!(
        "{texts} texts in {} encodings, {read} of them ids",
        targets.len()
    );
}

#[test]
fn every_text_of_up_to_two_bytes_is_read_or_refused_without_a_panic() {
    let ascii = || (0..128_u8).map(char::from);
    let pairs = ascii().flat_map(|first| ascii().map(move |second| format!("{first}{second}")));
    let in_two_bytes = ('\u{80}'..='\u{7ff}').map(String::from);
    let texts = [String::new()]
        .into_iter()
        .chain(ascii().map(String::from))
        .chain(pairs)
        .chain(in_two_bytes);
    let mut ids = 0;
    let count = texts
        .map(|text| {
            let _shown = Reading(&text);
            ids += readings(&DECODER, &text);
            ids += EVERY_KIND
                .encodings
                .iter()
                .filter(|encoding| is_read(&EVERY_KIND, encoding, &text))
                .count();
        })
        .count();
    assert_eq!(count, 1 + 128 + 128 * 128 + 1_920);
    assert!(ids > 1_000, "small numbers are ids in some encoding: {ids}");
}
