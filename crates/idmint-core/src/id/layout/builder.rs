//! Assigns a position in the id's number to each field of a layout, and refuses fields that overlap
//! or do not fit.

use super::field::{Field, FieldKind, Width};
use super::layout::Layout;

/// The reason why fields do not form a layout. The message names the rule that is broken. It also
/// names the field, except for [`LayoutError::FieldCount`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The layout has no fields, or more than 16.
    #[error("a format must have 1 to {max} fields, got {count}", max = Layout::FIELDS_MAX)]
    FieldCount {
        /// The number of fields in the layout.
        count: usize,
    },
    /// Two fields have the same name, but cannot hold parts of one number. They differ in kind, are
    /// constants, or their scales overlap.
    #[error(
        "two fields are named `{name}`: give them the same kind and scales that do not overlap, or rename one"
    )]
    NameTwice {
        /// The name that both fields have.
        name: String,
    },
    /// The width of a field is out of bounds. For example, it has no values, or more than 2^127.
    #[error("field `{name}`: width {width} must be from 1 value to 127 bits")]
    Width {
        /// The name of the field.
        name: String,
        /// The width as written in the definition.
        width: Width,
    },
    /// The greatest value of a field, `max`, does not fit into the field's width.
    #[error("field `{name}`: max = {max} does not fit into {width}; lower max, or widen the field")]
    Max {
        /// The name of the field.
        name: String,
        /// The greatest value as written in the definition.
        max: u128,
        /// The width of the field.
        width: Width,
    },
    /// The scale of a field, by which its value is multiplied, is 0, or so large that the field's
    /// part of the number would exceed 127 bits.
    #[error("field `{name}`: scale = {scale} must be at least 1 and keep the field below 2^127")]
    Scale {
        /// The name of the field.
        name: String,
        /// The scale as written in the definition.
        scale: u128,
    },
    /// The stride of a field is too small, so the field would overlap the less significant fields.
    #[error(
        "field `{name}`: stride {stride} must exceed {below}, the greatest value of the fields below it"
    )]
    Stride {
        /// The name of the field.
        name: String,
        /// The stride as written in the definition.
        stride: u128,
        /// The greatest value of all less significant fields together.
        below: u128,
    },
    /// The greatest id of the layout exceeds 128 bits.
    #[error("field `{name}` makes ids longer than 128 bits; give the fields less width")]
    TooWide {
        /// The field with which the layout exceeds 128 bits.
        name: String,
    },
    /// A field of kind `constant` or `qualifier` has no `value`, or a `value` above the greatest
    /// value of the field. A field of another kind has a `value`, although it must not have one.
    #[error(
        "field `{name}`: a field of kind constant needs a `value` of at most {max}; other kinds have no `value`"
    )]
    Constant {
        /// The name of the field.
        name: String,
        /// The greatest value that the field can have.
        max: u128,
    },
}

/// Builds a [`Layout`] from fields, which are added from the most to the least significant.
///
/// The methods `stride`, `constant`, `max` and `scale` apply to the field that was added last.
///
/// ```
/// use idmint_core::id::{FieldKind, Layout, Width};
///
/// let layout = Layout::builder()
///     .field("time", FieldKind::Time, Width::Bits(41))
///     .field("version", FieldKind::Constant, Width::Bits(4))
///     .constant(7)
///     .build()?;
/// assert_eq!(layout.unpack(5 << 4 | 7)?, [5, 7]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct LayoutBuilder {
    fields: Vec<Unplaced>,
}

/// A field whose position in the id's number is not known yet.
#[derive(Debug, Clone)]
struct Unplaced {
    /// The field. Until [`place`] sets its position, its own stride is 0 and its shift is `None`.
    field: Field,
    /// The stride from the definition, or `None` for the default.
    stride: Option<u128>,
}

