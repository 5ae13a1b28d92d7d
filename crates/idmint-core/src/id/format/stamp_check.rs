//! Checks that 64-bit counters suffice for minting the ids of a sequenced format.
//!
//! Minting counts ticks since the epoch, and stamps since the start of the process, both in 64-bit
//! integers. The ticks overflow if a tick is too short for the age of the epoch. The stamps
//! overflow if the sequence is too wide for the length of a tick. Both could happen while the
//! layout still has free ids, so such formats are refused.

use std::time::Duration;

use super::format::{Format, Rule};
use super::format_error::Cause;
use crate::id::layout::FieldKind;
use crate::time::{Tick, UnixNanos, UnixTime, built_at};

/// The uptime for which a format must have enough stamps: ten years. A format whose stamps could
/// run out sooner is refused. No process runs longer.
const UPTIME_MIN: Duration = Duration::from_secs(10 * 365 * 86_400);

/// The number of values of a 64-bit integer. Ticks and stamps must be below it, because minting
/// counts them in 64-bit integers.
const VALUES_MAX: u128 = 1 << 64;

pub(super) fn check_stamps(format: &Format) -> Result<(), Cause> {
    let (Rule::Sequenced, Some(tick)) = (format.rule, format.tick) else {
        return Ok(());
    };
    check_epoch(tick, format.epoch)?;
    let sequences = format
        .layouts()
        .filter_map(|layout| layout.field_of(FieldKind::Sequence));
    for sequence in sequences {
        check_uptime(tick, &sequence.name, sequence.max + 1)?;
    }
    Ok(())
}

/// Checks that the number of ticks from `epoch` to the build of this program is below 2^64, and
/// that `epoch` is not after the last instant that can be minted, in the year 2554.
fn check_epoch(tick: Tick, epoch: UnixTime) -> Result<(), Cause> {
    let present = u128::try_from(tick.count(epoch, built_at().into())).unwrap_or(0);
    if present >= VALUES_MAX {
        return Cause::rule_at(
            "epoch",
            format!(
                "tick = \"{tick}\" since epoch = \"{epoch}\": today is tick {present}, but ticks must be below 2^64; set a later epoch or a longer tick"
            ),
        );
    }
    let last = UnixTime::from(UnixNanos::new(u64::MAX));
    if epoch > last {
        return Cause::rule_at(
            "epoch",
            format!("epoch = \"{epoch}\" is after {last}, the last instant that can be minted"),
        );
    }
    Ok(())
}

/// Checks that a process does not run out of stamps within [`UPTIME_MIN`] after its start.
fn check_uptime(tick: Tick, sequence: &str, values: u128) -> Result<(), Cause> {
    let needed = UPTIME_MIN.as_nanos() * u128::from(tick.parts()) / u128::from(tick.nanos());
    if needed * values < VALUES_MAX {
        return Ok(());
    }
    let ticks = VALUES_MAX / values;
    let lasts =
        Duration::from_nanos_u128(ticks * u128::from(tick.nanos()) / u128::from(tick.parts()));
    Cause::rule(format!(
        "field `{sequence}`: with {values} values and tick = \"{tick}\" a process could mint for only {} hours; use \
         at most {} values (a constant field of value 0 can take the other digits)",
        lasts.as_secs() / 3600,
        VALUES_MAX / needed
    ))
}

#[cfg(test)]
mod tests {
    use crate::id::format::definition::FormatDefinition;

    /// Returns the error for a sequenced format with these settings, or `None` if it is valid.
    fn refusal(tick: &str, epoch: &str, sequence_bits: u32) -> Option<String> {
        let text = format!(
            r#"
            summary = ""
            rule = "sequenced"
            tick = "{tick}"
            epoch = "{epoch}"
            fields = [ {{ name = "time", kind = "time", bits = 64 }}, {{ name = "sequence", kind = "sequence", bits = {sequence_bits} }} ]
            encodings = ["decimal"]"#
        );
        let definition = FormatDefinition::from_toml("custom", &text).expect("TOML");
        definition
            .compile("custom")
            .err()
            .map(|error| error.to_string())
    }

    #[test]
    fn a_tick_beyond_64_bits_at_the_present_day_is_refused_with_its_number() {
        let error = refusal("1ns", "0001-01-01T00:00:00Z", 4)
            .expect("18 446 744 073 s since then are the year 585");
        assert!(
            error.contains("below 2^64") && error.contains("0001-01-01"),
            "{error}"
        );
        assert_eq!(refusal("100ns", "0001-01-01T00:00:00Z", 4), None);
        assert_eq!(refusal("1ns", "1500-01-01T00:00:00Z", 4), None);
        let error = refusal("1s", "2600-01-01T00:00:00Z", 4).expect("the clock ends in 2554");
        assert!(error.contains("2554"), "{error}");
    }

    #[test]
    fn a_sequence_whose_stamps_end_with_the_uptime_is_refused_with_the_bound() {
        for (tick, hours) in [("1ms", "1193 hours"), ("1us", "1 hours")] {
            let error = refusal(tick, "2020-01-01T00:00:00Z", 32).expect("2^32 values a tick");
            assert!(error.contains(hours), "{error}");
        }
        // A stamp is tick and sequence in 64 bits. In ten years of 1 ms ticks (315 360 000 000),
        // each tick can have 58 494 241 stamps, but a sequence of 26 bits needs 67 108 864.
        let error = refusal("1ms", "2020-01-01T00:00:00Z", 26).expect("2^26 values a tick");
        assert!(error.contains("at most 58494241 values"), "{error}");
        assert_eq!(refusal("1ms", "2020-01-01T00:00:00Z", 25), None);
        assert_eq!(refusal("1s", "2020-01-01T00:00:00Z", 32), None);
    }
}
