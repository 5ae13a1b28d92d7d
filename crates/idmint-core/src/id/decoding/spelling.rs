//! The spelling of an id: how unusual it is to write an id of a format in a given encoding.

use super::packed_layout::PackedLayout;
use crate::id::encoding::{Encoding, EncodingKind};
use crate::id::format::Format;

/// The evidence, in bits, against an id in a non-canonical encoding. One in 2^5 ids is written that
/// way.
pub(super) const BITS_OF_OTHER_ENCODING: f64 = 5.0;

/// The evidence, in bits, against an id that looks like a UUID of version 3, 4, 5, 7 or 8 by
/// chance, although the ids of its format are not UUIDs. The evidence is 6 bits, because the
/// version and the variant match by chance, plus 7 bits, because only one in 2^7 texts that look
/// like such a UUID is something else. UUIDs of the versions 1, 2 and 6 have a time, which is
/// evidence enough.
const BITS_OF_RANDOM_VERSION: f64 = 13.0;

/// The evidence, in bits, against an id in UUID notation that looks like a UUID of version 7 or 8,
/// although the ids of its format are not UUIDs. Like ULIDs, such UUIDs mostly begin with the time
/// in milliseconds. A plausible time is therefore no evidence for a ULID.
const BITS_OF_TIME_VERSION: f64 = 28.0;

/// The minimum evidence, in bits, with which a plausible reading in the canonical encoding is
/// clearly not a random text.
const CLEAR_BITS: f64 = -8.0;

/// The minimum evidence, in bits, with which an implausible or non-canonical reading is clearly not
/// a random text.
const CLEAR_BITS_OF_OTHERS: f64 = 12.0;

const VERSION_SHIFT: u32 = 76;
const VARIANT_SHIFT: u32 = 62;

/// One encoding of a format, with properties that show how usual its texts are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spelling {
    is_canonical: bool,
    /// `true` if the encoding writes UUIDs with hyphens.
    is_uuid: bool,
    is_usual: bool,
    /// `true` if texts of the encoding may be UUIDs, but the ids of the format are not UUIDs.
    is_unclaimed: bool,
}

impl Spelling {
    /// Returns the spelling for each encoding of a format, in the order of the encodings.
    pub(super) fn of_all(format: &Format) -> Vec<Spelling> {
        let claims = (0xf << VERSION_SHIFT) | (3 << VARIANT_SHIFT);
        let are_uuids = format.variants.iter().all(|variant| {
            let constants = PackedLayout::new(&variant.layout).constants();
            constants.cover(claims)
        });
        let spelling = |(at, encoding): (usize, &Encoding)| {
            let kind = encoding.definition().kind;
            let is_uuid = matches!(kind, EncodingKind::Uuid | EncodingKind::Uuid8);
            let has_uuids = kind == EncodingKind::Uuid
                || kind == EncodingKind::HexPadded && encoding.fixed_len() == Some(32);
            let is_unclaimed = has_uuids && !are_uuids;
            Spelling {
                is_canonical: at == 0,
                is_uuid,
                is_usual: at == 0 || kind == EncodingKind::Uuid8 || is_uuid && is_unclaimed,
                is_unclaimed,
            }
        };
        format.encodings.iter().enumerate().map(spelling).collect()
    }

    /// `true` for the canonical encoding, and for an encoding that writes ids in UUID notation
    /// although they are not UUIDs. UUID notation alone says nothing about the format.
    pub(super) fn is_usual(self) -> bool {
        self.is_usual
    }

    /// Returns the evidence, in bits, against the id `id` being written in this encoding.
    pub(super) fn bits(self, id: u128) -> f64 {
        let of_encoding = if self.is_canonical {
            0.0
        } else {
            BITS_OF_OTHER_ENCODING
        };
        match (id >> VERSION_SHIFT) & 0xf {
            _ if !self.is_unclaimed || (id >> VARIANT_SHIFT) & 3 != 2 => of_encoding,
            7 | 8 if self.is_uuid => of_encoding + BITS_OF_TIME_VERSION,
            3..=5 | 7 | 8 => of_encoding + BITS_OF_RANDOM_VERSION,
            _ => of_encoding,
        }
    }

    /// Returns the minimum evidence, in bits, with which a reading in this encoding is clearly not
    /// a random text.
    pub(super) fn bits_of_clear(self, is_plausible: bool) -> f64 {
        if self.is_canonical && is_plausible {
            CLEAR_BITS
        } else {
            CLEAR_BITS_OF_OTHERS
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::preset;

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
            ("ulid", "uuid", 8, 33.0),
            ("evently", "hex_padded", 4, 13.0),
            ("uuid4", "uuid", 4, 0.0),
            ("uuid4", "hex_padded", 4, 5.0),
            ("siq", "uuid8", 8, 5.0),
        ] {
            let found = bits(format, encoding, version);
            assert!(
                (found - expected).abs() < 1e-9,
                "{format} {encoding} {version}: {found}"
            );
        }
    }
}
