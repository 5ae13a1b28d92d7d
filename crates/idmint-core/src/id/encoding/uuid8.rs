//! A codec that writes a number of at most 122 bits inside a UUID of version 8.

use super::letters::LetterSet;
use super::parameter::ParameterError;
use super::uuid::Uuid;
use crate::id::rejection::Rejection;

/// The number of bits in a UUID that are free for data, because they are not part of the version or
/// the variant.
const FREE_BITS: u32 = 122;
const VERSION: u128 = 8 << 76;
const VERSION_MASK: u128 = 0xf << 76;
const VARIANT: u128 = 0b10 << 62;
const VARIANT_MASK: u128 = 0b11 << 62;

/// A codec that fills a UUID of version 8 with the bits of a number from the left, and skips the
/// bits of the version and the variant. A database column of such UUIDs therefore sorts like the
/// numbers.
///
/// The highest bit that a number can have becomes the first bit of the UUID. The unused bits on the
/// right are zero. RFC 9562, section 5.8, defines the form. The arrangement of the number's bits is
/// specific to idmint.
#[derive(Debug, Clone)]
pub(super) struct Uuid8 {
    uuid: Uuid,
    bits: u32,
}

impl Uuid8 {
    /// Creates a codec for the numbers 0 to `max`.
    ///
    /// # Errors
    /// Returns [`ParameterError`] if `max` has more than 122 bits.
    pub(super) fn new(max: u128) -> Result<Self, ParameterError> {
        let bits = u128::BITS - max.leading_zeros();
        if bits > FREE_BITS {
            let bound = format!(
                "must be at most {FREE_BITS}, the number of free bits in a UUID of version 8"
            );
            return ParameterError::refuse("bits", bits, bound);
        }
        Ok(Self {
            uuid: Uuid::new(),
            bits,
        })
    }

    /// Writes the text for the number `value` to `out`, which must have exactly 36 bytes.
    pub(super) fn write(&self, value: u128, out: &mut [u8]) {
        let free = value << (FREE_BITS - self.bits);
        let (upper, middle, lower) = (free >> 74, (free >> 62) & 0xfff, free & ((1 << 62) - 1));
        self.uuid
            .write(upper << 80 | VERSION | middle << 64 | VARIANT | lower, out);
    }

    /// Parses a text as a number.
    ///
    /// # Errors
    /// Returns the first error that applies: an error of [`Uuid::read`], [`Rejection::BadVersion`]
    /// for another version or variant, [`Rejection::NonCanonical`] if a bit to the right of the
    /// number is set.
    pub(super) fn read(&self, text: &str) -> Result<u128, Rejection> {
        let uuid = self.uuid.read(text)?;
        if uuid & VERSION_MASK != VERSION || uuid & VARIANT_MASK != VARIANT {
            return Err(Rejection::BadVersion);
        }
        let (upper, middle, lower) = (uuid >> 80, (uuid >> 64) & 0xfff, uuid & ((1 << 62) - 1));
        let free = upper << 74 | middle << 62 | lower;
        let value = free >> (FREE_BITS - self.bits);
        if value << (FREE_BITS - self.bits) == free {
            Ok(value)
        } else {
            Err(Rejection::NonCanonical)
        }
    }

    /// Returns the letters that texts of this codec can contain.
    pub(super) fn letters(&self) -> LetterSet {
        self.uuid.letters()
    }

    /// Returns a regular expression that accepts every text of this codec, and refuses texts with
    /// other lengths or letters. The expression is anchored at both ends.
    pub(super) fn pattern(&self) -> String {
        "^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::encoding::codec::Codec;
    use crate::id::encoding::vectors;

    #[test]
    fn bits_are_written_from_the_left_around_version_and_variant() {
        let codec = Uuid8::new(u128::from(u64::MAX)).expect("a valid parameter");
        let mut text = vec![0; 36];
        codec.write(0x0123_4567_89ab_cdef, &mut text);
        assert_eq!(text, b"01234567-89ab-8cde-bc00-000000000000");
    }

    #[test]
    fn more_than_122_bits_are_refused() {
        assert!(Uuid8::new((1 << 122) - 1).is_ok());
        let error = Uuid8::new(1 << 122).expect_err("123 bits");
        assert_eq!(
            error.to_string(),
            "bits is 123, but must be at most 122, the number of free bits in a UUID of version 8"
        );
    }

    #[test]
    fn another_version_or_variant_or_a_trailing_bit_is_rejected() {
        let codec = Uuid8::new(u128::from(u64::MAX)).expect("64 bits");
        assert_eq!(
            codec.read("01234567-89ab-8cde-bc00-000000000000"),
            Ok(0x0123_4567_89ab_cdef)
        );
        assert_eq!(
            codec.read("01234567-89ab-7cde-bc00-000000000000"),
            Err(Rejection::BadVersion)
        );
        assert_eq!(
            codec.read("01234567-89ab-8cde-cc00-000000000000"),
            Err(Rejection::BadVersion)
        );
        assert_eq!(
            codec.read("01234567-89ab-8cde-bc00-000000000001"),
            Err(Rejection::NonCanonical)
        );
    }

    proptest! {
        #![proptest_config(vectors::same_cases_every_time())]

        #[test]
        fn every_text_is_a_uuid_of_version_8(value: u128, cut in 6_u32..128) {
            let codec = Codec::Uuid8(Uuid8::new(u128::MAX >> cut).expect("122 bits at most"));
            let text = vectors::text_of(&codec, value >> cut);
            let uuid = ::uuid::Uuid::parse_str(&text).expect("a UUID");
            prop_assert_eq!(uuid.get_version_num(), 8);
            prop_assert_eq!(uuid.get_variant(), ::uuid::Variant::RFC4122);
            prop_assert_eq!(codec.read(&text), Ok(value >> cut));
        }

        #[test]
        fn order_is_kept(one: u128, other: u128, cut in 6_u32..128) {
            let codec = Codec::Uuid8(Uuid8::new(u128::MAX >> cut).expect("122 bits at most"));
            let (one, other) = (one >> cut, other >> cut);
            prop_assert_eq!(one.cmp(&other), vectors::text_of(&codec, one).cmp(&vectors::text_of(&codec, other)));
        }
    }
}