impl LayoutBuilder {
    /// Adds a field to the layout. The field is less significant than all fields that were added
    /// before.
    #[must_use]
    pub fn field(mut self, name: &str, kind: FieldKind, width: Width) -> LayoutBuilder {
        let field = Field {
            name: name.to_owned(),
            kind,
            width,
            max: width.max().unwrap_or(0),
            stride: 0,
            shift: None,
            scale: 1,
            constant: None,
        };
        self.fields.push(Unplaced {
            field,
            stride: None,
        });
        self
    }

    /// Sets the stride of the last field, which is the amount that one unit of the field adds to
    /// the id.
    ///
    /// The default is one more than the greatest value of all less significant fields together.
    ///
    /// # Panics
    /// Panics if no field was added.
    #[must_use]
    pub fn stride(mut self, stride: impl Into<Option<u128>>) -> LayoutBuilder {
        self.last().stride = stride.into();
        self
    }

    /// Sets the only value that the last field can have. The field must be a constant, or a
    /// qualifier.
    ///
    /// # Panics
    /// Panics if no field was added.
    #[must_use]
    pub fn constant(mut self, value: impl Into<Option<u128>>) -> LayoutBuilder {
        self.last().field.constant = value.into();
        self
    }

    /// Sets the greatest value of the field that was added last. The default is the greatest value
    /// that fits the width of the field.
    ///
    /// # Panics
    /// Panics if no field was added.
    #[must_use]
    pub fn max(mut self, max: impl Into<Option<u128>>) -> LayoutBuilder {
        if let Some(max) = max.into() {
            self.last().field.max = max;
        }
        self
    }

    /// Sets the scale of the last field. The default is 1. Fields of the same name together hold
    /// one number, and one unit of the field adds its scale to that number.
    ///
    /// # Panics
    /// Panics if no field was added.
    #[must_use]
    pub fn scale(mut self, scale: impl Into<Option<u128>>) -> LayoutBuilder {
        if let Some(scale) = scale.into() {
            self.last().field.scale = scale;
        }
        self
    }

    fn last(&mut self) -> &mut Unplaced {
        self.fields
            .last_mut()
            .expect("an option is set after its field was added")
    }

    /// Builds the layout. Computes the stride of every field, from the least significant field up.
    ///
    /// # Errors
    /// Returns a [`LayoutError`] that names the first field that does not fit.
    pub fn build(self) -> Result<Layout, LayoutError> {
        let count = self.fields.len();
        if !(1..=Layout::FIELDS_MAX).contains(&count) {
            return Err(LayoutError::FieldCount { count });
        }
        let mut fields: Vec<Field> = Vec::with_capacity(count);
        // The greatest value of the fields placed so far, counting each constant as the greatest
        // value of its width. The bits of a constant then belong to no other field, so an id with a
        // wrong constant is refused and not read as another value of the next field.
        let mut capacity: Option<u128> = None;
        let mut greatest = 0_u128;
        for unplaced in self.fields.into_iter().rev() {
            let field = place(unplaced, capacity)?;
            let parts = fields.iter().filter(|other| other.name == field.name);
            if !add_up(parts.chain([&field])) {
                return Err(LayoutError::NameTwice { name: field.name });
            }
            let too_wide = || LayoutError::TooWide {
                name: field.name.clone(),
            };
            let share = field.max.checked_mul(field.stride).ok_or_else(too_wide)?;
            capacity = Some(
                share
                    .checked_add(capacity.unwrap_or(0))
                    .ok_or_else(too_wide)?,
            );
            greatest += field.constant.unwrap_or(field.max) * field.stride;
            fields.push(field);
        }
        fields.reverse();
        Ok(Layout { fields, greatest })
    }
}

