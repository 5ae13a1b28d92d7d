//! Fuzzes the texts of ids.

use std::sync::{Arc, LazyLock};

use idmint_core::id::{DecodeFilter, Decoder, Format, FormatDefinition, PRESETS};
use idmint_core::time::UnixNanos;
use idmint_wire::{AnswerParts, DecodeAnswer, KnownDomains, Style, ruler};
use serde_json::Value;

static FORMATS: LazyLock<Vec<Arc<Format>>> = LazyLock::new(|| {
    let compile = |name: &str, toml| {
        FormatDefinition::from_toml(name, toml)
            .unwrap()
            .compile(name)
            .unwrap()
    };
    PRESETS
        .iter()
        .map(|preset| Arc::new(compile(preset.name, preset.toml)))
        .collect()
});
static DECODER: LazyLock<Decoder> = LazyLock::new(|| Decoder::new(FORMATS.clone()));

const NOW: UnixNanos = UnixNanos::from_seconds(1_900_000_000);

/// Decodes a text, and checks four invariants. Every match encodes to the same text, and the best
/// match is the first one. Every suggestion can be decoded, and the response can be serialized.
pub(super) fn decode(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let decoder = DECODER.at(NOW);
    let decoded = decoder.decode(&text, DecodeFilter::default());
    for found in &decoded.matches {
        assert_eq!(found.encoding().to_text(found.id()), text);
        assert_eq!(
            found.format().split(found.id()).unwrap().values.len(),
            found.parts().values.len()
        );
    }
    let best = decoder.best(&text, DecodeFilter::default());
    let first = decoded.matches.first();
    assert_eq!(best.map(|best| best.id()), first.map(|first| first.id()));
    for near in decoder.did_you_mean(&text, DecodeFilter::default()) {
        assert!(
            decoder.best(&near, DecodeFilter::default()).is_some(),
            "{near}"
        );
    }
    let parts = AnswerParts::new(DECODER.formats(), KnownDomains::new());
    let answer = DecodeAnswer::new(&text, &decoder, DecodeFilter::default(), &parts);
    let mut json = Vec::new();
    answer.write_json(&mut json);
    assert_eq!(serde_json::from_slice::<Value>(&json).unwrap()["id"], *text);
    assert!(ruler(&answer, Style::Plain).ends_with('\n'));
}

/// Reads and writes a text in the format and encoding that the first two bytes choose. A text that
/// was read must be written as the same text, and a number that was written must be read as the
/// same number.
pub(super) fn read_and_write(bytes: &[u8]) {
    let [format, encoding, rest @ ..] = bytes else {
        return;
    };
    let format = &FORMATS[usize::from(*format) % FORMATS.len()];
    let encoding = &format.encodings[usize::from(*encoding) % format.encodings.len()];
    let text = String::from_utf8_lossy(rest);
    if let Ok(value) = encoding.read(&text) {
        assert_eq!(encoding.to_text(value), text);
    }
    if let Some(number) = rest.first_chunk() {
        let value = u128::from_be_bytes(*number) % format.greatest().saturating_add(1).max(1);
        let text = encoding.to_text(value);
        assert_eq!(
            (encoding.read(&text), encoding.len(value)),
            (Ok(value), text.len()),
            "{text}"
        );
    }
}
