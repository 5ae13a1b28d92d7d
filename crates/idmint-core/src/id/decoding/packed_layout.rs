//! Reads single fields from the number of an id without splitting it into all fields.

use crate::id::layout::{FieldKind, Layout};
use crate::id::rejection::Rejection;

/// A layout of an id, prepared so that numbers can be checked and single fields can be read
/// quickly.
#[derive(Debug)]
pub(super) struct PackedLayout {
    layout: Layout,
    /// The layout in a form that is fast to check. `None` if fields leave gaps between them or a
    /// constant does not fill whole bits. Numbers are then checked with `layout`.
    gapless: Option<Gapless>,
    /// The fields that together hold the time of an id. Each field comes with the number of ticks
    /// that one unit of the field stands for.
    times: Vec<(FieldPlace, u128)>,
}

/// A layout in which a number is an id if it is at most `greatest` and its constant fields have
/// their values. Each constant field has whole bits of its own, so a mask can select the field.
#[derive(Debug, Clone, Copy)]
struct Gapless {
    greatest: u128,
    constants: Constants,
}

/// The bits that have the same value in every id of a layout (`mask`), and their values (`bits`).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Constants {
    mask: u128,
    bits: u128,
}

/// The position of a field in an id's number.
#[derive(Debug)]
pub(super) enum FieldPlace {
    /// The field fills whole bits, starting at bit `shift`.
    Bits { shift: u32, mask: u128 },
    /// The field has no bits of its own. With the strides `a` and `b` of more significant fields in
    /// `above`, its value in an id is `id % a % b / stride`.
    Digits { above: Vec<u128>, stride: u128 },
}

impl PackedLayout {
    pub(super) fn new(layout: &Layout) -> PackedLayout {
        let fields = layout.fields().iter().enumerate();
        let times = fields.filter(|(_, field)| field.kind == FieldKind::Time);
        PackedLayout {
            layout: layout.clone(),
            gapless: Gapless::of(layout),
            times: times
                .map(|(at, field)| (FieldPlace::of(layout, at), field.scale))
                .collect(),
        }
    }

    /// Checks that a number is an id of the layout.
    ///
    /// # Errors
    /// Returns the same [`Rejection`] as [`Layout::unpack`] if the number is not an id.
    #[inline]
    pub(super) fn check(&self, id: u128) -> Result<(), Rejection> {
        match self.gapless {
            Some(Gapless {
                greatest,
                constants,
            }) if id <= greatest && constants.are_in(id) => Ok(()),
            // Without the fast check, `unpack_into` decides whether the number is an id. After a
            // failed fast check, it returns the reason why the number is not an id.
            _ => self.layout.unpack_into(id, &mut [0; Layout::FIELDS_MAX]),
        }
    }

    /// Returns the time of an id in ticks since the epoch, or `None` if the layout has no time.
    #[inline]
    pub(super) fn ticks_in(&self, id: u128) -> Option<u128> {
        let (first, others) = self.times.split_first()?;
        let share = |(place, scale): &(FieldPlace, u128)| match (place.value_in(id), *scale) {
            (value, 1) => value,
            (value, scale) => value * scale,
        };
        Some(
            others
                .iter()
                .fold(share(first), |sum, other| sum + share(other)),
        )
    }

    /// Returns the bits that have the same value in all ids of the layout.
    pub(super) fn constants(&self) -> Constants {
        self.gapless
            .map_or_else(Constants::default, |gapless| gapless.constants)
    }
}

impl Gapless {
    /// Prepares a layout for fast checks. Returns `None` if the fields leave gaps: numbers below
    /// the greatest id that no combination of field values gives. Also returns `None` if a constant
    /// field, such as a decimal digit, does not fill whole bits, because a mask cannot select it.
    fn of(layout: &Layout) -> Option<Gapless> {
        let (mut greatest, mut constants) = (0_u128, Constants::default());
        for field in layout.fields().iter().rev() {
            if greatest.checked_add(1) != Some(field.stride) {
                return None;
            }
            greatest = field.max.checked_mul(field.stride)?.checked_add(greatest)?;
            if let Some(value) = field.constant {
                if !field.stride.is_power_of_two() || !(field.max + 1).is_power_of_two() {
                    return None;
                }
                constants.mask |= field.max * field.stride;
                constants.bits |= value * field.stride;
            }
        }
        Some(Gapless {
            greatest,
            constants,
        })
    }
}

