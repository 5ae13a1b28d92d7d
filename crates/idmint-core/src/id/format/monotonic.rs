//! The guarantees that a random format can give about the order of its ids, and the check that its
//! fields and its tick permit the guarantee.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::format::{Format, Rule};
use super::format_error::Cause;
use crate::id::layout::FieldKind;
use crate::named;

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
        /// The first response within a tick draws a random starting point. Later responses in that
        /// tick continue from there.
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
    /// The number of parts into which a tick is divided. Each response of a process uses a later
    /// part than the previous response, so its ids are greater.
    pub const PARTS_OF_TICK: u64 = 1 << 12;

    /// Returns `true` if each tick is divided into parts, so that each response gets a later part
    /// than the previous one.
    pub const fn has_parts(self) -> bool {
        matches!(self, Monotonic::Process | Monotonic::Clock)
    }
}

/// The shortest tick for ids that increase from response to response. Each response takes one of
/// 4096 parts of the tick, and no clock can distinguish parts below 1 ns.
const TICK_MIN: Duration = Duration::from_nanos(Monotonic::PARTS_OF_TICK);

/// The longest tick for ids that increase from response to response. Each response takes one of
/// 4096 parts of the tick. With 10 ms, more than 409 600 responses per second use up the parts, and
/// ids then get times further and further ahead of the clock.
const TICK_MAX: Duration = Duration::from_millis(10);

/// The minimum number of values of the random fields in each part of a tick (one for each
/// response). With fewer values, a large response would too often draw the same value twice.
const VALUES_MIN: u128 = 1 << 40;

/// Checks that the layout and the tick of a format permit the order of ids that its setting
/// `monotonic` promises.
pub(super) fn check_monotonic(format: &Format) -> Result<(), Cause> {
    let name = format.monotonic.name();
    let refuse = |text: String| Cause::rule(format!("monotonic = \"{name}\": {text}"));
    if format.monotonic == Monotonic::Off || format.rule == Rule::DecodeOnly {
        return Ok(());
    }
    if format.rule != Rule::Random {
        return refuse(format!(
            "this setting is for the rule `random`, not for `{}`; remove it",
            format.rule.name()
        ));
    }
    let layout = format.layout();
    let has_time = layout.field_of(FieldKind::Time).is_some();
    if has_time && !format.leads_with_time() {
        return refuse("the time field must come before every random field".to_owned());
    }
    let parts = if format.monotonic.has_parts() {
        Monotonic::PARTS_OF_TICK
    } else {
        1
    };
    let random = layout.fields_of(FieldKind::Random);
    let values = random.fold(1_u128, |values, field| values.saturating_mul(field.max + 1));
    let least = VALUES_MIN * u128::from(parts);
    if values < least {
        let (bits, bits_min) = (values.ilog2(), least.ilog2());
        return refuse(format!(
            "the random fields have {bits} bits, but need at least {bits_min}; widen them, or set \"off\""
        ));
    }
    let (min, max) = (TICK_MIN, TICK_MAX);
    match format.tick.filter(|_| has_time) {
        _ if !format.monotonic.has_parts() => Ok(()),
        None => refuse(
            "the format needs a field of kind time; add one, or set \"batch\" or \"off\""
                .to_owned(),
        ),
        Some(tick) if tick.duration() < min || tick.duration() > max => refuse(format!(
            "tick = {tick} must be from {min:?} to {max:?}; change it, or set \"batch\" or \"off\""
        )),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{FormatDefinition, PRESETS};

    fn compiled(rule: &str, tick: &str, fields: &str, mode: &str) -> Result<Format, String> {
        let text = format!(
            "summary = ''\nrule = '{rule}'\ntick = '{tick}'\nepoch = '2020-01-01T00:00:00Z'\nfields = [{fields}]\n\
             encodings = ['hex']\nmonotonic = '{mode}'"
        );
        let definition =
            FormatDefinition::from_toml("mine", &text).map_err(|error| error.to_string())?;
        definition
            .compile("mine")
            .map_err(|error| error.to_string())
    }

    const TIME: &str = "{ name = 'time', kind = 'time', bits = 48 }";
    const SEQUENCE: &str = "{ name = 'sequence', kind = 'sequence', bits = 16 }";

    fn random(bits: u32) -> String {
        format!("{{ name = 'random', kind = 'random', bits = {bits} }}")
    }

    #[test]
    fn what_cannot_follow_is_refused_with_the_value_and_the_bound() {
        let below = |time: &str, bits| format!("{time}, {}", random(bits));
        for (rule, tick, fields, mode, named) in [
            (
                "random",
                "1ms",
                below(TIME, 39),
                "batch",
                ["39 bits", "at least 40"],
            ),
            (
                "random",
                "1ms",
                below(TIME, 51),
                "clock",
                ["51 bits", "at least 52"],
            ),
            (
                "random",
                "1ms",
                below(TIME, 51),
                "process",
                ["51 bits", "at least 52"],
            ),
            (
                "random",
                "1s",
                below(TIME, 72),
                "clock",
                ["tick = 1s", "10ms"],
            ),
            (
                "random",
                "4us",
                below(TIME, 72),
                "process",
                ["tick = 4us", "4.096µs"],
            ),
            (
                "random",
                "1ms",
                random(72),
                "clock",
                ["kind time", "\"batch\""],
            ),
            (
                "random",
                "1ms",
                format!("{}, {TIME}", random(72)),
                "batch",
                ["time", "before every random field"],
            ),
            (
                "sequenced",
                "1ms",
                format!("{TIME}, {SEQUENCE}"),
                "batch",
                ["`random`", "`sequenced`"],
            ),
            (
                "random",
                "1ms",
                below(TIME, 72),
                "always",
                ["always", "clock"],
            ),
        ] {
            let error = compiled(rule, tick, &fields, mode).expect_err(&fields);
            assert!(
                named.iter().all(|part| error.contains(part)),
                "{fields}: {error}"
            );
        }
        for (tick, fields, mode) in [
            ("1ms", below(TIME, 40), "batch"),
            ("1ms", below(TIME, 52), "clock"),
            ("10ms", below(TIME, 52), "process"),
            ("5us", below(TIME, 52), "clock"),
            ("1s", random(40), "batch"),
            ("1s", below(TIME, 8), "off"),
        ] {
            assert_eq!(
                compiled("random", tick, &fields, mode).map(|format| format.monotonic.name()),
                Ok(mode)
            );
        }
    }

    #[test]
    fn built_in_formats_follow_as_their_pages_say() {
        let formats = PRESETS.iter().map(|preset| crate::id::preset(preset.name));
        let following = formats.filter(|format| format.monotonic != Monotonic::Off);
        let modes: Vec<_> = following
            .map(|format| format!("{} {}", format.name, format.monotonic.name()))
            .collect();
        assert_eq!(
            modes,
            [
                "uuid7 clock",
                "ulid batch",
                "firebase batch",
                "typeid clock"
            ]
        );
    }
}
