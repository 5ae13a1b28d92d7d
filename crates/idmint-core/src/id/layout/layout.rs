//! The fields of an id as one mixed-radix number.

use std::cmp::Reverse;

use super::field::{Field, FieldKind};
use crate::id::rejection::Rejection;

/// The fields of an id as a mixed-radix number, most significant first. Fields may be defined in
/// bits or in digits.
///
/// A layout has 1 to 16 fields in at most 128 bits. The stride of each field exceeds the greatest
/// value of all less significant fields together. A number therefore splits into fields in at most
/// one way.
///
/// ```
/// use idmint_core::id::{FieldKind, Layout, Width};
/// let layout = Layout::builder()
///     .field("time", FieldKind::Time, Width::Bits(41))
///     .field("worker", FieldKind::Worker, Width::Bits(10))
///     .field("sequence", FieldKind::Sequence, Width::Bits(12))
///     .build()?;
/// let value = layout.pack(&[1, 2, 3])?;
/// assert_eq!(value, 1 << 22 | 2 << 12 | 3);
/// assert_eq!(layout.unpack(value)?, [1, 2, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub(super) fields: Vec<Field>,
    pub(super) greatest: u128,
}

/// The values of all fields in one id, most significant field first. Entries after the last field
/// are unused.
type Values = [u128; Layout::FIELDS_MAX];

impl Layout {
    /// The maximum number of fields, which is more than any published layout has.
    pub const FIELDS_MAX: usize = 16;

    /// Returns all fields of the layout, most significant first.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the most significant field of a kind, or `None` if the layout has no field of that
    /// kind.
    pub fn field_of(&self, kind: FieldKind) -> Option<&Field> {
        self.fields.iter().find(|field| field.kind == kind)
    }

    /// Returns the fields of a kind, most significant first.
    pub(crate) fn fields_of(&self, kind: FieldKind) -> impl DoubleEndedIterator<Item = &Field> {
        self.fields.iter().filter(move |field| field.kind == kind)
    }

    /// Returns `true` if a later time always gives a greater id.
    ///
    /// For example, this holds for the fields `time, worker`, but not for `worker, time`. Only
    /// constants may come before or between the time fields, and greater scales must come first.
    pub fn time_leads(&self) -> bool {
        let varying = self.fields.iter().filter(|field| field.constant.is_none());
        let shares: Vec<_> = varying
            .take_while(|field| field.kind == FieldKind::Time)
            .collect();
        !shares.is_empty()
            && shares.len() == self.fields_of(FieldKind::Time).count()
            && shares.is_sorted_by(|above, below| above.scale > below.scale)
    }

    /// Returns the number that all fields of a kind hold together, or `None` if the layout has no
    /// field of that kind. The number is the sum of all values, each multiplied by the scale of its
    /// field.
    ///
    /// # Panics
    /// Panics if `values` has fewer items than the layout has fields.
    pub fn sum_of(&self, kind: FieldKind, values: &[u128]) -> Option<u128> {
        assert!(values.len() >= self.fields.len(), "a value for each field");
        let fields = self.fields.iter().zip(values);
        let mut shares = fields.filter(|(field, _)| field.kind == kind);
        let (first, value) = shares.next()?;
        Some(shares.fold(first.share(*value), |sum, (field, value)| {
            sum + field.share(*value)
        }))
    }

    /// Returns the greatest number that the fields of a kind can hold together, or `None` if the
    /// layout has no field of that kind.
    pub(crate) fn greatest_of(&self, kind: FieldKind) -> Option<u128> {
        let shares = self.fields_of(kind).map(|field| field.max * field.scale);
        shares.reduce(|sum, share| sum + share)
    }

    /// Replaces the time in the field values `values` by `ticks`, and returns the new field values.
    /// If the time fields cannot hold exactly `ticks`, because their scales leave a gap, the result
    /// has the greatest time before `ticks`.
    ///
    /// # Panics
    /// Panics if `ticks` exceeds the greatest time that the layout can hold.
    pub(in crate::id) fn with_ticks(&self, ticks: u128, mut values: Vec<u128>) -> Vec<u128> {
        let most = self.greatest_of(FieldKind::Time);
        assert!(Some(ticks) <= most, "{ticks} ticks are too many");
        self.divide(ticks, &mut values, |field| field.kind == FieldKind::Time);
        values
    }

