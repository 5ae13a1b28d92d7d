//! Properties that hold for every encoding of every layout.

use idmint_core::id::{
    CheckMethod, Encoding, EncodingDefinition, EncodingKind, IdBlock, LetterCase, Progression,
    Rejection,
};
use proptest::prelude::*;
use regex_lite::Regex;

/// Every printable character except the hyphen, which separates groups.
const LETTERS: &str =
    "!#$%&()*+,./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~";

/// The kinds of encoding that can be used without settings.
const PLAIN: [EncodingKind; 14] = [
    EncodingKind::Decimal,
    EncodingKind::Hex,
    EncodingKind::HexPadded,
    EncodingKind::Bytes16Hex,
    EncodingKind::Base36,
    EncodingKind::Base62,
    EncodingKind::Base64,
    EncodingKind::Base64Lex,
    EncodingKind::Crockford,
    EncodingKind::B32l,
    EncodingKind::Cb32,
    EncodingKind::Base32hex,
    EncodingKind::Uuid,
    EncodingKind::Did,
];

/// Generates the greatest value of a layout. It has up to 128 bits, and need not be one less than a
/// power of two.
fn max() -> impl Strategy<Value = u128> {
    (any::<u128>(), 0_u32..128).prop_map(|(value, cut)| value >> cut)
}

fn alphabet(least: usize) -> impl Strategy<Value = String> {
    let letters: Vec<char> = LETTERS.chars().collect();
    let count = letters.len();
    proptest::sample::subsequence(letters, least..=count)
        .prop_shuffle()
        .prop_map(String::from_iter)
}

/// Generates an encoding of any kind with any settings, and the greatest value that the encoding
/// must write.
fn encoding() -> impl Strategy<Value = (Encoding, u128)> {
    let plain = proptest::sample::select(PLAIN.to_vec()).prop_map(EncodingDefinition::from);
    let wider = (
        0_usize..40,
        any::<bool>(),
        any::<bool>(),
        proptest::sample::select(PLAIN.to_vec()),
    )
        .prop_map(|(more, is_upper, is_checked, kind)| {
            let mut definition = EncodingDefinition::from(kind);
            let takes = |key| kind.keys().contains(&key);
            definition.length = takes("length").then_some(128 + more);
            definition.bytes = takes("bytes").then_some(16 + more % 10);
            definition.case = takes("case").then_some(if is_upper {
                LetterCase::Upper
            } else {
                LetterCase::Lower
            });
            definition.check = (takes("check") && is_checked).then_some(CheckMethod::Mod97);
            definition
        });
    let stripped = (2_usize..5).prop_map(|fives| {
        let mut definition = EncodingDefinition::from(EncodingKind::B32l);
        (definition.bytes, definition.strip) = (Some(10 + 5 * fives), Some(true));
        definition
    });
    let radix = (
        alphabet(2),
        proptest::option::of("[!-~]{1,8}"),
        any::<bool>(),
    )
        .prop_map(|(alphabet, prefix, is_checked)| {
            let mut definition = EncodingDefinition::from(EncodingKind::Radix);
            definition.check = (is_checked && alphabet.len() >= 10).then_some(CheckMethod::Mod97);
            (definition.alphabet, definition.prefix) = (Some(alphabet), prefix);
            definition
        });
    let hashids = (alphabet(16), "[ -~]{0,40}", 0_usize..100, any::<bool>()).prop_map(
        |(alphabet, salt, min, is_grouped)| {
            let mut definition = EncodingDefinition::from(EncodingKind::Hashids);
            (definition.alphabet, definition.salt) = (Some(alphabet), Some(salt.into()));
            // 130 letters can hold any number of 128 bits, even if the alphabet has only two
            // digits.
            definition.min_length = Some(if is_grouped { 130 + min } else { min });
            definition.groups = is_grouped
                .then(|| vec![100, 30 + min])
                .map(|groups| groups.into_iter().filter(|g| *g > 0).collect());
            definition
        },
    );
    let sqids = (alphabet(3), 0_usize..200).prop_map(|(alphabet, min_length)| {
        let mut definition = EncodingDefinition::from(EncodingKind::Sqids);
        (definition.alphabet, definition.min_length) = (Some(alphabet), Some(min_length));
        definition
    });
    let definition =
        prop_oneof![4 => plain, 3 => wider, 1 => stripped, 3 => radix, 3 => hashids, 2 => sqids];
    let any_kind = (definition, max()).prop_map(|(definition, max)| {
        let encoding =
            Encoding::new(&definition, max).expect("settings that hold any number of 128 bits");
        (encoding, max)
    });
    let uuid8 = (max(), 6_u32..128).prop_map(|(max, cut)| {
        let max = max.min(u128::MAX >> cut);
        (
            Encoding::new(&EncodingKind::Uuid8.into(), max).expect("122 bits at most"),
            max,
        )
    });
    prop_oneof![15 => any_kind, 1 => uuid8]
}

