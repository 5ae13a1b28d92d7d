//! Compares encodings with implementations by other authors. Each crate used here must write and
//! read the same numbers as idmint.
//!
//! Encodings are created from TOML, as in a configuration. All values are drawn from a fixed seed.

use data_encoding::{
    BASE32_NOPAD, BASE32HEX_NOPAD, BASE64URL_NOPAD, HEXLOWER, HEXUPPER, Specification,
};
use harsh::Harsh;
use idmint_core::id::{Encoding, EncodingDefinition, FieldKind, Format, FormatDefinition, PRESETS};
use idmint_core::time::UnixTime;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::Deserialize;
use sqids::Sqids;
use ulid::Ulid;
use uuid::{Builder, Uuid};

/// The number of values that are compared for each encoding.
const VALUES: u32 = 10_000;

/// Creates an encoding from its TOML definition, for numbers of `bits` bits.
fn encoding(definition: &str, bits: u32) -> Encoding {
    #[derive(Deserialize)]
    struct One {
        encoding: EncodingDefinition,
    }
    let one: One = toml::from_str(&format!("encoding = {definition}")).unwrap();
    Encoding::new(&one.encoding, u128::MAX >> (128 - bits)).unwrap()
}

/// Draws a number with at most `bits` bits. It has any length, and is sometimes an end of the
/// range.
fn number(random: &mut StdRng, bits: u32) -> u128 {
    let greatest = u128::MAX >> (128 - bits);
    match random.random_range(0..100) {
        0 => 0,
        1 => greatest,
        _ => (random.random::<u128>() & greatest) >> random.random_range(0..bits),
    }
}

/// Compares writing and reading for each value, and returns the number of values compared.
#[track_caller]
fn assert_agreement(
    definition: &str,
    bits: u32,
    values: u32,
    spell: impl Fn(u128) -> String,
    read: impl Fn(&str) -> u128,
) -> u32 {
    let (encoding, mut random) = (
        encoding(definition, bits),
        StdRng::seed_from_u64(u64::from(bits)),
    );
    let compared = (0..values).map(|_| {
        let value = number(&mut random, bits);
        let text = encoding.to_text(value);
        assert_eq!(text, spell(value), "{value} as {definition}");
        assert_eq!(read(&text), value, "{text} as {definition}");
        assert_eq!(encoding.read(&text), Ok(value), "{text} as {definition}");
    });
    compared.count().try_into().unwrap()
}

