//! Settings with a unit: durations, and sizes in memory, between bounds.

use std::fmt;
use std::time::Duration;

use serde::Deserializer;

use super::value;
use crate::time::{format_duration, parse_duration};

/// Reads a duration from `MIN_MS` to `MAX_MS` milliseconds, both included.
pub(super) fn between<'de, D, const MIN_MS: u64, const MAX_MS: u64>(deserializer: D) -> Result<Duration, D::Error>
where
    D: Deserializer<'de>,
{
    let bounds = Bounds { min: Duration::from_millis(MIN_MS), max: Duration::from_millis(MAX_MS) };
    value::read_text(deserializer, &bounds, |text| {
        parse_duration(text).filter(|duration| (bounds.min..=bounds.max).contains(duration))
    })
}

/// [`between`] for a setting that may be left out.
pub(super) fn some_between<'de, D, const MIN_MS: u64, const MAX_MS: u64>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error>
where
    D: Deserializer<'de>,
{
    between::<D, MIN_MS, MAX_MS>(deserializer).map(Some)
}

/// Reads a size from `MIN_MIB` to `MAX_MIB` mebibytes, both included.
pub(super) fn mebibytes<'de, D, const MIN_MIB: usize, const MAX_MIB: usize>(deserializer: D) -> Result<usize, D::Error>
where
    D: Deserializer<'de>,
{
    let expected = format_args!("a size from \"{MIN_MIB}MiB\" to \"{MAX_MIB}MiB\", a whole number and MiB");
    value::read_text(deserializer, expected, |text| {
        let number = text.strip_suffix("MiB")?;
        let is_plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.parse().ok().filter(|number| is_plain && (MIN_MIB..=MAX_MIB).contains(number))?;
        number.checked_mul(1024 * 1024)
    })
}

struct Bounds {
    min: Duration,
    max: Duration,
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (min, max) = (format_duration(self.min), format_duration(self.max));
        write!(f, "a duration from \"{min}\" to \"{max}\", a whole number and one of us, ms, s, m, h, d")
    }
}
