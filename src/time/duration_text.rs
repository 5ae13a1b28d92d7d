//! Durations as people write them: a whole number and one unit.

use std::time::Duration;

/// Every unit with its length in microseconds, longest first.
const UNITS: [(&str, u64); 6] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// The duration that `text` names, or `None`.
///
/// Shape: decimal digits and one of `us`, `ms`, `s`, `m`, `h`, `d`; no sign, fraction, space or second unit.
///
/// ```
/// use std::time::Duration;
/// use idmint::time::parse_duration;
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

/// `duration` in the longest unit that keeps it whole, as [`parse_duration`] reads it: `90s`, `3s`, `250ms`.
///
/// What is shorter than a microsecond is left off; no setting has any.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let micros = duration.as_micros();
    let (unit, unit_us) = UNITS
        .into_iter()
        .find(|(_, unit_us)| micros > 0 && micros.is_multiple_of(u128::from(*unit_us)))
        .unwrap_or(("s", 1_000_000));
    format!("{}{unit}", micros / u128::from(unit_us))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