    /// Replaces the time in `values` by `ticks`, like [`with_ticks`](Self::with_ticks), or by the
    /// next later time if the time fields cannot hold exactly `ticks`.
    pub(in crate::id) fn with_ticks_from(&self, ticks: u128, values: Vec<u128>) -> Vec<u128> {
        let mut values = self.with_ticks(ticks, values);
        if self.sum_of(FieldKind::Time, &values) < Some(ticks) {
            // Add one to the least significant time field, the one with the least scale, and carry
            // into the more significant ones.
            for at in self
                .by_scale(|field| field.kind == FieldKind::Time)
                .into_iter()
                .rev()
            {
                if values[at] < self.fields[at].max {
                    values[at] += 1;
                    break;
                }
                values[at] = 0;
            }
        }
        values
    }

    /// Divides `number` among the fields for which `is_part` is true, and writes their values into
    /// `values`. Returns the remainder, which is 0 unless the fields cannot hold the number.
    pub(in crate::id) fn divide(
        &self,
        number: u128,
        values: &mut [u128],
        is_part: impl Fn(&Field) -> bool,
    ) -> u128 {
        let parts = self.by_scale(is_part).into_iter();
        parts.fold(number, |rest, at| {
            let field = &self.fields[at];
            values[at] = field.max.min(rest / field.scale);
            rest - field.share(values[at])
        })
    }

    /// Returns the indices of the fields for which `is_part` is true, most significant first.
    /// Together, these fields hold one number.
    fn by_scale(&self, is_part: impl Fn(&Field) -> bool) -> Vec<usize> {
        let fields = self.fields.iter().enumerate();
        let parts = fields.filter(|(_, field)| is_part(field));
        let mut parts: Vec<usize> = parts.map(|(at, _)| at).collect();
        parts.sort_by_key(|at| Reverse(self.fields[*at].scale));
        parts
    }

    /// Returns the smallest id of this layout: constants keep their value, and all other fields
    /// are 0.
    pub fn least(&self) -> u128 {
        self.fields
            .iter()
            .map(|field| field.constant.unwrap_or(0) * field.stride)
            .sum()
    }

    /// Returns the greatest number that is an id of this layout.
    pub fn greatest(&self) -> u128 {
        self.greatest
    }

    /// Packs field values into an id. `values` has one item for each field, most significant first.
    ///
    /// # Errors
    /// Returns [`Rejection::OutOfRange`] if a value does not fit its field or differs from the
    /// field's constant. Returns [`Rejection::Overflow`] if the time does not fit its field.
    ///
    /// # Panics
    /// Panics if the number of `values` differs from the number of fields.
    pub fn pack(&self, values: &[u128]) -> Result<u128, Rejection> {
        assert_eq!(values.len(), self.fields.len(), "one value for each field");
        let mut id = 0;
        for (field, value) in self.fields.iter().zip(values) {
            field.check(*value)?;
            id += value * field.stride;
        }
        Ok(id)
    }

    /// Splits an id into the values of its fields, most significant first.
    ///
    /// # Errors
    /// Returns [`Rejection::OutOfRange`] if a value does not fit its field or the id is too large,
    /// and [`Rejection::BadVersion`] if a constant field has another value than its constant.
    pub fn unpack(&self, id: u128) -> Result<Vec<u128>, Rejection> {
        let mut values = [0; Layout::FIELDS_MAX];
        self.unpack_into(id, &mut values)?;
        Ok(values[..self.fields.len()].to_vec())
    }

    /// Splits an id into the array `values` without allocating. Entries after the last field stay
    /// unchanged.
    #[inline]
    pub(in crate::id) fn unpack_into(
        &self,
        id: u128,
        values: &mut Values,
    ) -> Result<(), Rejection> {
        let mut rest = id;
        for (field, value) in self.fields.iter().zip(values) {
            *value = field.take_from(&mut rest);
            if *value > field.max {
                return Err(Rejection::OutOfRange);
            }
            if field.constant.is_some_and(|constant| constant != *value) {
                return Err(Rejection::BadVersion);
            }
        }
        match rest {
            0 => Ok(()),
            _ => Err(Rejection::OutOfRange),
        }
    }
}