/// Checks a field and computes its stride, the amount that one unit of the field adds to an id.
/// `capacity_below` is the greatest number that all less significant fields can hold together.
fn place(unplaced: Unplaced, capacity_below: Option<u128>) -> Result<Field, LayoutError> {
    let Unplaced { field, stride } = unplaced;
    let Field {
        name,
        kind,
        width,
        max,
        scale,
        constant,
        ..
    } = field;
    let Some(widest) = width.max() else {
        return Err(LayoutError::Width { name, width });
    };
    if max > widest {
        return Err(LayoutError::Max { name, max, width });
    }
    if scale == 0 || max.checked_mul(scale).is_none_or(|share| share >= 1 << 127) {
        return Err(LayoutError::Scale { name, scale });
    }
    let least = match capacity_below {
        None => Some(1),
        Some(below) => below.checked_add(1),
    };
    let Some(least) = least else {
        return Err(LayoutError::TooWide { name });
    };
    let stride = stride.unwrap_or(least);
    if stride < least {
        return Err(LayoutError::Stride {
            name,
            stride,
            below: least - 1,
        });
    }
    let has_own_value = matches!(kind, FieldKind::Constant | FieldKind::Qualifier);
    if has_own_value != constant.is_some() || constant.is_some_and(|value| value > max) {
        return Err(LayoutError::Constant { name, max });
    }
    let shift = stride.is_power_of_two().then_some(stride.trailing_zeros());
    Ok(Field {
        name,
        kind,
        width,
        max,
        stride,
        shift,
        scale,
        constant,
    })
}

/// Returns `true` if these fields of one name can hold parts of one number without overlapping. For
/// example, fields of 4 bits with the scales 1 and 16 can, but with the scales 1 and 8 they
/// overlap. Several fields must also have the same kind and no constants.
fn add_up<'a>(parts: impl Iterator<Item = &'a Field>) -> bool {
    let mut parts: Vec<&Field> = parts.collect();
    parts.sort_by_key(|part| part.scale);
    let [least, others @ ..] = &parts[..] else {
        return true;
    };
    let mut below = least.max * least.scale;
    others.is_empty()
        || least.constant.is_none()
            && others.iter().all(|part| {
                let is_above =
                    part.kind == least.kind && part.constant.is_none() && part.scale > below;
                if is_above {
                    below += part.max * part.scale;
                }
                is_above
            })
}

