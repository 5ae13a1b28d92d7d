//! The fields of an id as one mixed-radix number.

use super::field::{Field, FieldKind, Width};
use super::rejection::Rejection;

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
    fields: Vec<Field>,
    greatest: u128,
}

/// Why fields make no layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// No field, or more than 16.
    #[error("a layout has 1 to {max} fields, this one has {count}", max = Layout::FIELDS_MAX)]
    FieldCount {
        /// How many there are.
        count: usize,
    },
    /// Two fields of one name.
    #[error("two fields are named `{name}`")]
    NameTwice {
        /// The name.
        name: String,
    },
    /// A width that is no width: no value at all, or more than 127 bits.
    #[error("field `{name}`: {width} is not a width, from 1 value to 127 bits can be had")]
    Width {
        /// The field.
        name: String,
        /// The width as written.
        width: Width,
    },
    /// A stride that lets two fields overlap.
    #[error("field `{name}`: stride {stride} must exceed {below}, the greatest value of the fields below it")]
    Stride {
        /// The field.
        name: String,
        /// The stride as written.
        stride: u128,
        /// The greatest value of what stands below.
        below: u128,
    },
    /// The greatest id does not fit.
    #[error("field `{name}`: with it the layout needs more than 128 bits")]
    TooWide {
        /// The field that leaves 128 bits.
        name: String,
    },
    /// A constant without a value, a value in another kind of field, or one above the field's greatest.
    #[error("field `{name}`: a constant needs a `value` of at most {max}, and only a constant has one")]
    Constant {
        /// The field.
        name: String,
        /// The greatest value it could have.
        max: u128,
    },
}

/// Collects the fields of a [`Layout`], most significant first.
#[derive(Debug, Clone, Default)]
pub struct LayoutBuilder {
    drafts: Vec<FieldDraft>,
}

/// A field before its place in the number is known.
#[derive(Debug, Clone)]
pub struct FieldDraft {
    /// The field's name.
    pub name: String,
    /// What it is for.
    pub kind: FieldKind,
    /// Its number of values.
    pub width: Width,
    /// What one unit adds to the id; by default one more than the greatest value below.
    pub stride: Option<u128>,
    /// The value of a constant.
    pub value: Option<u128>,
}

impl LayoutBuilder {
    /// Adds a field below the ones added before.
    #[must_use]
    pub fn field(self, name: &str, kind: FieldKind, width: Width) -> LayoutBuilder {
        self.draft(FieldDraft { name: name.to_owned(), kind, width, stride: None, value: None })
    }

    /// Adds a field with a stride or a value of its own.
    #[must_use]
    pub fn draft(mut self, draft: FieldDraft) -> LayoutBuilder {
        self.drafts.push(draft);
        self
    }

    /// Gives every field its place, from the least significant up.
    ///
    /// # Errors
    /// [`LayoutError`] names the field that has no place.
    pub fn build(self) -> Result<Layout, LayoutError> {
        let count = self.drafts.len();
        if !(1..=Layout::FIELDS_MAX).contains(&count) {
            return Err(LayoutError::FieldCount { count });
        }
        let mut fields: Vec<Field> = Vec::with_capacity(count);
        // The greatest value of the fields placed so far, constants counted at their full width: a constant that
        // decodes to another value must not be mistaken for the field above.
        let mut capacity: Option<u128> = None;
        let mut greatest = 0_u128;
        for draft in self.drafts.into_iter().rev() {
            if fields.iter().any(|field| field.name == draft.name) {
                return Err(LayoutError::NameTwice { name: draft.name });
            }
            let field = place(draft, capacity)?;
            let too_wide = || LayoutError::TooWide { name: field.name.clone() };
            let share = field.max.checked_mul(field.stride).ok_or_else(too_wide)?;
            capacity = Some(share.checked_add(capacity.unwrap_or(0)).ok_or_else(too_wide)?);
            greatest += field.constant.unwrap_or(field.max) * field.stride;
            fields.push(field);
        }
        fields.reverse();
        Ok(Layout { fields, greatest })
    }
}

fn place(draft: FieldDraft, capacity_below: Option<u128>) -> Result<Field, LayoutError> {
    let FieldDraft { name, kind, width, stride, value } = draft;
    let Some(max) = width.max() else { return Err(LayoutError::Width { name, width }) };
    let least = match capacity_below {
        None => Some(1),
        Some(below) => below.checked_add(1),
    };
    let Some(least) = least else { return Err(LayoutError::TooWide { name }) };
    let stride = stride.unwrap_or(least);
    if stride < least {
        return Err(LayoutError::Stride { name, stride, below: least - 1 });
    }
    let has_own_value = matches!(kind, FieldKind::Constant | FieldKind::Qualifier);
    if has_own_value != value.is_some() || value.is_some_and(|value| value > max) {
        return Err(LayoutError::Constant { name, max });
    }
    Ok(Field { name, kind, width, max, stride, constant: value })
}