impl Constants {
    /// `true` if each bit that is set in `mask` has the same value in all ids of the layout.
    pub(super) fn cover(self, mask: u128) -> bool {
        self.mask & mask == mask
    }

    /// `true` if the constant bits of the layout have their right values in `id`.
    #[inline]
    pub(super) fn are_in(self, id: u128) -> bool {
        id & self.mask == self.bits
    }
}

impl FieldPlace {
    /// Returns the position of the layout's field with index `at`.
    pub(super) fn of(layout: &Layout, at: usize) -> FieldPlace {
        let stride = layout.fields()[at].stride;
        let strides: Vec<u128> = layout.fields()[..at]
            .iter()
            .map(|field| field.stride)
            .collect();
        // A stride (the number that one unit of a field adds to an id) can be skipped if a smaller
        // one divides it. For example, `id % 1000 % 10` is equal to `id % 10`.
        let is_needed = |place: usize| {
            strides[place + 1..]
                .iter()
                .all(|below| !strides[place].is_multiple_of(*below))
        };
        let above: Vec<u128> = (0..at)
            .filter(|place| is_needed(*place))
            .map(|place| strides[place])
            .collect();
        match above.as_slice() {
            [] if stride.is_power_of_two() => FieldPlace::Bits {
                shift: stride.trailing_zeros(),
                mask: u128::MAX,
            },
            [above] if above.is_power_of_two() && stride.is_power_of_two() => FieldPlace::Bits {
                shift: stride.trailing_zeros(),
                mask: above / stride - 1,
            },
            _ => FieldPlace::Digits { above, stride },
        }
    }

    /// Returns the value that this field has in the id with the number `id`.
    #[inline]
    pub(super) fn value_in(&self, id: u128) -> u128 {
        match self {
            FieldPlace::Bits { shift, mask } => (id >> shift) & mask,
            FieldPlace::Digits { above, stride } => {
                above.iter().fold(id, |rest, above| rest % above) / stride
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::{Format, PRESETS};

    fn layouts() -> Vec<Layout> {
        let formats = PRESETS
            .iter()
            .map(|preset| Format::built_in(preset.name).expect("a built-in format"));
        formats
            .flat_map(|format| format.variants)
            .map(|variant| variant.layout)
            .collect()
    }

    /// Returns four test values: `id` reduced to the layout's range, a valid id made from it, that
    /// id with one bit changed, and a number that is usually too great.
    fn near(layout: &Layout, id: u128, bit: u32) -> [u128; 4] {
        let id = layout
            .greatest()
            .checked_add(1)
            .map_or(id, |count| id % count);
        let mut values: Vec<_> = layout
            .fields()
            .iter()
            .map(|field| id / field.stride % (field.max + 1))
            .collect();
        for (field, value) in layout.fields().iter().zip(&mut values) {
            *value = field.constant.unwrap_or(*value);
        }
        let sound = layout
            .pack(&values)
            .expect("no value is above its field's greatest");
        [
            id,
            sound,
            sound ^ 1 << bit,
            sound.saturating_add(layout.greatest()),
        ]
    }

    proptest! {
        #[test]
        fn a_number_is_checked_and_its_fields_are_found_as_if_it_were_taken_apart(id: u128, bit in 0_u32..127) {
            for layout in layouts() {
                let packed = PackedLayout::new(&layout);
                for id in near(&layout, id, bit) {
                    let unpacked = layout.unpack(id);
                    prop_assert_eq!(packed.check(id), unpacked.as_ref().map(|_| ()).map_err(|why| *why));
                    let Ok(values) = unpacked else { continue };
                    prop_assert_eq!(packed.ticks_in(id), layout.sum_of(FieldKind::Time, &values));
                    let found = (0..values.len()).map(|at| FieldPlace::of(&layout, at).value_in(id));
                    prop_assert_eq!(found.collect::<Vec<_>>(), values);
                }
            }
        }
    }

    #[test]
    fn most_built_in_layouts_have_no_gaps() {
        let with_gaps: Vec<_> = layouts()
            .into_iter()
            .filter(|layout| Gapless::of(layout).is_none())
            .collect();
        assert_eq!(with_gaps.len(), 1, "payment-wide: {with_gaps:?}");
    }
}
