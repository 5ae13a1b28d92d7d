//! Tests of the ranking of readings (the ids that a text may be). One test records the best reading
//! of each text in the test vectors, one per line in `ranking.txt`. If the ranking changes, the
//! changed lines show which texts are affected.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use idmint_core::id::{
    DecodeFilter, Decoder, Encoding, FieldKind, Format, FormatDefinition, OwnNumbers, PRESETS,
};
use idmint_core::time::UnixNanos;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use idmint_testing::any_id::any_id;
use idmint_testing::cases;
use idmint_testing::generated::assert_generated;
use idmint_testing::hostile_texts::Target;

const NOW: UnixNanos = UnixNanos::from_seconds(1_800_000_000);

/// The number of texts for which `best_and_doubt` is compared with `decode`.
const TEXTS: usize = 100_000;

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

/// Returns all built-in formats, and formats that write one number as the same text in two
/// encodings.
fn formats_with_equal_texts() -> Vec<Arc<Format>> {
    let built_in = PRESETS
        .iter()
        .map(|preset| Format::built_in(preset.name).unwrap());
    let with_both = [("both-64", 32), ("both-128", 64)].map(|(name, bits)| {
        let text = format!(
            "summary = 'any'\nrule = 'decode-only'\nfields = [{{ name = 'a', kind = 'object', bits = {bits} }}, {{ name = 'b', kind = 'object', bits = {bits} }}]\n\
             encodings = ['hex_padded', 'hex', 'base36', 'uuid', 'decimal']"
        );
        let text = if bits == 32 {
            text.replace("'uuid', ", "")
        } else {
            text
        };
        FormatDefinition::from_toml(name, &text)
            .unwrap()
            .compile(name)
            .unwrap()
    });
    built_in.chain(with_both).map(Arc::new).collect()
}

/// Returns the text of an id with a time of the last ten years, if the format has one. Half of the
/// ids have the least worker number and sequence.
fn text_of_the_last_years(format: &Format, encoding: &Encoding, random: &mut StdRng) -> String {
    const YEARS: u64 = 10 * 365 * 86_400;
    let now = NOW.get() / 1_000_000_000;
    let at = UnixNanos::from_seconds(random.random_range(now - YEARS..now));
    let (ticks, is_first) = (format.ticks_at(at.into()), random.random::<bool>());
    let drawn = any_id(format, random);
    let (variant, parts) = (format.variant_at(drawn), format.split(drawn).unwrap());
    let layout = &format.variants[variant].layout;
    let fields = layout.fields().iter().zip(parts.values);
    let values: Vec<u128> = fields
        .map(|(field, value)| match (field.kind, ticks) {
            (FieldKind::Time, Ok(ticks)) => ticks / field.scale % (field.max + 1),
            (FieldKind::Worker | FieldKind::Shard | FieldKind::Sequence, _) if is_first => 0,
            _ => value,
        })
        .collect();
    encoding.to_text(layout.pack(&values).unwrap())
}

#[test]
fn the_quick_reading_is_the_first_of_all_readings_with_the_same_doubt() {
    let own = OwnNumbers {
        workers: PRESETS
            .iter()
            .map(|preset| (preset.name.to_owned(), 0..=7))
            .collect(),
        shard: Some(0),
        domains: BTreeSet::from([0]),
    };
    let formats = formats_with_equal_texts();
    let decoders = [
        Decoder::new(formats.clone()),
        Decoder::with_own_numbers(formats.clone(), &own),
    ];
    let decoders = decoders.each_ref().map(|decoder| decoder.at(NOW));
    let mut random = StdRng::seed_from_u64(56);
    let targets = Target::all_of(formats.iter().map(|format| &**format), &mut random);
    let (mut text, mut doubted) = (String::new(), 0);
    for at in 0..TEXTS {
        let target = &targets[at % targets.len()];
        target.draw(&mut random, &mut text);
        if random.random() {
            text = text_of_the_last_years(target.format, target.encoding, &mut random);
        }
        let filter = DecodeFilter {
            format: random.random_ratio(1, 8).then_some(&target.format.name),
            encoding: random.random_ratio(1, 8).then_some(target.encoding.name()),
            ..DecodeFilter::default()
        };
        let decoder = &decoders[random.random_range(0..decoders.len())];
        let decoded = decoder.decode(&text, filter);
        let is_told = filter.is_pinned() || !decoded.is_unlikely();
        let expected = decoded.matches.first().filter(|_| is_told);
        let expected = expected.map(|first| {
            let (format, encoding) = (first.format_index(), first.encoding_index());
            (format, encoding, first.id(), decoded.is_ambiguous())
        });
        let quick = decoder.best_and_doubt(&text, filter);
        let quick = quick.map(|(best, is_ambiguous)| {
            let (format, encoding) = (best.format_index(), best.encoding_index());
            (format, encoding, best.id(), is_ambiguous)
        });
        assert_eq!(
            quick, expected,
            "{text:?} with {filter:?}: {:?}",
            decoded.matches
        );
        doubted += usize::from(expected.is_some_and(|(_, _, _, is_ambiguous)| is_ambiguous));
    }
    assert!(doubted > TEXTS / 10, "{doubted} of {TEXTS} are in doubt");
}