/// Generates numbers up to `max` with any number of bits. One in eight is 0, and one in eight is
/// `max`.
fn at_most(max: u128) -> impl Strategy<Value = u128> {
    prop_oneof![
        1 => Just(0),
        1 => Just(max),
        6 => (any::<u128>(), 0_u32..128).prop_map(move |(value, cut)| {
            let value = value >> cut;
            max.checked_add(1).map_or(value, |count| value % count)
        }),
    ]
}

fn encoding_and_value() -> impl Strategy<Value = (Encoding, u128, u128)> {
    encoding().prop_flat_map(|(encoding, max)| (Just(encoding), Just(max), at_most(max)))
}

/// A block of ids up to the greatest value. It is a list of any ids, or a progression with any
/// step. A progression starts at any number, or just below a power of a radix.
#[derive(Debug, Clone)]
enum OwnBlock {
    Ids(Vec<u128>),
    Progression(Progression),
}

impl OwnBlock {
    fn block(&self) -> IdBlock<'_> {
        match self {
            OwnBlock::Ids(ids) => IdBlock::List(ids),
            OwnBlock::Progression(ids) => IdBlock::Progression(*ids),
        }
    }

    fn ids(&self) -> Vec<u128> {
        match self {
            OwnBlock::Ids(ids) => ids.clone(),
            OwnBlock::Progression(ids) => ids.values().collect(),
        }
    }
}

