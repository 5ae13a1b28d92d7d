//! Records the best reading of each text in the test vectors, one per line. If the ranking changes,
//! the changed lines show which texts are affected.

use std::collections::BTreeMap;
use std::sync::Arc;

use idmint_core::id::{DecodeFilter, Decoder, Format, PRESETS};
use idmint_core::time::UnixNanos;

use idmint_testing::cases;
use idmint_testing::generated::assert_generated;

const NOW: UnixNanos = UnixNanos::from_seconds(1_800_000_000);

/// Returns a decoder with all enabled built-in formats, and without the settings of any deployment.
fn decoder() -> Decoder {
    let built_in = PRESETS
        .iter()
        .map(|preset| Format::built_in(preset.name).unwrap());
    Decoder::new(
        built_in
            .filter(|format| format.enabled)
            .map(Arc::new)
            .collect(),
    )
}

#[test]
fn every_text_of_the_vectors_ranks_as_it_did() {
    let decoder = decoder();
    let decoder = decoder.at(NOW);
    let (mut lines, mut encodings, mut of_own_format) = (BTreeMap::new(), 0, 0);
    for case in cases::valid() {
        for (encoding, text) in case
            .encodings
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
        {
            encodings += 1;
            let best = decoder.best(&text, DecodeFilter::default());
            let is_own = |format: &str, name: &str| format == case.format && name == encoding;
            of_own_format += usize::from(
                best.is_some_and(|best| is_own(&best.format().name, best.encoding().name())),
            );
            let first = best.map_or_else(
                || "nothing".to_owned(),
                |best| format!("{} {}", best.format().name, best.encoding().name()),
            );
            let doubt = match decoder.best_and_doubt(&text, DecodeFilter::default()) {
                None if best.is_some() => ", withheld",
                Some((_, true)) => ", in doubt",
                None | Some((_, false)) => "",
            };
            let line = format!("{text}: {first}{doubt}\n");
            lines.insert(text, line);
        }
    }
    println!(
        "{} texts ranked; {of_own_format} of {encodings} come first as what they were written as",
        lines.len()
    );
    assert!(lines.len() >= 499, "{} texts", lines.len());
    assert_generated(
        "crates/idmint-core/tests/properties/ranking.txt",
        "ranking",
        &lines.into_values().collect::<String>(),
    );
}
