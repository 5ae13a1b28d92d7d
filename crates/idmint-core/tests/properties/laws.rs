//! Properties that hold for every format, whether built in or defined by a user.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use idmint_core::id::{
    DecodeFilter, Decoder, FieldKind, Format, FormatDefinition, Layout, Liberty, RangeError,
    Rejection,
};
use idmint_core::time::UnixTime;
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

use crate::NOW;
use crate::catalog::decoder;
use idmint_testing::cases::FORMATS;

/// A decoder with all built-in formats, and the formats of the test vectors.
pub(crate) static DECODER: LazyLock<Decoder> =
    LazyLock::new(|| decoder(FORMATS, &["payment-wide"]));

/// Encodings that can write any number of up to 122 bits, in TOML syntax.
pub(crate) const ENCODINGS: [&str; 18] = [
    r#""decimal""#,
    r#""hex""#,
    r#""hex_padded""#,
    r#""base36""#,
    r#""base62""#,
    r#""base64""#,
    r#""base64_lex""#,
    r#""crockford""#,
    r#""b32l""#,
    r#""cb32""#,
    r#""base32hex""#,
    r#""bytes16_hex""#,
    r#""hashids""#,
    r#""sqids""#,
    r#""uuid""#,
    r#""uuid8""#,
    r#""did""#,
    r#"{ kind = "radix", radix = 7, prefix = "inv_" }"#,
];

/// The words of suffix codes of up to 3 bits, in TOML syntax.
const CODES: [&str; 3] = [
    r#"{ suffix = "0", name = "even" }, { suffix = "1", name = "odd" }"#,
    r#"{ suffix = "1", name = "one" }, { suffix = "10", name = "ten" }, { suffix = "000" }, { suffix = "100" }"#,
    r#"{ suffix = "00", name = "a" }, { suffix = "10", name = "b" }, { suffix = "1", name = "c" }"#,
];

/// The maximum sizes of the fields in a generated format.
struct Sizes {
    bits_max: u32,
    digits_max: u32,
    radix_max: u32,
    cardinality_max: u32,
    stride_bits_max: u32,
}

const ANY: Sizes = Sizes {
    bits_max: 30,
    digits_max: 5,
    radix_max: 64,
    cardinality_max: 100_000,
    stride_bits_max: 50,
};

/// Maximum sizes that are small enough to enumerate all ids.
const SMALL: Sizes = Sizes {
    bits_max: 2,
    digits_max: 1,
    radix_max: 4,
    cardinality_max: 5,
    stride_bits_max: 6,
};

