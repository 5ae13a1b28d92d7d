//! When: instants, ticks, and the one clock of the program.
//!
//! An instant is a number: [`UnixTime`] is wide enough for any id, [`UnixNanos`] is what the clock reads. Texts are read and
//! written beside them, as RFC 3339 and as the messages of agencies have them. A [`Tick`] is the unit in which a format
//! counts time. [`Clock`] is the only way to the time of the machine.

mod clock;
mod clock_line;
mod duration_text;
mod manual_clock;
#[cfg(all(test, idmint_loom))]
pub(crate) mod models;
mod rfc3339_text;
mod source;
mod sync;
mod tick;
mod unix_nanos;
mod unix_time;
mod utc_text;

pub use clock::{Clock, Observation, WallStep};
pub(crate) use clock::{READ_APART_MAX, built_at};
pub use duration_text::{format_duration, parse_duration};
pub use manual_clock::ManualClock;
pub use rfc3339_text::{Rfc3339Text, UnixTimeError};
pub use source::since_boot;
pub use tick::{Tick, TickError};
pub use unix_nanos::UnixNanos;
pub use unix_time::UnixTime;
pub use utc_text::UtcTextError;
