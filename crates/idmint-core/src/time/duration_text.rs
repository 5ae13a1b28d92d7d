//! Durations as text. A text has one whole number and one unit.

use std::time::Duration;

/// The name of each unit and its length in microseconds, longest first.
const UNITS: [(&str, u64); 6] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// Parses a duration such as `250ms`, or returns `None` if `text` is not a duration.
///
/// A duration consists of decimal digits and one of the units `us`, `ms`, `s`, `m`, `h`, `d`. It
/// has no sign, no fraction and no space, and only one unit.
///
/// ```
/// use std::time::Duration;
/// use idmint_core::time::parse_duration;
///
/// assert_eq!(parse_duration("250ms"), Some(Duration::from_millis(250)));
/// assert_eq!(parse_duration("30d"), Some(Duration::from_secs(30 * 24 * 60 * 60)));
/// assert_eq!(parse_duration("5"), None); // Five of what?
/// ```
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let (_, unit_us) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    digits
        .parse::<u64>()
        .ok()?
        .checked_mul(unit_us)
        .map(Duration::from_micros)
}

/// Formats a duration in the longest unit in which it is a whole number, such as `90s`, `3s` or
/// `250ms`. [`parse_duration`] can parse the result.
///
/// Fractions of a microsecond are dropped, because no setting has them.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let micros = duration.as_micros();
    let (unit, unit_us) = UNITS
        .into_iter()
        .find(|(_, unit_us)| micros > 0 && micros.is_multiple_of(u128::from(*unit_us)))
        .unwrap_or(("s", 1_000_000));
    format!("{}{unit}", micros / u128::from(unit_us))
}

/// Formats a duration in seconds, rounded to at most three decimals.
///
/// ```
/// use std::time::Duration;
/// use idmint_core::time::format_seconds;
///
/// assert_eq!(format_seconds(Duration::from_nanos(1_554_695_855)), "1.555 s");
/// assert_eq!(format_seconds(Duration::from_secs(90)), "90 s");
/// ```
#[must_use]
pub fn format_seconds(duration: Duration) -> String {
    let text = format!("{:.3}", duration.as_secs_f64());
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::minting::Refusal;

    #[test]
    fn every_unit_is_read() {
        let micros = |text| parse_duration(text).map(|duration| duration.as_micros());
        assert_eq!(micros("7us"), Some(7));
        assert_eq!(micros("5ms"), Some(5_000));
        assert_eq!(micros("3s"), Some(3_000_000));
        assert_eq!(micros("2m"), Some(120_000_000));
        assert_eq!(micros("24h"), Some(86_400_000_000));
        assert_eq!(micros("30d"), Some(2_592_000_000_000));
    }

    #[test]
    fn anything_but_digits_and_one_unit_is_refused() {
        for text in [
            "", "5", "s", "-5s", "+5s", "1.5s", "5 s", " 5s", "5s ", "1h30m", "5S", "5sec", "5ns",
            "٥s",
        ] {
            assert_eq!(parse_duration(text), None, "{text:?}");
        }
        assert_eq!(
            parse_duration("18446744073709551615d"),
            None,
            "more microseconds than 64 bits hold"
        );
        assert_eq!(
            parse_duration("18446744073709551616us"),
            None,
            "more digits than 64 bits hold"
        );
    }

    #[test]
    fn a_formatted_duration_reads_back_as_itself() {
        for text in ["0s", "1us", "250ms", "3s", "90s", "1m", "60h", "1h", "30d"] {
            let duration = parse_duration(text).expect("a duration");
            assert_eq!(
                parse_duration(&format_duration(duration)),
                Some(duration),
                "{text}"
            );
        }
        assert_eq!(format_duration(Duration::from_millis(60_000)), "1m");
        assert_eq!(format_duration(Duration::ZERO), "0s");
    }

    #[test]
    fn seconds_have_at_most_three_decimals() {
        for (nanos, text) in [
            (0, "0 s"),
            (400_000, "0 s"),
            (10_000_000, "0.01 s"),
            (1_554_695_855, "1.555 s"),
            (100_000_000_000, "100 s"),
            (73_357_354_725_477, "73357.355 s"),
        ] {
            let behind = Duration::from_nanos(nanos);
            assert_eq!(format_seconds(behind), text);
            let refusal = Refusal::ClockBehind { behind }.to_string();
            assert!(refusal.contains(&format!("is {text} behind")), "{refusal}");
        }
    }
}
