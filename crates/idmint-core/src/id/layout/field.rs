//! One field of a layout: its purpose, its number of values, and its position in the id's number.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::rejection::Rejection;
use crate::named;

named! {
    /// The purpose of a field in a layout.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum FieldKind {
        /// The time, in ticks since the epoch.
        Time = "time",
        /// The worker number, which keeps the ids of two nodes apart.
        Worker = "worker",
        /// A number that the service copies from its configuration, in addition to the worker
        /// number, such as the number of a region.
        Shard = "shard",
        /// A counter that distinguishes ids with the same worker number and the same tick.
        Sequence = "sequence",
        /// A random number that is drawn for each id.
        Random = "random",
        /// A value that is the same in every id.
        Constant = "constant",
        /// The subject of the id, such as a catalogue number or the hash of a domain.
        Object = "object",
        /// A checksum of the other fields, which detects corrupted ids.
        Checksum = "checksum",
        /// The number of the ledger that the id belongs to.
        Ledger = "ledger",
        /// The type of thing that the id names, as a code word. In definitions, the field is wider:
        /// its last bits hold the word, and its first bits a sequence.
        Qualifier = "qualifier",
    }
}

impl fmt::Display for FieldKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The number of values that a field can have, written as bits, as digits, or as a number.
///
/// A width has 1 to 2^127 values.
///
/// ```
/// use idmint_core::id::Width;
///
/// assert_eq!(Width::Bits(10).max(), Some(1023));
/// assert_eq!(Width::Digits { digits: 2, radix: 36 }.max(), Some(1295));
/// assert_eq!(Width::Cardinality(45).max(), Some(44));
/// assert_eq!(Width::Bits(128).max(), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Width {
    /// The field has `2^bits` values, where `bits` is 1 to 127.
    Bits(u32),
    /// The field has `radix^digits` values.
    Digits {
        /// The number of digits that the field fills.
        digits: u32,
        /// The radix of the digits, 2 to 64.
        radix: u32,
    },
    /// The field has exactly this number of values.
    Cardinality(u128),
}

impl Width {
    /// Returns the width that has exactly the values 0 to `max`.
    pub(in crate::id) fn of_max(max: u128) -> Width {
        match max + 1 {
            cardinality if cardinality.is_power_of_two() => Width::Bits(cardinality.ilog2()),
            cardinality => Width::Cardinality(cardinality),
        }
    }

    /// Returns the greatest value of a field of this width, or `None` if the width is out of
    /// bounds: 0 bits or digits, a radix outside 2 to 64, no values, or more than 2^127.
    pub fn max(self) -> Option<u128> {
        let cardinality = match self {
            Width::Bits(bits @ 1..=127) => 1_u128 << bits,
            Width::Bits(_) => return None,
            Width::Digits {
                digits: digits @ 1..,
                radix: radix @ 2..=64,
            } => u128::from(radix).checked_pow(digits)?,
            Width::Digits { .. } => return None,
            Width::Cardinality(cardinality) => cardinality,
        };
        cardinality.checked_sub(1).filter(|max| *max < 1 << 127)
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Width::Bits(bits) => write!(f, "{bits} bits"),
            Width::Digits { digits, radix } => write!(f, "{digits} digits of base {radix}"),
            Width::Cardinality(cardinality) => write!(f, "{cardinality} values"),
        }
    }
}

/// A field with its position in the id's number. A field adds `value x stride` to the id.
///
/// ```
/// use idmint_core::id::{FieldKind, Layout, Width};
///
/// let layout = Layout::builder()
///     .field("time", FieldKind::Time, Width::Bits(41))
///     .field("sequence", FieldKind::Sequence, Width::Bits(12))
///     .build()?;
/// let time = layout.field_of(FieldKind::Time).expect("the first field");
/// assert_eq!((time.max, time.stride), ((1 << 41) - 1, 1 << 12));
/// # Ok::<(), idmint_core::id::LayoutError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The field's name in this format, such as `system` or `region`.
    pub name: String,
    /// The purpose of the field.
    pub kind: FieldKind,
    /// The number of values that the field can have, as written in the definition.
    pub width: Width,
    /// The greatest value that the field may have.
    pub max: u128,
    /// The amount that one unit of the field adds to the id.
    pub stride: u128,
    /// The number of bits by which the field's value is shifted left in the id, or `None` if the
    /// stride is not a power of two.
    pub(in crate::id) shift: Option<u32>,
    /// The amount that one unit of this field adds to the number that all fields of the same name
    /// hold: 1 for the low 32 bits of a time, and 2^32 for its high 16 bits. In formats that mint,
    /// only random and constant fields can have a scale other than 1.
    pub scale: u128,
    /// The only value that the field can have, or `None` if the field is not constant.
    pub constant: Option<u128>,
}

impl Field {
    /// Checks that the field can have this value.
    ///
    /// # Errors
    /// Returns [`Rejection::Overflow`] if the value does not fit into a time field, or
    /// [`Rejection::OutOfRange`] if it does not fit into another field or differs from its
    /// constant.
    pub(in crate::id) fn check(&self, value: u128) -> Result<(), Rejection> {
        let fits = value <= self.max && self.constant.is_none_or(|constant| constant == value);
        match (fits, self.kind) {
            (true, _) => Ok(()),
            (false, FieldKind::Time) => Err(Rejection::Overflow),
            (false, _) => Err(Rejection::OutOfRange),
        }
    }

    /// Returns the field's value in the number `rest`, and subtracts the field from `rest`. All
    /// more significant fields must already be subtracted.
    #[inline]
    pub(super) fn take_from(&self, rest: &mut u128) -> u128 {
        let value;
        // Nearly every stride is a power of two, and a shift is many times faster than a 128-bit
        // division.
        (value, *rest) = if let Some(shift) = self.shift {
            (*rest >> shift, *rest & (self.stride - 1))
        } else if let (Ok(short), Ok(stride)) = (u64::try_from(*rest), u64::try_from(self.stride)) {
            (u128::from(short / stride), u128::from(short % stride))
        } else {
            (*rest / self.stride, *rest % self.stride)
        };
        value
    }

    /// Returns `value` multiplied by the scale of the field. If several fields of one name hold a
    /// number together, the number is the sum of these products.
    #[inline]
    pub(super) fn share(&self, value: u128) -> u128 {
        if self.scale == 1 {
            value
        } else {
            value * self.scale
        }
    }
}
