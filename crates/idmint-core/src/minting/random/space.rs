//! Combines all random fields of an id into one number.

use crate::id::{Field, FieldKind, Layout};

/// The random fields of a layout as digits of a single number, the most significant field first.
/// For example, two fields with 10 and 4 values give a number from 0 to 39.
///
/// If two ids differ only in random fields, the id with the greater number is the greater id.
#[derive(Debug)]
pub(super) struct RandomSpace {
    /// The random fields as digits, least significant first.
    digits: Vec<Digit>,
    greatest: u128,
}

#[derive(Debug, Clone, Copy)]
struct Digit {
    max: u128,
    stride: u128,
    /// The number of bits of the digit, or `None` if the digit's number of values is not a power of
    /// two.
    bits: Option<u32>,
}

impl RandomSpace {
    /// Treats the random fields of a layout, at least one, as the digits of one number.
    pub(super) fn of(layout: &Layout) -> RandomSpace {
        let fields = layout.fields_of(FieldKind::Random);
        let digits: Vec<Digit> = fields.rev().map(Digit::of).collect();
        let greatest = digits
            .iter()
            .fold(0, |greatest, digit| greatest * (digit.max + 1) + digit.max);
        RandomSpace { digits, greatest }
    }

    /// Returns the greatest number that all random fields together can hold.
    pub(super) fn greatest(&self) -> u128 {
        self.greatest
    }

    /// Splits `number` into the values of the random fields. Returns the id in which these fields
    /// have these values and all other fields are 0.
    #[inline]
    pub(super) fn share_of(&self, mut number: u128) -> u128 {
        let mut share = 0;
        for digit in &self.digits {
            let value = match digit.bits {
                Some(bits) => {
                    let value = number & digit.max;
                    number >>= bits;
                    value
                }
                None => {
                    let value = number % (digit.max + 1);
                    number /= digit.max + 1;
                    value
                }
            };
            share += value * digit.stride;
        }
        share
    }
}

impl Digit {
    fn of(field: &Field) -> Digit {
        let values = field.max + 1;
        Digit {
            max: field.max,
            stride: field.stride,
            bits: values.is_power_of_two().then_some(values.ilog2()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Width, preset};

    #[test]
    fn a_greater_number_is_a_greater_id_over_fields_that_lie_apart() {
        let layout = Layout::builder()
            .field("time", FieldKind::Time, Width::Bits(8))
            .field("a", FieldKind::Random, Width::Cardinality(5))
            .field("worker", FieldKind::Worker, Width::Bits(4))
            .field("b", FieldKind::Random, Width::Bits(3))
            .field("c", FieldKind::Random, Width::Cardinality(3))
            .build()
            .expect("fits");
        let space = RandomSpace::of(&layout);
        assert_eq!(space.greatest(), 5 * 8 * 3 - 1);
        let shares: Vec<_> = (0..=space.greatest())
            .map(|number| space.share_of(number))
            .collect();
        assert!(shares.is_sorted_by(|one, next| one < next), "{shares:?}");
        assert_eq!(
            layout.unpack(shares[3 * 24 + 5 * 3 + 2]),
            Ok(vec![0, 3, 0, 5, 2])
        );
    }

    #[test]
    fn the_twelve_greatest_bits_of_a_uuid7_are_those_below_its_version() {
        let space = RandomSpace::of(&preset("uuid7").variants[0].layout);
        assert_eq!(space.greatest(), (1 << 74) - 1);
        assert_eq!(space.share_of(0xabc << 62 | 0x123), 0xabc << 64 | 0x123);
    }
}