#[test]
fn uuids_are_those_of_the_uuid_crate() {
    let spell = |value| Uuid::from_u128(value).hyphenated().to_string();
    let read = |text: &str| Uuid::parse_str(text).unwrap().as_u128();
    assert_eq!(
        assert_agreement(r#""uuid""#, 128, VALUES, spell, read),
        VALUES
    );
}

/// Returns the 122 bits of a UUID that are not its version or variant. They can hold an id of any
/// layout.
fn payload(uuid: Uuid) -> u128 {
    let bits = uuid.as_u128();
    assert_eq!(
        (uuid.get_version_num(), uuid.get_variant()),
        (8, uuid::Variant::RFC4122)
    );
    (bits >> 80) << 74 | (bits >> 64 & 0xfff) << 62 | bits & (u128::MAX >> 66)
}

#[test]
fn uuids_of_version_8_are_so_to_the_uuid_crate_and_carry_the_number() {
    let spell = |value: u128| {
        let bits = (value >> 74) << 80 | (value >> 62 & 0xfff) << 64 | value & (u128::MAX >> 66);
        Builder::from_custom_bytes(bits.to_be_bytes())
            .into_uuid()
            .to_string()
    };
    let read = |text: &str| payload(Uuid::parse_str(text).unwrap());
    assert_eq!(
        assert_agreement(r#""uuid8""#, 122, VALUES, spell, read),
        VALUES
    );
}

#[test]
fn ulids_are_those_of_the_ulid_crate() {
    let read = |text: &str| u128::from(Ulid::from_string(text).unwrap());
    let ulid = r#"{ kind = "crockford", length = 26 }"#;
    assert_eq!(
        assert_agreement(
            ulid,
            128,
            VALUES,
            |value| Ulid::from(value).to_string(),
            read
        ),
        VALUES
    );
}

fn format(name: &str) -> Format {
    let preset = PRESETS.iter().find(|preset| preset.name == name).unwrap();
    FormatDefinition::from_toml(name, preset.toml)
        .unwrap()
        .compile(name)
        .unwrap()
}

/// Packs the values of all fields except constants into one number. The first field is the most
/// significant.
fn free_bits(format: &Format, id: u128) -> u128 {
    let parts = format.split(id).unwrap();
    let free = parts
        .layout
        .fields()
        .iter()
        .zip(&parts.values)
        .filter(|(field, _)| field.kind != FieldKind::Constant);
    free.fold(0, |all, (field, value)| all * (field.max + 1) + value)
}

#[test]
fn uuids_of_version_4_are_read_as_the_uuid_crate_builds_them() {
    let (format, mut random) = (format("uuid4"), StdRng::seed_from_u64(4));
    let compared = (0..VALUES).map(|_| {
        let drawn = random.random::<u128>();
        let uuid = Builder::from_random_bytes(drawn.to_be_bytes()).into_uuid();
        let id = format.canonical().read(&uuid.to_string()).unwrap();
        assert_eq!(
            free_bits(&format, id),
            (drawn >> 80) << 74 | (drawn >> 64 & 0xfff) << 62 | drawn & u128::MAX >> 66
        );
    });
    assert_eq!(compared.count(), VALUES as usize);
}

#[test]
fn uuids_of_version_7_carry_the_time_and_the_bits_that_the_uuid_crate_put_in() {
    let (format, mut random) = (format("uuid7"), StdRng::seed_from_u64(7));
    let compared = (0..VALUES).map(|_| {
        let millis = u64::try_from(number(&mut random, 48)).unwrap();
        let drawn: [u8; 10] = random.random();
        let uuid = Builder::from_unix_timestamp_millis(millis, &drawn).into_uuid();
        let id = format.canonical().read(&uuid.to_string()).unwrap();
        let (seconds, nanos) = uuid.get_timestamp().unwrap().to_unix();
        let time = UnixTime::from_nanos(i128::from(seconds) * 1_000_000_000 + i128::from(nanos));
        assert_eq!(format.split(id).unwrap().time, Some(time), "{uuid}");
        let drawn = drawn
            .iter()
            .fold(0, |all, byte| all << 8 | u128::from(*byte));
        let kept = (drawn >> 64 & 0xfff) << 62 | drawn & u128::MAX >> 66;
        assert_eq!(
            free_bits(&format, id),
            u128::from(millis) << 74 | kept,
            "{uuid}"
        );
    });
    assert_eq!(compared.count(), VALUES as usize);
}

#[test]
fn ulids_carry_the_time_and_the_bits_that_the_ulid_crate_put_in() {
    let (format, mut random) = (format("ulid"), StdRng::seed_from_u64(26));
    let compared = (0..VALUES).map(|_| {
        let (millis, drawn) = (
            u64::try_from(number(&mut random, 48)).unwrap(),
            number(&mut random, 80),
        );
        let ulid = Ulid::from_parts(millis, drawn);
        let id = format.canonical().read(&ulid.to_string()).unwrap();
        let parts = format.split(id).unwrap();
        assert_eq!(
            parts.time,
            Some(UnixTime::from_nanos(i128::from(millis) * 1_000_000)),
            "{ulid}"
        );
        assert_eq!(parts.values, [millis.into(), drawn], "{ulid}");
    });
    assert_eq!(compared.count(), VALUES as usize);
}

fn u64_of(value: u128) -> u64 {
    value.try_into().unwrap()
}

#[test]
fn hashids_are_those_of_the_harsh_crate() {
    const DEFAULT: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ1234567890";
    for (alphabet, salt, min_length) in [
        (DEFAULT, "", 0),
        (DEFAULT, "this is my salt", 8),
        (DEFAULT, "pepper and \\\"salt\\\"", 40),
        ("abcdefghijklmnopqrstuvwxyz", "", 20),
        ("0123456789abcdef", "MmS", 12),
        (
            "!$%&()*+,./:;<=>?@^_{|}~",
            "a salt that is far longer than the alphabet that it shuffles",
            0,
        ),
    ] {
        let theirs = Harsh::builder()
            .alphabet(alphabet)
            .salt(salt.replace('\\', ""))
            .length(min_length);
        let theirs = theirs.build().unwrap();
        let ours = format!(
            r#"{{ kind = "hashids", alphabet = "{alphabet}", salt = "{salt}", min_length = {min_length} }}"#
        );
        let spell = |value| theirs.encode(&[u64_of(value)]);
        let read = |text: &str| theirs.decode(text).unwrap()[0].into();
        assert_eq!(assert_agreement(&ours, 64, VALUES, spell, read), VALUES);
    }
    let theirs = Harsh::default();
    let read = |text: &str| theirs.decode(text).unwrap()[0].into();
    let spell = |value| theirs.encode(&[u64_of(value)]);
    assert_eq!(
        assert_agreement(r#""hashids""#, 64, VALUES, spell, read),
        VALUES
    );
}

#[test]
fn sqids_are_those_of_the_sqids_crate() {
    const DEFAULT: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    for (alphabet, min_length) in [
        (DEFAULT, 0),
        (DEFAULT, 10),
        (DEFAULT, 255),
        (
            "FxnXM1kBN6cuhsAvjW3Co7l2RePyY8DwaU04Tzt9fHQrqSVKdpimLGIJOgb5ZE",
            0,
        ),
        ("abcdefghijklmnopqrstuvwxyz", 16),
        ("0123456789abcdef", 0),
    ] {
        let theirs = Sqids::builder()
            .alphabet(alphabet.chars().collect())
            .min_length(min_length)
            .build()
            .unwrap();
        let ours =
            format!(r#"{{ kind = "sqids", alphabet = "{alphabet}", min_length = {min_length} }}"#);
        let spell = |value| theirs.encode(&[u64_of(value)]).unwrap();
        let read = |text: &str| theirs.decode(text)[0].into();
        assert_eq!(assert_agreement(&ours, 64, VALUES, spell, read), VALUES);
    }
    let theirs = Sqids::default();
    let read = |text: &str| theirs.decode(text)[0].into();
    let spell = |value| theirs.encode(&[u64_of(value)]).unwrap();
    assert_eq!(
        assert_agreement(r#""sqids""#, 64, VALUES, spell, read),
        VALUES
    );
}

/// Returns an encoding that assigns the bits of a number to letters from the left, as in RFC 4648.
fn letters_in_bits(letters: &str) -> data_encoding::Encoding {
    let mut specification = Specification::new();
    specification.symbols.push_str(letters);
    specification.encoding().unwrap()
}

/// Compares numbers of different lengths. The lengths are the multiples of `step` bytes, with
/// equally many values for each.
#[track_caller]
fn assert_bytes_agree(kind: &str, case: Option<&str>, step: u32, theirs: &data_encoding::Encoding) {
    let widths: Vec<u32> = (1..=16).filter(|bytes| bytes % step == 0).collect();
    let each = VALUES.div_ceil(widths.len().try_into().unwrap());
    let settings = case.map_or(String::new(), |case| format!(", case = \"{case}\""));
    let definition = format!(r#"{{ kind = "{kind}"{settings} }}"#);
    let compared = widths.iter().map(|&bytes| {
        let len = bytes as usize;
        let spell = |value: u128| theirs.encode(&value.to_be_bytes()[16 - len..]);
        let read = |text: &str| {
            let bytes = theirs.decode(text.as_bytes()).unwrap();
            assert_eq!(bytes.len(), len, "{text}");
            bytes
                .iter()
                .fold(0, |all, byte| all << 8 | u128::from(*byte))
        };
        assert_agreement(&definition, 8 * bytes, each, spell, read)
    });
    assert!(compared.sum::<u32>() >= VALUES, "{kind}");
}

#[test]
fn bytes_are_spelled_as_the_data_encoding_crate_does() {
    let lower = |theirs: &data_encoding::Encoding| {
        let mut specification = theirs.specification();
        specification.symbols.make_ascii_lowercase();
        specification.encoding().unwrap()
    };
    let base64_lex =
        letters_in_bits("-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz");
    assert_bytes_agree("hex_padded", None, 1, &HEXLOWER);
    assert_bytes_agree("hex_padded", Some("upper"), 1, &HEXUPPER);
    assert_bytes_agree("bytes16_hex", None, 16, &HEXLOWER);
    assert_bytes_agree("b32l", None, 1, &lower(&BASE32_NOPAD));
    assert_bytes_agree("base32hex", None, 1, &lower(&BASE32HEX_NOPAD));
    assert_bytes_agree("base32hex", Some("upper"), 1, &BASE32HEX_NOPAD);
    assert_bytes_agree(
        "cb32",
        None,
        1,
        &letters_in_bits("0123456789ABCDEFGHJKMNPQRSTVWXYZ"),
    );
    assert_bytes_agree("base64", None, 1, &BASE64URL_NOPAD);
    // `base64_lex` assigns bits from the right, like the digits of a number. If the number of bytes
    // is a multiple of three, both directions give the same text.
    assert_bytes_agree("base64_lex", None, 3, &base64_lex);
}
