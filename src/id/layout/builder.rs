//! Puts the fields of a layout at their places in the number, and refuses those that overlap or do not fit.

use super::field::{Field, FieldKind, Width};
use super::layout::Layout;

/// Why fields make no layout. Each message names the field and the bound.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// No field, or more than 16.
    #[error("a layout has 1 to {max} fields, this one has {count}", max = Layout::FIELDS_MAX)]
    FieldCount {
        /// How many there are.
        count: usize,
    },
    /// Two fields of one name that do not carry one number together.
    #[error(
        "two fields are named `{name}`: they need one kind, and scales that keep their shares of the number apart"
    )]
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
    /// A greatest value that the width has no room for.
    #[error("field `{name}`: max = {max} does not fit into {width}")]
    Max {
        /// The field.
        name: String,
        /// The greatest value as written.
        max: u128,
        /// Its width.
        width: Width,
    },
    /// A scale that is none, or that leaves 127 bits.
    #[error(
        "field `{name}`: scale = {scale} must be at least 1 and leave its greatest share below 2^127"
    )]
    Scale {
        /// The field.
        name: String,
        /// The scale as written.
        scale: u128,
    },
    /// A stride that lets two fields overlap.
    #[error(
        "field `{name}`: stride {stride} must exceed {below}, the greatest value of the fields below it"
    )]
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
    #[error(
        "field `{name}`: a constant needs a `value` of at most {max}, and only a constant has one"
    )]
    Constant {
        /// The field.
        name: String,
        /// The greatest value it could have.
        max: u128,
    },
}

/// Collects the fields of a [`Layout`], most significant first.
///
/// ```
/// use idmint::id::{FieldDraft, FieldKind, Layout, Width};
///
/// let layout = Layout::builder()
///     .field("time", FieldKind::Time, Width::Bits(41))
///     .draft(FieldDraft { value: Some(7), ..FieldDraft::new("version", FieldKind::Constant, Width::Bits(4)) })
///     .build()?;
/// assert_eq!(layout.unpack(5 << 4 | 7)?, [5, 7]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    /// The greatest value, where that is less than the width has room for.
    pub max: Option<u128>,
    /// What one unit adds to the number that several fields of one name carry together; by default 1.
    pub scale: Option<u128>,
}

impl FieldDraft {
    /// A field without anything of its own but name, kind and width.
    pub fn new(name: &str, kind: FieldKind, width: Width) -> FieldDraft {
        FieldDraft {
            name: name.to_owned(),
            kind,
            width,
            stride: None,
            value: None,
            max: None,
            scale: None,
        }
    }
}

impl LayoutBuilder {
    /// Adds a field below the ones added before.
    #[must_use]
    pub fn field(self, name: &str, kind: FieldKind, width: Width) -> LayoutBuilder {
        self.draft(FieldDraft::new(name, kind, width))
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
            let field = place(draft, capacity)?;
            if fields
                .iter()
                .any(|other| other.name == field.name && !add_up(other, &field))
            {
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

fn place(draft: FieldDraft, capacity_below: Option<u128>) -> Result<Field, LayoutError> {
    let FieldDraft {
        name,
        kind,
        width,
        stride,
        value,
        max,
        scale,
    } = draft;
    let Some(widest) = width.max() else {
        return Err(LayoutError::Width { name, width });
    };
    let max = max.unwrap_or(widest);
    if max > widest {
        return Err(LayoutError::Max { name, max, width });
    }
    let scale = scale.unwrap_or(1);
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
    if has_own_value != value.is_some() || value.is_some_and(|value| value > max) {
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
        constant: value,
    })
}

/// Whether two fields of one name carry one number together: the greatest value of the lesser is below one unit of the other.
fn add_up(one: &Field, other: &Field) -> bool {
    let (lesser, greater) = if one.scale < other.scale {
        (one, other)
    } else {
        (other, one)
    };
    one.kind == other.kind
        && one.constant.is_none()
        && other.constant.is_none()
        && lesser.max * lesser.scale < greater.scale
}

impl Layout {
    /// A builder without fields.
    pub fn builder() -> LayoutBuilder {
        LayoutBuilder::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::rejection::Rejection;

    fn payment_wide() -> Layout {
        let draft = |name, kind, width, stride| FieldDraft {
            stride,
            ..FieldDraft::new(name, kind, width)
        };
        Layout::builder()
            .draft(draft(
                "time",
                FieldKind::Time,
                Width::Digits {
                    digits: 6,
                    radix: 36,
                },
                Some(46_656),
            ))
            .draft(draft(
                "worker",
                FieldKind::Worker,
                Width::Cardinality(45),
                None,
            ))
            .draft(draft(
                "sequence",
                FieldKind::Sequence,
                Width::Bits(10),
                None,
            ))
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
                stride: Some(15),
                ..FieldDraft::new("time", FieldKind::Time, Width::Bits(8))
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
        let constant = |value| FieldDraft {
            value,
            ..FieldDraft::new("version", FieldKind::Constant, Width::Bits(2))
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
        let time = |bits, scale| FieldDraft {
            scale,
            ..FieldDraft::new("time", FieldKind::Time, Width::Bits(bits))
        };
        let built = |low, high| {
            let between = FieldDraft::new("node", FieldKind::Worker, Width::Bits(4));
            Layout::builder()
                .draft(time(8, low))
                .draft(between)
                .draft(time(4, high))
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
                    .draft(time(8, None))
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
    fn a_field_may_end_before_its_width() {
        let time = |max| FieldDraft {
            max: Some(max),
            ..FieldDraft::new("time", FieldKind::Time, Width::Bits(4))
        };
        let layout = |max| {
            Layout::builder()
                .draft(time(max))
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
            "field `time`: max = 16 does not fit into 4 bits"
        );
    }
}