/// Generates any format that a user may define. If a generated format is invalid, generates another
/// one.
fn custom_format(sizes: &Sizes) -> impl Strategy<Value = Format> + use<> {
    let width = prop_oneof![
        (1..=sizes.bits_max).prop_map(|bits| format!("bits = {bits}")),
        (1..=sizes.digits_max, 2..=sizes.radix_max)
            .prop_map(|(digits, radix)| format!("digits = {digits}, radix = {radix}")),
        (1..=sizes.cardinality_max).prop_map(|cardinality| format!("cardinality = {cardinality}")),
    ];
    let kind = select(vec![
        "time", "worker", "shard", "sequence", "random", "object", "checksum", "ledger",
    ]);
    let plain = (kind, width).prop_map(|(kind, width)| format!(r#"kind = "{kind}", {width}"#));
    let constant =
        (0..8).prop_map(|value| format!(r#"kind = "constant", bits = 3, value = {value}"#));
    let qualifier = select(CODES.to_vec())
        .prop_map(|codes| format!(r#"kind = "qualifier", bits = 5, codes = [{codes}]"#));
    let stride = (0_u64..4, 0..sizes.stride_bits_max)
        .prop_map(|(half, power)| format!(r#", stride = "{}""#, (2 * half + 1) << power));
    let stride = prop_oneof![3 => Just(String::new()), 1 => stride];
    let field = (
        prop_oneof![6 => plain, 1 => constant, 2 => qualifier],
        stride,
    );
    let encodings = subsequence(ENCODINGS.to_vec(), 1..=ENCODINGS.len());
    (prop::collection::vec(field, 1..=5), encodings).prop_filter_map("not sound", |(fields, encodings)| {
        let fields = fields.iter().enumerate();
        let fields: Vec<_> = fields.map(|(at, (field, stride))| format!(r#"{{ name = "f{at}", {field}{stride} }}"#)).collect();
        let text = format!(
            "summary = 'any'\nrule = 'decode-only'\ntick = '1ms'\nepoch = '2020-01-01T00:00:00Z'\nfields = [{}]\nencodings = [{}]",
            fields.join(", "),
            encodings.join(", ")
        );
        FormatDefinition::from_toml("any", &text).unwrap().compile("any").ok()
    })
}

/// Generates a choice for each field: an end of its range, or a number in between. Sometimes all
/// fields are at the same end.
fn seeds() -> impl Strategy<Value = Vec<(u8, u128)>> {
    let all_at = |end| Just(vec![(end, 0); Layout::FIELDS_MAX]);
    prop_oneof![
        1 => all_at(0),
        1 => all_at(1),
        6 => prop::collection::vec((0_u8..4, any::<u128>()), Layout::FIELDS_MAX),
    ]
}

/// Chooses a layout of the format and values for its fields. Returns the index of the layout and
/// the values.
fn values(format: &Format, at: Index, seeds: &[(u8, u128)]) -> (usize, Vec<u128>) {
    let variant = at.index(format.variants.len());
    let fields = format.variants[variant].layout.fields().iter().zip(seeds);
    let values = fields.map(|(field, (choice, seed))| match (field.constant, choice) {
        (Some(constant), _) => constant,
        (None, 0) => 0,
        (None, 1) => field.max,
        (None, _) => seed % (field.max + 1),
    });
    (variant, values.collect())
}

/// Returns every id of a layout by combining all field values.
fn all_ids(layout: &Layout) -> Vec<u128> {
    let mut tuples = vec![vec![]];
    for field in layout.fields() {
        let values = field
            .constant
            .map_or(0..=field.max, |constant| constant..=constant);
        tuples = tuples
            .into_iter()
            .flat_map(|tuple| {
                values
                    .clone()
                    .map(move |value| [&tuple[..], &[value]].concat())
            })
            .collect();
    }
    tuples
        .iter()
        .map(|tuple| layout.pack(tuple).unwrap())
        .collect()
}

fn id_of(format: &Format, (variant, values): &(usize, Vec<u128>)) -> u128 {
    format.variants[*variant].layout.pack(values).unwrap()
}

fn assert_reads_back(
    format: &Arc<Format>,
    drawn: &(usize, Vec<u128>),
) -> Result<(), TestCaseError> {
    let (id, decoder) = (id_of(format, drawn), Decoder::new(vec![Arc::clone(format)]));
    prop_assert!(id <= format.greatest());
    for encoding in &format.encodings {
        let text = encoding.to_text(id);
        if text.is_empty() {
            prop_assert_eq!((encoding.read(&text), encoding.name()), (Ok(0), "b32l"));
            continue;
        }
        let decoded = decoder.at(NOW).decode(
            &text,
            DecodeFilter {
                encoding: Some(encoding.name()),
                ..DecodeFilter::default()
            },
        );
        let found = decoded.matches.first();
        prop_assert_eq!(
            found.map(|found| found.id()),
            Some(id),
            "{} of {:?}",
            text,
            format
        );
        let parts = found.unwrap().parts();
        prop_assert_eq!(&parts.values, &drawn.1);
        prop_assert_eq!(parts.layout, &format.variants[drawn.0].layout);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, max_local_rejects: 1_000_000, ..ProptestConfig::default() })]

    #[test]
    fn every_id_of_a_built_in_format_reads_back(at in any::<Index>(), variant in any::<Index>(), seeds in seeds()) {
        let format = at.get(DECODER.formats());
        assert_reads_back(format, &values(format, variant, &seeds))?;
    }

    #[test]
    fn every_id_of_a_custom_format_reads_back(format in custom_format(&ANY), variant in any::<Index>(), seeds in seeds()) {
        let drawn = values(&format, variant, &seeds);
        assert_reads_back(&Arc::new(format), &drawn)?;
    }

    #[test]
    fn no_two_sets_of_fields_of_a_format_are_one_id(format in custom_format(&SMALL)) {
        let ids: Vec<u128> = format.variants.iter().flat_map(|variant| all_ids(&variant.layout)).collect();
        let distinct: BTreeSet<_> = ids.iter().collect();
        prop_assert_eq!(distinct.len(), ids.len());
        // Every number up to the greatest id is either one of these ids or is refused.
        let read = (0..=format.greatest().min(1 << 16)).filter(|id| format.split(*id).is_ok());
        prop_assert!(read.eq(distinct.into_iter().copied().filter(|id| *id <= 1 << 16)));
    }

    #[test]
    fn a_changed_letter_is_refused_or_spells_another_id(
        at in any::<[Index; 3]>(), seeds in seeds(), place in any::<Index>(),
        letter in prop_oneof!["[0-9A-Za-z_:-]", "\\PC"],
    ) {
        let format = at[0].get(DECODER.formats());
        let id = id_of(format, &values(format, at[1], &seeds));
        let encoding = at[2].get(&format.encodings);
        let mut text: Vec<String> = encoding.to_text(id).chars().map(String::from).collect();
        prop_assume!(!text.is_empty());
        let changed = place.get(&text) != &letter;
        let at = place.index(text.len());
        text[at] = letter;
        let text = text.concat();
        for found in DECODER.at(NOW).decode(&text, DecodeFilter::default()).matches {
            prop_assert_eq!(found.encoding().to_text(found.id()), &text[..]);
            let is_here = found.format().name == format.name && found.encoding().name() == encoding.name();
            prop_assert!(!is_here || (found.id() == id) != changed, "{} is {} twice", text, id);
        }
    }

    #[test]
    fn no_text_of_an_id_is_replaced_by_another_text_of_the_same_id(at in any::<[Index; 3]>(), seeds in seeds()) {
        let format = at[0].get(DECODER.formats());
        let id = id_of(format, &values(format, at[1], &seeds));
        let text = at[2].get(&format.encodings).to_text(id).to_string();
        let filter = DecodeFilter { format: Some(&format.name), liberty: Liberty::Lenient, ..DecodeFilter::default() };
        let decoder = DECODER.at(NOW);
        if let Some(other) = decoder.meant_text(&text, filter) {
            let read = decoder.decode(&other, filter).matches[0].id();
            prop_assert_ne!(read, id, "{} is read instead of {}", other, text);
        }
    }

    #[test]
    fn sortable_texts_stand_in_the_order_of_their_ids_and_times(
        at in any::<Index>(), variants in any::<[Index; 2]>(), seeds in [seeds(), seeds()],
    ) {
        let format = at.get(DECODER.formats());
        let ids = [0, 1].map(|one| id_of(format, &values(format, variants[one], &seeds[one])));
        let times = ids.map(|id| format.split(id).unwrap().time);
        let in_order = times[0] == times[1] || times[0].cmp(&times[1]) == ids[0].cmp(&ids[1]);
        prop_assert!(in_order || !format.variants[0].layout.time_leads());
        for encoding in format.encodings.iter().filter(|encoding| encoding.is_sortable()) {
            let texts = ids.map(|id| encoding.to_text(id));
            prop_assert_eq!(texts[0].cmp(&texts[1]), ids[0].cmp(&ids[1]), "{:?}", texts);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, max_local_rejects: 1_000_000, ..ProptestConfig::default() })]

    #[test]
    fn a_range_of_a_custom_format_has_the_ids_of_its_span_and_no_other(
        format in custom_format(&ANY), variant in any::<Index>(), seeds in seeds(),
        before in -2_000_000_i128..2_000_000, after in -2_000_000_i128..2_000_000,
    ) {
        let id = id_of(&format, &values(&format, variant, &seeds));
        let time = format.split(id).unwrap().time.unwrap_or(format.epoch);
        let [from, to] = [time.nanos() - before, time.nanos() + after].map(UnixTime::from_nanos);
        match format.range(from, to) {
            Ok(range) => prop_assert_eq!((range.least..=range.greatest).contains(&id), from <= time && time < to),
            Err(RangeError::NoTime | RangeError::TimeNotLeading) => prop_assert!(!format.leads_with_time()),
            Err(_) => prop_assert!(time < from || to <= time),
        }
    }

    #[test]
    fn the_example_of_a_custom_format_is_an_id_of_it(format in custom_format(&ANY)) {
        prop_assert!(format.split(format.example()).is_ok());
        prop_assert!((format.least()..=format.greatest()).contains(&format.example()));
    }
}

#[test]
fn a_stride_that_reaches_into_a_suffix_code_is_refused() {
    let compiled = |above: &str, word: &str| {
        let text = format!(
            r#"
            summary = "A type in the last bits"
            rule = "decode-only"
            fields = [{{ name = "item", kind = "object", bits = 8{above} }},
                      {{ name = "type", kind = "qualifier", bits = 4{word}, codes = [{}] }}]
            encodings = ["decimal"]
            "#,
            CODES[0]
        );
        FormatDefinition::from_toml("goods", &text)
            .unwrap()
            .compile("goods")
            .map_err(|error| error.to_string())
    };
    assert!(compiled("", "").is_ok() && compiled(", stride = 32", "").is_ok());
    let refusal = "must be a multiple of 2, or ids of two types could be the same number";
    assert_eq!(
        compiled(", stride = 17", "").unwrap_err(),
        format!("format `goods`: field `item`: stride 17 {refusal}")
    );
    let error = compiled("", ", stride = 2").unwrap_err();
    assert!(
        error.contains("stride 3 must be a multiple of 4"),
        "{error}"
    );
}

#[test]
fn the_encodings_that_sort_are_those_of_fixed_width_in_ascending_letters() {
    let sortable = |name: &str| {
        let format = DECODER
            .formats()
            .iter()
            .find(|format| format.name == name)
            .unwrap();
        let sortable = format
            .encodings
            .iter()
            .filter(|encoding| encoding.is_sortable());
        sortable
            .map(|encoding| encoding.name().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(sortable("siq"), ["hex_padded", "bytes16_hex", "uuid8"]);
    assert_eq!(sortable("snowflake"), ["hex_padded", "cb32", "bytes8_hex"]);
    assert_eq!(sortable("payment"), ["base36"]);
    assert_eq!(sortable("flax"), ["base64_lex", "hex_padded"]);
}

#[test]
fn every_low_half_of_a_siq_ends_in_exactly_one_word() {
    let siq = DECODER
        .formats()
        .iter()
        .find(|format| format.name == "siq")
        .unwrap();
    let words = || {
        siq.variants
            .iter()
            .map(|variant| variant.layout.field_of(FieldKind::Qualifier).unwrap())
    };
    let mut ids_of = vec![0_u32; siq.variants.len()];
    for low in 0..1_u128 << 16 {
        assert_eq!(
            words()
                .filter(|word| Some(low & word.max) == word.constant)
                .count(),
            1,
            "{low:016b}"
        );
        let variant = siq.variant_of(low);
        let at = siq
            .variants
            .iter()
            .position(|other| std::ptr::eq(variant, other))
            .unwrap();
        ids_of[at] += 1;
        let values = siq.split(low).unwrap().values;
        assert_eq!(variant.layout.pack(&values), Ok(low));
    }
    assert_eq!(
        siq.variants
            .iter()
            .filter(|variant| variant.assigned)
            .count(),
        15
    );
    assert_eq!(
        siq.variants
            .iter()
            .filter(|variant| !variant.assigned)
            .count(),
        3
    );
    let bits = |word: &idmint_core::id::Field| word.max.count_ones();
    assert!(
        words()
            .zip(&ids_of)
            .all(|(word, ids)| *ids == 1 << (16 - bits(word))),
        "{ids_of:?}"
    );
    assert_eq!(
        siq.type_named("unassigned").map(|_| ()),
        Err(Rejection::UnassignedQualifier)
    );
}