fn blocks(max: u128) -> impl Strategy<Value = Vec<OwnBlock>> {
    let unordered = proptest::collection::vec(at_most(max), 0..200).prop_map(OwnBlock::Ids);
    let power = (2_u128..=94, 1_u32..60, 0_u128..300).prop_map(move |(radix, exponent, before)| {
        radix
            .checked_pow(exponent)
            .map_or(max, |power| power.saturating_sub(before))
            .min(max)
    });
    let first = prop_oneof![1 => at_most(max), 1 => Just(max.saturating_sub(100)), 3 => power];
    let step = prop_oneof![3 => Just(1_u128), 2 => 0_u128..40, 1 => any::<u16>().prop_map(u128::from), 1 => at_most(max)];
    let in_steps = (first, step, 0_u64..300).prop_map(move |(first, step, count)| {
        let room = (max - first).checked_div(step).map_or(count, |steps| {
            u64::try_from(steps).unwrap_or(u64::MAX).saturating_add(1)
        });
        OwnBlock::Progression(Progression {
            first,
            step,
            count: count.min(room),
        })
    });
    // Generate several blocks in sequence, because a response may have ids of many ticks.
    proptest::collection::vec(prop_oneof![1 => unordered, 4 => in_steps], 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_row_is_its_values_written_one_by_one(
        (encoding, blocks) in encoding().prop_flat_map(|(encoding, max)| (Just(encoding), blocks(max))),
    ) {
        let mut written = b"before".to_vec();
        blocks.iter().for_each(|block| encoding.write_block(block.block(), *b"\",\"", &mut written));
        let ids = blocks.iter().flat_map(OwnBlock::ids);
        let expected: String = ids.map(|value| format!("{}\",\"", encoding.to_text(value))).collect();
        prop_assert_eq!(String::from_utf8(written).expect("ASCII"), format!("before{expected}"));
    }

    #[test]
    fn a_written_value_reads_back((encoding, _, value) in encoding_and_value()) {
        let text = encoding.to_text(value);
        prop_assert_eq!(encoding.read(&text), Ok(value), "{}", text);
        prop_assert_eq!(text.len(), encoding.len(value));
        prop_assert!(encoding.fixed_len().is_none_or(|len| len == text.len()));
    }

    #[test]
    fn length_never_falls_and_sortable_texts_keep_order(
        ((encoding, max), seed, other_seed) in (encoding(), any::<u128>(), any::<u128>()),
    ) {
        let bound = |seed: u128| max.checked_add(1).map_or(seed, |count| seed % count);
        let (small, large) = (bound(seed).min(bound(other_seed)), bound(seed).max(bound(other_seed)));
        prop_assert!(encoding.len(small) <= encoding.len(large));
        prop_assert_eq!(encoding.fixed_len().is_some(), encoding.len(0) == encoding.len(max));
        if encoding.is_sortable() {
            prop_assert_eq!(encoding.to_text(small).cmp(&encoding.to_text(large)), small.cmp(&large));
        }
    }

    #[test]
    fn the_pattern_accepts_what_is_written_and_no_other_length((encoding, max, value) in encoding_and_value()) {
        let pattern = Regex::new(&encoding.pattern()).expect("a regular expression");
        let text = encoding.to_text(value);
        prop_assert!(pattern.is_match(&text), "{pattern} refuses {text}");
        for foreign in ['\u{e9}', '\n', ' '] {
            let text = format!("{text}{foreign}");
            prop_assert!(!pattern.is_match(&text), "{pattern} accepts {text:?}");
        }
        let longest = encoding.to_text(max);
        let last = longest.chars().last().unwrap_or('a');
        prop_assert!(!pattern.is_match(&format!("{longest}{last}{last}")), "{pattern} accepts more than {longest}");
    }

    #[test]
    fn a_changed_text_is_rejected_or_canonical(
        ((encoding, max, value), place) in (encoding_and_value(), any::<prop::sample::Index>()),
        (change, letter) in (0..4, any::<char>()),
    ) {
        let mut letters: Vec<char> = encoding.to_text(value).chars().collect();
        if letters.is_empty() {
            letters.push(letter);
        }
        let at = place.index(letters.len());
        match change {
            0 => letters[at] = letter,
            1 => letters[at] = *letters.first().expect("not empty"),
            2 => letters.insert(at, letter),
            _ => drop(letters.remove(at)),
        }
        let text: String = letters.iter().collect();
        if let Ok(value) = encoding.read(&text) {
            prop_assert!(value <= max);
            prop_assert_eq!(encoding.to_text(value), text);
        }
    }

    #[test]
    fn letters_exchanged_within_the_alphabet_are_rejected_or_canonical(
        ((encoding, max, value), other, place) in (encoding_and_value(), any::<u128>(), any::<prop::sample::Index>()),
    ) {
        let other = max.checked_add(1).map_or(other, |count| other % count);
        let (mut text, other) = (encoding.to_text(value), encoding.to_text(other));
        if let Some(at) = (!text.is_empty()).then(|| place.index(text.len())) {
            text.replace_range(at.., other.get(at..).unwrap_or(""));
        }
        if let Ok(value) = encoding.read(&text) {
            prop_assert_eq!(encoding.to_text(value), text);
        }
    }

    #[test]
    fn no_text_panics_and_what_is_read_is_canonical(
        (encoding, _) in encoding(),
        text in prop_oneof![any::<String>(), "\\PC{0,40}", "[ -~]{0,300}", "[0-9a-zA-Z-]{0,40}"],
    ) {
        let prefixed = format!("{}{text}", encoding.definition().prefix.as_deref().unwrap_or(""));
        for text in [text, prefixed] {
            if let Ok(value) = encoding.read(&text) {
                prop_assert_eq!(encoding.to_text(value), text);
            }
        }
    }

    #[test]
    fn one_value_too_many_is_rejected((encoding, max) in encoding()) {
        let definition = encoding.definition();
        if let Some(above) = max.checked_add(1)
            && let Ok(wider) = Encoding::new(definition, above)
        {
            // Compare with an encoding whose greatest value is one higher. Skip the comparison if
            // that encoding writes longer texts, or if its kind then puts the bits at other
            // positions.
            let is_of_same_shape = wider.len(above) == encoding.len(max)
                && !matches!(definition.kind, EncodingKind::Uuid8 | EncodingKind::Did);
            if is_of_same_shape {
                prop_assert_eq!(encoding.read(&wider.to_text(above)), Err(Rejection::OutOfRange));
            }
        }
    }
}
