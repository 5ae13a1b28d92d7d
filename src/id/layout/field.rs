//! One field of a layout: what it means, how many values it has, and where it stands in the number.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::rejection::Rejection;

/// What a field is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldKind {
    /// Ticks since the epoch.
    Time,
    /// What keeps two nodes apart.
    Worker,
    /// A second number taken from the configuration as it is.
    Shard,
    /// Counts the ids of one worker within one tick.
    Sequence,
    /// Drawn anew for every id.
    Random,
    /// The same in every id.
    Constant,
    /// What the id is about: a catalogue number, the hash of a domain.
    Object,
    /// Derived from the rest, so that damage is seen.
    Checksum,
    /// The ledger the id belongs to.
    Ledger,
    /// What sort of thing the id names, told apart by its last bits.
    Qualifier,
}

impl FieldKind {
    /// The kind as it is written in TOML and in answers.
    pub const fn name(self) -> &'static str {
        match self {
            FieldKind::Time => "time",
            FieldKind::Worker => "worker",
            FieldKind::Shard => "shard",
            FieldKind::Sequence => "sequence",
            FieldKind::Random => "random",
            FieldKind::Constant => "constant",
            FieldKind::Object => "object",
            FieldKind::Checksum => "checksum",
            FieldKind::Ledger => "ledger",
            FieldKind::Qualifier => "qualifier",
        }
    }
}

impl fmt::Display for FieldKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How many values a field has, as its definition says it: in bits, in digits, or as a number.
///
/// Bounds: 1 value to 2^127 values.
///
/// ```
/// use idmint::id::Width;
///
/// assert_eq!(Width::Bits(10).max(), Some(1023));
/// assert_eq!(Width::Digits { digits: 2, radix: 36 }.max(), Some(1295));
/// assert_eq!(Width::Cardinality(45).max(), Some(44));
/// assert_eq!(Width::Bits(128).max(), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Width {
    /// 2^bits values; 1 to 127 bits.
    Bits(u32),
    /// radix^digits values.
    Digits {
        /// How many digits.
        digits: u32,
        /// The radix of the digits, 2 to 64.
        radix: u32,
    },
    /// This many values.
    Cardinality(u128),
}

impl Width {
    /// The width of the numbers up to this one.
    pub(in crate::id) fn of_max(max: u128) -> Width {
        match max + 1 {
            cardinality if cardinality.is_power_of_two() => Width::Bits(cardinality.ilog2()),
            cardinality => Width::Cardinality(cardinality),
        }
    }

    /// The greatest value, or `None` outside the bounds.
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

/// A field at its place in the number: `value x stride` is its share of the id.
///
/// ```
/// use idmint::id::{FieldKind, Layout, Width};
///
/// let layout = Layout::builder()
///     .field("time", FieldKind::Time, Width::Bits(41))
///     .field("sequence", FieldKind::Sequence, Width::Bits(12))
///     .build()?;
/// let time = layout.field_of(FieldKind::Time).expect("the first field");
/// assert_eq!((time.max, time.stride), ((1 << 41) - 1, 1 << 12));
/// # Ok::<(), idmint::id::LayoutError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The field's name in this format, such as `system` or `region`.
    pub name: String,
    /// What it is for.
    pub kind: FieldKind,
    /// Its number of values, as defined.
    pub width: Width,
    /// The greatest value it holds.
    pub max: u128,
    /// What one unit of it adds to the id.
    pub stride: u128,
    /// The stride as a shift to the left, where it is a power of two.
    pub(in crate::id) shift: Option<u32>,
    /// What one unit of it adds to the number that the fields of its name carry together; 1 where it is the only one.
    pub scale: u128,
    /// The only value it has, for a constant.
    pub constant: Option<u128>,
}

impl Field {
    /// Whether the field can have this value.
    ///
    /// # Errors
    /// [`Rejection::Overflow`] for a time, [`Rejection::OutOfRange`] for another field.
    pub(in crate::id) fn check(&self, value: u128) -> Result<(), Rejection> {
        let fits = value <= self.max && self.constant.is_none_or(|constant| constant == value);
        match (fits, self.kind) {
            (true, _) => Ok(()),
            (false, FieldKind::Time) => Err(Rejection::Overflow),
            (false, _) => Err(Rejection::OutOfRange),
        }
    }

    /// The value of this field in an id whose fields above are taken off; takes its share off, too.
    #[inline]
    pub(super) fn take_from(&self, rest: &mut u128) -> u128 {
        let value;
        // Nearly every stride is a power of two, and dividing 128 bits takes many times as long.
        (value, *rest) = if let Some(shift) = self.shift {
            (*rest >> shift, *rest & (self.stride - 1))
        } else if let (Ok(short), Ok(stride)) = (u64::try_from(*rest), u64::try_from(self.stride)) {
            (u128::from(short / stride), u128::from(short % stride))
        } else {
            (*rest / self.stride, *rest % self.stride)
        };
        value
    }

    /// What a value adds to the number that the fields of this name carry together.
    #[inline]
    pub(super) fn share(&self, value: u128) -> u128 {
        if self.scale == 1 {
            value
        } else {
            value * self.scale
        }
    }
}