impl Layout {
    /// More fields than any published layout has.
    pub const FIELDS_MAX: usize = 16;

    /// Starts with no field.
    pub fn builder() -> LayoutBuilder {
        LayoutBuilder::default()
    }

    /// The fields, most significant first.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The first field of a kind.
    pub fn field_of(&self, kind: FieldKind) -> Option<&Field> {
        self.fields.iter().find(|field| field.kind == kind)
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
        let mut rest = id;
        let mut values = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            let value = field.take_from(&mut rest);
            if value > field.max {
                return Err(Rejection::OutOfRange);
            }
            if field.constant.is_some_and(|constant| constant != value) {
                return Err(Rejection::BadVersion);
            }
            values.push(value);
        }
        if rest == 0 { Ok(values) } else { Err(Rejection::OutOfRange) }
    }
}

impl Field {
    /// # Errors
    /// As [`Layout::pack`].
    pub(super) fn check(&self, value: u128) -> Result<(), Rejection> {
        let fits = value <= self.max && self.constant.is_none_or(|constant| constant == value);
        match (fits, self.kind) {
            (true, _) => Ok(()),
            (false, FieldKind::Time) => Err(Rejection::Overflow),
            (false, _) => Err(Rejection::OutOfRange),
        }
    }

    fn take_from(&self, rest: &mut u128) -> u128 {
        let value = if self.stride.is_power_of_two() { *rest >> self.stride.ilog2() } else { *rest / self.stride };
        *rest -= value * self.stride;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payment_wide() -> Layout {
        let draft =
            |name: &str, kind, width, stride| FieldDraft { name: name.to_owned(), kind, width, stride, value: None };
        Layout::builder()
            .draft(draft("time", FieldKind::Time, Width::Digits { digits: 6, radix: 36 }, Some(46_656)))
            .draft(draft("worker", FieldKind::Worker, Width::Cardinality(45), None))
            .draft(draft("sequence", FieldKind::Sequence, Width::Bits(10), None))
            .build()
            .expect("fits")
    }

    #[test]
    fn a_gap_below_a_wide_stride_is_out_of_range() {
        let layout = payment_wide();
        assert_eq!(layout.unpack(7 * 46_656 + 46_079), Ok(vec![7, 44, 1023]));
        for gap in 46_080..=46_655 {
            assert_eq!(layout.unpack(7 * 46_656 + gap), Err(Rejection::OutOfRange));
        }
        assert_eq!(layout.greatest(), (36_u128.pow(6) - 1) * 46_656 + 46_079);
    }

    #[test]
    fn a_stride_that_lets_fields_overlap_is_refused() {
        let error = Layout::builder()
            .draft(FieldDraft {
                name: "time".to_owned(),
                kind: FieldKind::Time,
                width: Width::Bits(8),
                stride: Some(15),
                value: None,
            })
            .field("sequence", FieldKind::Sequence, Width::Bits(4))
            .build()
            .expect_err("16 values below a stride of 15");
        assert_eq!(
            error.to_string(),
            "field `time`: stride 15 must exceed 15, the greatest value of the fields below it"
        );
    }

    #[test]
    fn more_than_128_bits_are_refused_and_128_are_not() {
        let layout = |time| {
            Layout::builder()
                .field("time", FieldKind::Time, Width::Bits(time))
                .field("random", FieldKind::Random, Width::Bits(64))
                .build()
        };
        assert_eq!(layout(64).expect("128 bits").greatest(), u128::MAX);
        assert_eq!(layout(65).expect_err("129 bits"), LayoutError::TooWide { name: "time".to_owned() });
    }

    #[test]
    fn a_field_without_values_is_refused() {
        for width in [Width::Bits(0), Width::Bits(128), Width::Cardinality(0), Width::Digits { digits: 0, radix: 36 }] {
            let built = Layout::builder().field("time", FieldKind::Time, width).build();
            assert_eq!(built, Err(LayoutError::Width { name: "time".to_owned(), width }));
        }
    }

    #[test]
    fn another_constant_is_another_version() {
        let constant = |value| FieldDraft {
            name: "version".to_owned(),
            kind: FieldKind::Constant,
            width: Width::Bits(2),
            stride: None,
            value,
        };
        let layout = Layout::builder()
            .field("time", FieldKind::Time, Width::Bits(8))
            .draft(constant(Some(1)))
            .build()
            .expect("fits");
        assert_eq!(layout.unpack(7 << 2 | 1), Ok(vec![7, 1]));
        assert_eq!(layout.unpack(7 << 2 | 2), Err(Rejection::BadVersion));
        assert_eq!(layout.pack(&[7, 2]), Err(Rejection::OutOfRange));
        let without = Layout::builder().draft(constant(None)).build();
        assert_eq!(without, Err(LayoutError::Constant { name: "version".to_owned(), max: 3 }));
    }
}
