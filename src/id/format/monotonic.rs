//! How the ids of a random format follow each other.

use serde::{Deserialize, Serialize};

/// Which ids of a random format are greater than those before them.
///
/// ```
/// use idmint::id::{Format, Monotonic};
///
/// let uuid7 = Format::built_in("uuid7").expect("a built-in format");
/// assert_eq!((uuid7.monotonic, uuid7.monotonic.name()), (Monotonic::Clock, "clock"));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Monotonic {
    /// None: each id is drawn by itself.
    #[default]
    Off,
    /// Those of one answer.
    Batch,
    /// All of one process, whatever its clock does. A part in the tick is drawn for its first answer, and counted on from.
    Process,
    /// All of one process, and of several as far as their clocks agree: the 12 greatest random bits are the time below the
    /// tick. Source: RFC 9562, section 6.2, method 3.
    Clock,
}

impl Monotonic {
    /// How many answers have a part of their own in one tick, where answers follow each other.
    pub const PARTS_OF_TICK: u64 = 1 << 12;

    /// The word as it is written in TOML and in answers.
    pub const fn name(self) -> &'static str {
        match self {
            Monotonic::Off => "off",
            Monotonic::Batch => "batch",
            Monotonic::Process => "process",
            Monotonic::Clock => "clock",
        }
    }

    /// Whether an answer has a part of its own in its tick.
    pub const fn has_parts(self) -> bool {
        matches!(self, Monotonic::Process | Monotonic::Clock)
    }
}
