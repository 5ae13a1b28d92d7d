//! Evidence from the choice of encoding: how unusual it is to write an id of a format in a given
//! encoding.

use super::packed_layout::PackedLayout;
use crate::id::encoding::{Encoding, EncodingKind};
use crate::id::format::{Format, Rule};

/// The evidence, in bits, against an id in an uncommon encoding. About one id in 2^5 is written in
/// an uncommon encoding.
pub(in crate::id) const BITS_OF_OTHER_ENCODING: f64 = 5.0;

/// The evidence, in bits, against an id that looks like a UUID of version 3, 4, 5, 7 or 8, although
/// the ids of its format are not UUIDs.
///
/// The version and the variant match by chance in one of 2^6 ids, which gives 6 bits. Only one in
/// 2^7 texts that look like such a UUID is something else, which gives 7 more bits. UUIDs of the
/// versions 1, 2 and 6 need no such rule, because their time is evidence enough.
const BITS_OF_RANDOM_VERSION: f64 = 13.0;

/// The evidence, in bits, against an id in UUID notation that looks like a UUID of version 7 or 8,
/// although the ids of its format are not UUIDs. Such UUIDs mostly begin with the time in
/// milliseconds, as ULIDs do. Their plausible time must therefore not count as evidence for a ULID.
const BITS_OF_TIME_VERSION: f64 = 28.0;

/// The evidence, in bits, against an id in UUID notation that looks like a UUID of version 7 or 8,
/// but whose leading 48 bits are a time before [`UUID7_FROM_MS`]. Few UUIDs contain such an early
/// time, so the evidence is weaker than [`BITS_OF_TIME_VERSION`]. A UUID is still the likelier
/// reading.
const BITS_OF_EARLY_TIME_VERSION: f64 = 9.0;

/// The beginning of 2021 in milliseconds since 1970. No UUID of version 7 is older.
const UUID7_FROM_MS: u128 = 1_609_459_200_000;

/// The minimum evidence, in bits, to report an id with a plausible time and in its canonical
/// encoding without the doubt that the text is random. At -4 bits, the text is 2^4 times likelier
/// as random. For example, one in three random tokens of 16 letters can be read as an old Flax id,
/// with an evidence of -5 bits.
const CLEAR_BITS: f64 = -4.0;

/// The minimum evidence to report an id without doubt if its time is implausible or its encoding
/// not canonical: 12 bits, so that the text is 2^12 times likelier as an id than as a random text.
const CLEAR_BITS_OF_OTHERS: f64 = 12.0;

const TIME_SHIFT: u32 = 80;
const VERSION_SHIFT: u32 = 76;
const VARIANT_SHIFT: u32 = 62;

/// Properties of one encoding of a format, which show how common ids in this encoding are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spelling {
    is_canonical: bool,
    /// `true` if ids of the format are as common in this encoding as in the canonical one.
    is_common: bool,
    /// `true` if the encoding writes UUIDs with hyphens.
    is_uuid: bool,
    is_usual: bool,
    /// `true` if the ids of the format are not UUIDs, but texts in this encoding can look like
    /// UUIDs. A text that looks like a UUID more probably belongs to a UUID format.
    is_unclaimed: bool,
}

impl Spelling {
    /// Returns the properties of each encoding of a format, in the order of the encodings.
    pub(super) fn of_all(format: &Format) -> Vec<Spelling> {
        let claims = (0xf << VERSION_SHIFT) | (3 << VARIANT_SHIFT);
        let are_uuids = format
            .layouts()
            .all(|layout| PackedLayout::new(layout).constants().cover(claims));
        let is_integer = format.is_stored_as_integer();
        let spelling = |(at, encoding): (usize, &Encoding)| {
            let kind = encoding.definition().kind;
            let is_uuid = matches!(kind, EncodingKind::Uuid | EncodingKind::Uuid8);
            let has_uuids = kind == EncodingKind::Uuid
                || kind == EncodingKind::HexPadded && encoding.fixed_len() == Some(32);
            let is_unclaimed = has_uuids && !are_uuids;
            let is_common = at == 0 || is_integer && kind == EncodingKind::Decimal;
            Spelling {
                is_canonical: at == 0,
                is_common,
                is_uuid,
                is_usual: is_common || kind == EncodingKind::Uuid8 || is_uuid && is_unclaimed,
                is_unclaimed,
            }
        };
        format.encodings.iter().enumerate().map(spelling).collect()
    }

    /// `true` if this encoding counts as usual for the format. This holds for the common encodings
    /// of the format. It also holds for UUID notation if the ids of the format are not UUIDs. That
    /// notation alone says nothing about the format, so it is no reason to doubt a reading.
    pub(super) fn is_usual(self) -> bool {
        self.is_usual
    }

