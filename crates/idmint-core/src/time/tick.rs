//! The unit in which a format counts time.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::unix_time::UnixTime;

/// The exact length of one tick of a format: `nanos / parts` nanoseconds.
///
/// As text, a tick is a duration or a fraction of a duration: `1s`, `10ms`, `100ns`, `1s/65536`.
///
/// `nanos` is at most 3 600 s, `parts` is 1 to 2^20, and a tick is not shorter than a nanosecond.
///
/// ```
/// use idmint_core::time::{Tick, UnixTime};
/// let tick: Tick = "1s/65536".parse()?;
/// let at = UnixTime::from_nanos(15_259);
/// assert_eq!(tick.count(UnixTime::EPOCH, at), 1);
/// # Ok::<(), idmint_core::time::TickError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tick {
    nanos: u64,
    parts: u64,
}

/// The error for a text that is not a valid tick.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a tick; write a whole number of ns, us, ms or s up to 3600s, or a fraction such as 1s/65536, but \
     at least 1ns"
)]
pub struct TickError {
    text: String,
}

impl Tick {
    const NANOS_MAX: u64 = 3_600_000_000_000;
    const PARTS_MAX: u64 = 1 << 20;

    /// Returns the numerator of the tick's length, in nanoseconds. The length is `nanos / parts`.
    pub const fn nanos(self) -> u64 {
        self.nanos
    }

    /// Returns the denominator of the tick's length, which is `nanos / parts` nanoseconds.
    pub const fn parts(self) -> u64 {
        self.parts
    }

    /// Returns the length of a tick, rounded down to whole nanoseconds.
    pub const fn duration(self) -> Duration {
        Duration::from_nanos(self.nanos / self.parts)
    }

    /// Returns the number of whole ticks from `epoch` to `at`, rounded down. The result is negative
    /// if `at` is before `epoch`.
    ///
    /// The result is exact for every instant that an id of at most 128 bits can contain, even if
    /// the denominator of the tick's length (`parts`) has its maximum, 2^20.
    pub fn count(self, epoch: UnixTime, at: UnixTime) -> i128 {
        let scaled = (at.nanos() - epoch.nanos()) * i128::from(self.parts);
        // Use a 64-bit division if possible, because it is much faster.
        match (i64::try_from(scaled), i64::try_from(self.nanos)) {
            (Ok(scaled), Ok(nanos)) => scaled.div_euclid(nanos).into(),
            _ => scaled.div_euclid(self.nanos.into()),
        }
    }

    /// Divides the tick that contains `at` into `parts` equal parts, and returns the index (from 0)
    /// of the part that contains `at`.
    ///
    /// ```
    /// use idmint_core::time::{Tick, UnixTime};
    /// let tick: Tick = "1ms".parse()?;
    /// assert_eq!(tick.part_at(UnixTime::EPOCH, UnixTime::from_nanos(7_500_000), 4096), 2048);
    /// # Ok::<(), idmint_core::time::TickError>(())
    /// ```
    pub fn part_at(self, epoch: UnixTime, at: UnixTime, parts: u64) -> u64 {
        let into_tick =
            ((at.nanos() - epoch.nanos()) * i128::from(self.parts)).rem_euclid(self.nanos.into());
        let part = into_tick * i128::from(parts) / i128::from(self.nanos);
        u64::try_from(part).expect("a remainder is less than its divisor")
    }

    /// Returns the first whole nanosecond of the tick with the number `count`, counted from
    /// `epoch`. Returns `None` if that instant does not fit into an `i128`.
    pub fn start(self, epoch: UnixTime, count: u128) -> Option<UnixTime> {
        let scaled = i128::try_from(count)
            .ok()?
            .checked_mul(i128::from(self.nanos))?;
        let rounded_up = if self.parts == 1 {
            scaled
        } else {
            -(-scaled).div_euclid(i128::from(self.parts))
        };
        Some(UnixTime::from_nanos(epoch.nanos().checked_add(rounded_up)?))
    }

    /// Returns the number of fraction digits of a second (0, 3, 6 or 9) that are needed to tell
    /// neighbouring ticks apart. For example, ticks of 10 ms need 3 digits.
    pub const fn second_digits(self) -> u8 {
        match self.nanos / self.parts {
            1_000_000_000.. => 0,
            1_000_000.. => 3,
            1_000.. => 6,
            _ => 9,
        }
    }
}

impl FromStr for Tick {
    type Err = TickError;

    fn from_str(text: &str) -> Result<Tick, TickError> {
        let refuse = || TickError {
            text: text.to_owned(),
        };
        let (duration, parts) = match text.split_once('/') {
            Some((duration, parts)) => (duration, whole_number(parts).ok_or_else(refuse)?),
            None => (text, 1),
        };
        let unit_at = duration
            .find(|c: char| !c.is_ascii_digit())
            .ok_or_else(refuse)?;
        let (number, unit) = duration.split_at(unit_at);
        let unit_nanos = match unit {
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            _ => return Err(refuse()),
        };
        let nanos = whole_number(number)
            .and_then(|number| number.checked_mul(unit_nanos))
            .ok_or_else(refuse)?;
        let fits = (1..=Tick::NANOS_MAX).contains(&nanos)
            && (1..=Tick::PARTS_MAX).contains(&parts)
            && parts <= nanos;
        if fits {
            Ok(Tick { nanos, parts })
        } else {
            Err(refuse())
        }
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit_nanos, unit) = [
            (1_000_000_000, "s"),
            (1_000_000, "ms"),
            (1_000, "us"),
            (1, "ns"),
        ]
        .into_iter()
        .find(|(unit_nanos, _)| self.nanos.is_multiple_of(*unit_nanos))
        .expect("every number is a multiple of one nanosecond");
        write!(f, "{}{unit}", self.nanos / unit_nanos)?;
        if self.parts > 1 {
            write!(f, "/{}", self.parts)?;
        }
        Ok(())
    }
}

fn whole_number(text: &str) -> Option<u64> {
    let all_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(text: &str) -> Tick {
        text.parse().expect("a tick")
    }

    #[test]
    fn ticks_are_printed_as_they_are_written() {
        for text in ["1s", "10ms", "100ns", "1us", "1s/65536", "3600s"] {
            assert_eq!(tick(text).to_string(), text);
        }
    }

    #[test]
    fn what_is_not_a_tick_is_refused_with_its_text() {
        for text in [
            "",
            "1",
            "s",
            "0s",
            "1h",
            "1.5s",
            "-1s",
            "+1s",
            "1s/0",
            "1s/",
            "3601s",
            "1ns/2",
            "1s/1048577",
            "1 s",
        ] {
            let error = text.parse::<Tick>().expect_err(text);
            assert!(error.to_string().contains(&format!("`{text}`")));
        }
    }

    #[test]
    fn the_start_of_a_tick_is_its_first_nanosecond() {
        let tick = tick("1s/65536");
        for count in [0_u128, 1, 2, 65_535, 65_536, 111_677_748_027_290] {
            let start = tick.start(UnixTime::EPOCH, count).expect("in range");
            assert_eq!(
                tick.count(UnixTime::EPOCH, start),
                i128::try_from(count).expect("small")
            );
            let before = UnixTime::from_nanos(start.nanos() - 1);
            assert_eq!(
                tick.count(UnixTime::EPOCH, before),
                i128::try_from(count).expect("small") - 1
            );
        }
    }
}
