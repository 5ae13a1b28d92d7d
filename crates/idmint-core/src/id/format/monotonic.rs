//! The guarantees about the order of ids in random formats.

use serde::{Deserialize, Serialize};

use crate::id::named::named;

named! {
    /// The guarantee about the order of ids in a random format.
    ///
    /// ```
    /// use idmint_core::id::{Format, Monotonic};
    ///
    /// let uuid7 = Format::built_in("uuid7").expect("a built-in format");
    /// assert_eq!((uuid7.monotonic, uuid7.monotonic.name()), (Monotonic::Clock, "clock"));
    /// ```
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Monotonic {
        /// No order is guaranteed. Each id is drawn independently.
        #[default]
        Off = "off",
        /// The ids within one response increase.
        Batch = "batch",
        /// All ids from one process increase, even if its clock steps back.
        ///
        /// The first response of a tick draws a random position within the tick. Later responses in
        /// that tick continue from there.
        Process = "process",
        /// All ids from one process increase. Ids from several processes increase as far as the
        /// clocks of the processes agree.
        ///
        /// The 12 most significant random bits hold the fraction of the tick that has passed.
        /// Source: RFC 9562, section 6.2, method 3.
        Clock = "clock",
    }
}

impl Monotonic {
    /// The number of parts into which a tick is divided. Each response within a tick gets its own
    /// part, unless responses overlap.
    pub const PARTS_OF_TICK: u64 = 1 << 12;

    /// Returns `true` if ticks are divided into parts, one for each response.
    pub const fn has_parts(self) -> bool {
        matches!(self, Monotonic::Process | Monotonic::Clock)
    }
}