    /// Returns the encoding's evidence against `id`, such as 5 bits if one in 2^5 ids uses it.
    pub(super) fn bits(self, id: u128) -> f64 {
        let of_encoding = if self.is_common {
            0.0
        } else {
            BITS_OF_OTHER_ENCODING
        };
        match (id >> VERSION_SHIFT) & 0xf {
            _ if !self.is_unclaimed || (id >> VARIANT_SHIFT) & 3 != 2 => of_encoding,
            7 | 8 if self.is_uuid && (id >> TIME_SHIFT) < UUID7_FROM_MS => {
                of_encoding + BITS_OF_EARLY_TIME_VERSION
            }
            7 | 8 if self.is_uuid => of_encoding + BITS_OF_TIME_VERSION,
            3..=5 | 7 | 8 => of_encoding + BITS_OF_RANDOM_VERSION,
            _ => of_encoding,
        }
    }

    /// Returns the minimum evidence, in bits, for reporting an id in this encoding without doubt.
    /// At 0 bits, the text is as likely to be random. `is_plausible` refers to the id's time.
    pub(super) fn bits_of_clear(self, is_plausible: bool) -> f64 {
        if self.is_canonical && is_plausible {
            CLEAR_BITS
        } else {
            CLEAR_BITS_OF_OTHERS
        }
    }
}

impl Format {
    /// `true` if ids of the format fill the 63 or 64 bits of an integer, and other programs mint
    /// them. Their databases store and show the integer, so decimal is as common as the canonical
    /// encoding.
    pub(in crate::id) fn is_stored_as_integer(&self) -> bool {
        let integers = 1 << 62..=u64::MAX.into();
        self.rule == Rule::DecodeOnly && integers.contains(&self.greatest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::preset;

    #[test]
    fn an_id_that_other_programs_store_as_an_integer_is_common_in_decimal() {
        for (format, encoding, expected) in [
            ("tsid", "decimal", 0.0),
            ("tsid", "crockford", 0.0),
            ("sonyflake", "decimal", 0.0),
            ("sonyflake", "hex_padded", 5.0),
            ("payment", "base36", 0.0),
            ("payment", "decimal", 5.0),
        ] {
            let format = preset(format);
            let spellings = Spelling::of_all(&format);
            let at = format
                .encodings
                .iter()
                .position(|one| one.name() == encoding);
            let found = spellings[at.expect("an encoding")];
            assert!(
                (found.bits(1) - expected).abs() < 1e-9,
                "{} {encoding}",
                format.name
            );
            assert!(found.is_usual() || expected > 0.0);
        }
    }

    #[test]
    fn a_uuid_before_the_first_uuid7_may_be_a_ulid() {
        let ulid = preset("ulid");
        let uuid = ulid.encodings.iter().position(|one| one.name() == "uuid");
        let spelling = Spelling::of_all(&ulid)[uuid.expect("an encoding")];
        let bits = |ms: u128, version: u128| spelling.bits(ms << 80 | version << 76 | 2 << 62);
        for (ms, version, expected) in [
            (UUID7_FROM_MS - 1, 7, 14.0),
            (UUID7_FROM_MS - 1, 8, 14.0),
            (UUID7_FROM_MS, 7, 33.0),
            (UUID7_FROM_MS, 8, 33.0),
            (UUID7_FROM_MS, 4, 18.0),
        ] {
            let found = bits(ms, version);
            assert!((found - expected).abs() < 1e-9, "{ms} {version}: {found}");
        }
    }

    #[test]
    fn the_version_of_a_uuid_speaks_against_a_format_without_one() {
        let bits = |format: &str, encoding: &str, version: u128| {
            let format = preset(format);
            let at = format
                .encodings
                .iter()
                .position(|one| one.name() == encoding);
            Spelling::of_all(&format)[at.expect("an encoding")].bits(version << 76 | 2 << 62)
        };
        for (format, encoding, version, expected) in [
            ("ulid", "crockford", 4, 0.0),
            ("ulid", "uuid", 0, 5.0),
            ("ulid", "uuid", 4, 18.0),
            ("ulid", "hex_padded", 4, 18.0),
            ("ulid", "uuid", 6, 5.0),
            ("ulid", "uuid", 8, 14.0),
            ("evently", "hex_padded", 4, 13.0),
            ("uuid4", "uuid", 4, 0.0),
            ("uuid4", "hex_padded", 4, 5.0),
            ("siq", "uuid8", 8, 5.0),
            ("ulid", "uuid", 7, 14.0),
        ] {
            let found = bits(format, encoding, version);
            assert!(
                (found - expected).abs() < 1e-9,
                "{format} {encoding} {version}: {found}"
            );
        }
    }
}
