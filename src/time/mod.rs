//! When: instants, ticks, and the one clock of the program.

mod clock;
mod duration_text;
mod manual_clock;
mod rfc3339_text;
mod source;
mod tick;
mod unix_time;
mod utc_text;

pub use clock::{Clock, Observation, WallStep};
pub use duration_text::{format_duration, parse_duration};
pub use manual_clock::ManualClock;
pub use rfc3339_text::Rfc3339Text;
pub use tick::{Tick, TickError};
pub use unix_time::{UnixNanos, UnixTime, UnixTimeError};
pub use utc_text::UtcTextError;