impl Layout {
    /// Returns a builder to which no field has been added yet.
    pub fn builder() -> LayoutBuilder {
        LayoutBuilder::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::rejection::Rejection;

    fn payment_wide() -> Layout {
        let six_digits = Width::Digits {
            digits: 6,
            radix: 36,
        };
        Layout::builder()
            .field("time", FieldKind::Time, six_digits)
            .stride(46_656)
            .field("worker", FieldKind::Worker, Width::Cardinality(45))
            .field("sequence", FieldKind::Sequence, Width::Bits(10))
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
            .field("time", FieldKind::Time, Width::Bits(8))
            .stride(15)
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
        assert_eq!(
            layout(65).expect_err("129 bits"),
            LayoutError::TooWide {
                name: "time".to_owned()
            }
        );
    }

    #[test]
    fn a_field_without_values_is_refused() {
        for width in [
            Width::Bits(0),
            Width::Bits(128),
            Width::Cardinality(0),
            Width::Digits {
                digits: 0,
                radix: 36,
            },
        ] {
            let built = Layout::builder()
                .field("time", FieldKind::Time, width)
                .build();
            assert_eq!(
                built,
                Err(LayoutError::Width {
                    name: "time".to_owned(),
                    width
                })
            );
        }
    }

    #[test]
    fn another_constant_is_another_version() {
        let version =
            |builder: LayoutBuilder| builder.field("version", FieldKind::Constant, Width::Bits(2));
        let layout = version(Layout::builder().field("time", FieldKind::Time, Width::Bits(8)))
            .constant(1)
            .build()
            .expect("fits");
        assert_eq!(layout.unpack(7 << 2 | 1), Ok(vec![7, 1]));
        assert_eq!(layout.unpack(7 << 2 | 2), Err(Rejection::BadVersion));
        assert_eq!(layout.pack(&[7, 2]), Err(Rejection::OutOfRange));
        let without = version(Layout::builder()).build();
        assert_eq!(
            without,
            Err(LayoutError::Constant {
                name: "version".to_owned(),
                max: 3
            })
        );
    }

    #[test]
    fn fields_of_one_name_carry_one_number_by_their_scales() {
        let built = |low: Option<u128>, high: Option<u128>| {
            Layout::builder()
                .field("time", FieldKind::Time, Width::Bits(8))
                .scale(low)
                .field("node", FieldKind::Worker, Width::Bits(4))
                .field("time", FieldKind::Time, Width::Bits(4))
                .scale(high)
                .build()
        };
        let layout = built(Some(1), Some(256)).expect("the shares do not overlap");
        assert_eq!(layout.unpack(0xabcd), Ok(vec![0xab, 0xc, 0xd]));
        assert_eq!(
            layout.sum_of(FieldKind::Time, &[0xab, 0xc, 0xd]),
            Some(0xdab)
        );
        assert_eq!(layout.greatest_of(FieldKind::Time), Some(0xfff));
        assert_eq!(layout.sum_of(FieldKind::Random, &[0xab, 0xc, 0xd]), None);
        assert!(
            !layout.time_leads()
                && Layout::builder()
                    .field("time", FieldKind::Time, Width::Bits(8))
                    .build()
                    .expect("fits")
                    .time_leads()
        );
        for (low, high) in [(None, None), (Some(1), Some(255)), (Some(15), Some(1))] {
            assert_eq!(
                built(low, high),
                Err(LayoutError::NameTwice {
                    name: "time".to_owned()
                }),
                "{low:?} {high:?}"
            );
        }
        assert!(
            built(Some(16), None).is_ok(),
            "the low share may stand above"
        );
        assert_eq!(
            built(Some(0), None),
            Err(LayoutError::Scale {
                name: "time".to_owned(),
                scale: 0
            })
        );
    }

    #[test]
    fn three_fields_of_one_name_do_not_overlap_together() {
        let built = |scales: [u128; 3]| {
            let bit = |builder: LayoutBuilder, scale| {
                let builder = builder.field("n", FieldKind::Random, Width::Bits(1));
                builder.scale(scale)
            };
            scales.into_iter().fold(Layout::builder(), bit).build()
        };
        assert!(built([4, 2, 1]).is_ok() && built([2, 9, 5]).is_ok());
        let overlap = LayoutError::NameTwice {
            name: "n".to_owned(),
        };
        for scales in [[3, 2, 1], [1, 3, 2], [2, 1, 3]] {
            assert_eq!(
                built(scales),
                Err(overlap.clone()),
                "3 is 2 + 1: {scales:?}"
            );
        }
    }

    #[test]
    fn a_number_is_divided_among_fields_with_a_gap_between_them() {
        let layout = Layout::builder()
            .field("time", FieldKind::Time, Width::Cardinality(100))
            .scale(10)
            .field("time", FieldKind::Time, Width::Cardinality(6))
            .build()
            .expect("the fields do not overlap");
        for (ticks, at_most, at_least) in [
            (13, [1, 3], [1, 3]),
            (15, [1, 5], [1, 5]),
            (18, [1, 5], [2, 0]),
            (995, [99, 5], [99, 5]),
        ] {
            assert_eq!(layout.with_ticks(ticks, vec![0; 2]), at_most, "{ticks}");
            assert_eq!(
                layout.with_ticks_from(ticks, vec![0; 2]),
                at_least,
                "{ticks}"
            );
        }
    }

    #[test]
    fn a_field_may_end_before_its_width() {
        let layout = |max: u128| {
            Layout::builder()
                .field("time", FieldKind::Time, Width::Bits(4))
                .max(max)
                .field("rest", FieldKind::Random, Width::Bits(4))
                .build()
        };
        let seven = layout(7).expect("fits");
        assert_eq!(
            (seven.greatest(), seven.unpack(0x7f)),
            (0x7f, Ok(vec![7, 15]))
        );
        assert_eq!(seven.unpack(0x80), Err(Rejection::OutOfRange));
        assert_eq!(
            layout(16).expect_err("four bits end at 15").to_string(),
            "field `time`: max = 16 does not fit into 4 bits; lower max, or widen the field"
        );
    }
}
