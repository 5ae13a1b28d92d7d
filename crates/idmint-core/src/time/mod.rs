//! Time: instants, ticks, and the clock of the process.
//!
//! An instant is a point in time, stored as a number. [`UnixTime`] is wide enough for the time in
//! any id, and [`UnixNanos`] is the type that the clock returns. Instants can be parsed from text
//! and written as text, in RFC 3339 and in the forms that messages of space agencies use. A
//! [`Tick`] is the unit in which a format counts time. Only [`Clock`] reads the time of the
//! machine.

mod clock;
mod clock_line;
mod duration_text;
mod manual_clock;
#[cfg(all(test, idmint_loom))]
pub(crate) mod models;
mod rfc3339_text;
mod source;
mod tick;
mod unix_nanos;
mod unix_time;
mod utc_text;

pub(crate) use clock::READ_APART_MAX;
pub use clock::{Clock, Observation, WallStep, built_at};
pub use duration_text::{format_duration, format_seconds, parse_duration};
pub use manual_clock::ManualClock;
pub use rfc3339_text::{Rfc3339Text, UnixTimeError};
pub use source::since_boot;
pub use tick::{Tick, TickError};
pub use unix_nanos::UnixNanos;
pub use unix_time::UnixTime;
pub use utc_text::UtcTextError;
