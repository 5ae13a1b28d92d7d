//! The fields of an id as one mixed-radix number.

use super::field::{Field, FieldKind};
use crate::id::rejection::Rejection;

/// The fields of an id, most significant first, as a mixed-radix number: bits and digits are the same thing.
///
/// Shape: 1 to 16 fields in at most 128 bits. Each field's stride exceeds the greatest value of all that stands below,
/// so every value splits into fields in one way at most.
///
/// ```
/// use idmint::id::{FieldKind, Layout, Width};
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

/// The values of the fields of an id.
type Values = [u128; Layout::FIELDS_MAX];

impl Layout {
    /// More fields than any published layout has.
    pub const FIELDS_MAX: usize = 16;

    /// The fields, most significant first.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The first field of a kind.
    pub fn field_of(&self, kind: FieldKind) -> Option<&Field> {
        self.fields.iter().find(|field| field.kind == kind)
    }

    /// Whether a later time is always a greater id: nothing but constants stands above the time, nor between its shares.
    pub fn time_leads(&self) -> bool {
        let varying = self.fields.iter().filter(|field| field.constant.is_none());
        let shares: Vec<_> = varying
            .take_while(|field| field.kind == FieldKind::Time)
            .collect();
        let all = self
            .fields
            .iter()
            .filter(|field| field.kind == FieldKind::Time)
            .count();
        !shares.is_empty()
            && shares.len() == all
            && shares.is_sorted_by(|above, below| above.scale > below.scale)
    }

    /// The number that the fields of a kind carry together, each counted by its scale; `None` without such a field.
    ///
    /// # Panics
    /// When `values` are fewer than the fields.
    pub fn sum_of(&self, kind: FieldKind, values: &[u128]) -> Option<u128> {
        assert!(values.len() >= self.fields.len(), "a value for each field");
        let mut shares = self
            .fields
            .iter()
            .zip(values)
            .filter(|(field, _)| field.kind == kind);
        let (first, value) = shares.next()?;
        Some(shares.fold(first.share(*value), |sum, (field, value)| {
            sum + field.share(*value)
        }))
    }

    /// The greatest number that the fields of a kind carry together; `None` without such a field.
    pub fn greatest_of(&self, kind: FieldKind) -> Option<u128> {
        let mut fields = self
            .fields
            .iter()
            .filter(|field| field.kind == kind)
            .peekable();
        fields.peek()?;
        Some(fields.map(|field| field.max * field.scale).sum())
    }

    /// The values of an id's fields with those of its time set to these ticks.
    ///
    /// # Panics
    /// When there are more ticks than the time can count.
    pub(in crate::id) fn with_ticks(&self, ticks: u128, mut values: Vec<u128>) -> Vec<u128> {
        assert!(
            self.greatest_of(FieldKind::Time)
                .is_some_and(|most| ticks <= most),
            "{ticks} ticks are too many"
        );
        for (field, value) in self
            .fields
            .iter()
            .zip(&mut values)
            .filter(|(field, _)| field.kind == FieldKind::Time)
        {
            *value = ticks / field.scale % (field.max + 1);
        }
        values
    }

    /// The smallest id of this layout: its constants alone.
    pub fn least(&self) -> u128 {
        self.fields
            .iter()
            .map(|field| field.constant.unwrap_or(0) * field.stride)
            .sum()
    }

    /// The greatest id of this layout.
    pub fn greatest(&self) -> u128 {
        self.greatest
    }

    /// The id whose fields, most significant first, have these values.
    ///
    /// # Errors
    /// [`Rejection::OutOfRange`] when a value exceeds its field or a constant differs, [`Rejection::Overflow`] when it
    /// is the time that exceeds it.
    ///
    /// # Panics
    /// When `values` are not as many as the fields.
    pub fn pack(&self, values: &[u128]) -> Result<u128, Rejection> {
        assert_eq!(values.len(), self.fields.len(), "one value for each field");
        let mut id = 0;
        for (field, value) in self.fields.iter().zip(values) {
            field.check(*value)?;
            id += value * field.stride;
        }
        Ok(id)
    }

    /// The values of the fields of an id, most significant first: divides from the top.
    ///
    /// # Errors
    /// [`Rejection::OutOfRange`] when a field has no such value or something remains, [`Rejection::BadVersion`] when a
    /// constant has another value.
    pub fn unpack(&self, id: u128) -> Result<Vec<u128>, Rejection> {
        let mut values = [0; Layout::FIELDS_MAX];
        self.unpack_into(id, &mut values)?;
        Ok(values[..self.fields.len()].to_vec())
    }

    /// The same without an allocation; what stands behind the last field is left alone.
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
        if rest == 0 {
            Ok(())
        } else {
            Err(Rejection::OutOfRange)
        }
    }
}
