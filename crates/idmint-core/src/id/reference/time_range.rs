//! The range of the ids whose time is in a given time span.

use crate::id::format::Format;
use crate::id::layout::{Field, FieldKind, Layout};
use crate::time::{Tick, UnixTime};

/// The range of ids that belongs to a time span. An id is between `least` and `greatest` if and
/// only if its tick begins in the span.
///
/// Returned by [`Format::range`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdRange {
    /// The start of the span, inclusive: the requested start or the first instant of the format,
    /// whichever is later.
    pub from: UnixTime,
    /// The end of the span, exclusive: the requested end, or the end of the last tick that the time
    /// fields can hold, whichever is earlier.
    pub to: UnixTime,
    /// The smallest id of the first tick in the span.
    pub least: u128,
    /// The greatest id of the last tick in the span.
    pub greatest: u128,
}

/// The reason why no range of ids belongs to a time span.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// The ids of the format have no time.
    #[error("ids of this format carry no time")]
    NoTime,
    /// The ids do not begin with their whole time. A field that is not constant comes before the
    /// time or between its parts, or the parts of the time are out of order.
    #[error(
        "ids of this format do not begin with their time, or split it into pieces, so a time span is not a \
         range of ids"
    )]
    TimeNotLeading,
    /// The requested span ends at or before its start.
    #[error("from = {from} must be before to = {to}")]
    NotBefore {
        /// The requested start of the time span.
        from: UnixTime,
        /// The requested end of the time span.
        to: UnixTime,
    },
    /// The whole span is before the first tick of the format or after the last one.
    #[error("the time span from {from} to {to} is outside the range of this format")]
    Outside {
        /// The start of the requested span.
        from: UnixTime,
        /// The end of the requested span.
        to: UnixTime,
        /// The first instant of the format.
        first: UnixTime,
        /// The first instant after the last tick of the format, or `None` if the instant is too
        /// late to be represented.
        end: Option<UnixTime>,
    },
    /// The span is so short that no tick begins within it.
    #[error("the time span is too short: no tick of {tick} begins in it")]
    WithinOneTick {
        /// The length of a tick of the format.
        tick: Tick,
    },
}

impl Format {
    /// Returns the smallest and the greatest id of the time span from `from` (inclusive) to `to`
    /// (exclusive).
    ///
    /// The range covers the ids whose tick *begins* in the span. If the span extends beyond the
    /// first or last tick of the format, it is cut off there. The result contains the span after
    /// the cut. `from` and `to` must be instants that RFC 3339 can express.
    ///
    /// ```
    /// use idmint_core::id::Format;
    ///
    /// let format = Format::built_in("flax").expect("a built-in format");
    /// let range = format.range("2015-10-15T00:00:00Z".parse()?, "2015-10-16T00:00:00Z".parse()?)?;
    /// let [least, greatest] = [range.least, range.greatest].map(|id| format.canonical().to_text(id));
    /// assert_eq!([least.as_str(), greatest.as_str()], ["0RN08-----------", "0RgbUzzzzzzzzzzz"]);
    /// assert!(least.as_str() <= "0RdKJcxqVBiAiQr0" && "0RdKJcxqVBiAiQr0" <= greatest.as_str());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns a [`RangeError`] with the reason if the ids of the span do not form a range.
    pub fn range(&self, from: UnixTime, to: UnixTime) -> Result<IdRange, RangeError> {
        let layout = &self.variants[0].layout;
        let (tick, most) = self
            .tick
            .zip(layout.greatest_of(FieldKind::Time))
            .ok_or(RangeError::NoTime)?;
        if !layout.time_leads() {
            return Err(RangeError::TimeNotLeading);
        }
        if from >= to {
            return Err(RangeError::NotBefore { from, to });
        }
        let first = self.epoch;
        let end = most
            .checked_add(1)
            .and_then(|ticks| tick.start(first, ticks));
        if to <= first || end.is_some_and(|end| end <= from) {
            return Err(RangeError::Outside {
                from,
                to,
                first,
                end,
            });
        }
        let (from, to) = (from.max(first), end.map_or(to, |end| to.min(end)));
        // The last tick that begins before `instant` contains the nanosecond before `instant`,
        // because a tick begins at its first whole nanosecond. Ticks are numbered from 0, so the
        // number of ticks that begin before `instant` is one more than the number of that tick.
        let begun_before =
            |instant: UnixTime| tick.count(first, UnixTime::from_nanos(instant.nanos() - 1)) + 1;
        let (begin, after) = (begun_before(from), begun_before(to));
        if begin >= after {
            return Err(RangeError::WithinOneTick { tick });
        }
        let ticks =
            |count: i128| u128::try_from(count).expect("the span was cut at the first tick");
        let least = self
            .ids_of_tick(ticks(begin), Layout::with_ticks_from, |_| 0)
            .min();
        let greatest = self
            .ids_of_tick(ticks(after - 1), Layout::with_ticks, |field| field.max)
            .max();
        let (least, greatest) = least.zip(greatest).expect("a format has a layout");
        if least > greatest {
            // No id can have a time in this span, because the time fields cannot hold every tick.
            return Err(RangeError::WithinOneTick { tick });
        }
        Ok(IdRange {
            from,
            to,
            least,
            greatest,
        })
    }

    /// Returns one id for each layout of the format. `set` writes the tick number `ticks` into the
    /// time fields, or the nearest possible tick number before or after it if the fields leave gaps.
    /// Constant fields keep their value, and `free` returns the value of each other field.
    fn ids_of_tick(
        &self,
        ticks: u128,
        set: fn(&Layout, u128, Vec<u128>) -> Vec<u128>,
        free: fn(&Field) -> u128,
    ) -> impl Iterator<Item = u128> {
        self.layouts().map(move |layout| {
            let value = |field: &Field| field.constant.unwrap_or_else(|| free(field));
            let values = layout.fields().iter().map(value).collect();
            layout
                .pack(&set(layout, ticks, values))
                .expect("each value is within its field")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::format::FormatDefinition;
    use crate::id::preset;

    fn instant(text: &str) -> UnixTime {
        text.parse().expect("an instant")
    }

    fn custom(fields: &str) -> Format {
        let text = format!(
            r#"summary = "" 
            rule = "decode-only"
            tick = "1s"
            epoch = "2020-01-01T00:00:00Z"
            fields = [{fields}]
            encodings = ["hex_padded"]"#
        );
        FormatDefinition::from_toml("custom", &text)
            .expect("TOML")
            .compile("custom")
            .expect("sound")
    }

    fn range(format: &Format, from: &str, to: &str) -> Result<[u128; 2], RangeError> {
        format
            .range(instant(from), instant(to))
            .map(|range| [range.least, range.greatest])
    }

    #[test]
    fn a_range_begins_and_ends_at_ticks_that_ids_can_have() {
        let format = custom(
            "{ name = 'time', kind = 'time', bits = 20, scale = 10 },
             { name = 'time', kind = 'time', cardinality = 6 }",
        );
        // A tick's last digit is at most 5: ids can have ticks 0 to 5 and 10 to 15, not 6 to 9.
        let found = |from: u32, to: u32| {
            let instant = |second| format!("2020-01-01T00:00:{second:02}Z");
            range(&format, &instant(from), &instant(to))
        };
        assert_eq!(found(3, 9), Ok([3, 5]));
        assert_eq!(found(7, 13), Ok([6, 8]), "6 x 1 + 2 is tick 12");
        let tick = "1s".parse().expect("a tick");
        assert_eq!(found(6, 10), Err(RangeError::WithinOneTick { tick }));
    }

    #[test]
    fn a_range_has_every_id_of_its_ticks_and_no_other() {
        let [least, greatest] = range(
            &preset("payment"),
            "2024-01-01T00:00:10Z",
            "2024-01-01T00:00:12Z",
        )
        .expect("within");
        assert_eq!([least, greatest], [10 * 46_656, 12 * 46_656 - 1]);
        let wide = range(
            &preset("payment-wide"),
            "2024-01-01T00:00:10Z",
            "2024-01-01T00:00:11Z",
        )
        .expect("within");
        assert_eq!(
            wide,
            [10 * 46_656, 10 * 46_656 + 45 * 1024 - 1],
            "the gap above the last worker is no id"
        );
    }

    #[test]
    fn a_tick_belongs_to_the_span_in_which_it_begins() {
        let payment = preset("payment");
        let of = |from, to| {
            range(&payment, from, to).map(|[least, greatest]| (least / 46_656, greatest / 46_656))
        };
        assert_eq!(
            of("2024-01-01T00:00:10.000000001Z", "2024-01-01T00:00:12Z"),
            Ok((11, 11))
        );
        assert_eq!(
            of("2024-01-01T00:00:10Z", "2024-01-01T00:00:12.000000001Z"),
            Ok((10, 12))
        );
        let within = of("2024-01-01T00:00:10.1Z", "2024-01-01T00:00:10.9Z").expect_err("one tick");
        assert_eq!(
            within.to_string(),
            "the time span is too short: no tick of 1s begins in it"
        );
    }

    #[test]
    fn ticks_that_begin_between_nanoseconds_are_in_one_span_only() {
        let siq = preset("siq");
        let edge = instant("2024-01-01T00:00:00.000015259Z");
        let [before, after] = [
            siq.range(instant("2024-01-01T00:00:00Z"), edge)
                .expect("one tick"),
            siq.range(edge, instant("2024-01-01T00:00:00.000030518Z"))
                .expect("the next"),
        ];
        let ticks = |id: u128| id >> 56;
        assert_eq!(ticks(before.greatest) + 1, ticks(after.least));
        assert_eq!(ticks(after.least), ticks(after.greatest));
    }

    #[test]
    fn the_smallest_and_the_greatest_id_may_be_of_two_types() {
        let siq = preset("siq");
        let range = siq
            .range(
                instant("2024-01-01T00:00:00Z"),
                instant("2024-01-02T00:00:00Z"),
            )
            .expect("a day");
        assert_eq!(
            range.least & 0xffff,
            0,
            "a user, whose suffix is the smallest"
        );
        assert_eq!(
            range.greatest & 0xffff,
            0xffff,
            "a content, whose suffix is the greatest"
        );
    }

    #[test]
    fn a_span_is_cut_to_what_the_format_can_say() {
        let payment = preset("payment");
        let range = payment
            .range(
                instant("1970-01-01T00:00:00Z"),
                instant("2999-01-01T00:00:00Z"),
            )
            .expect("overlaps");
        assert_eq!(
            (range.from, range.to),
            (payment.epoch, instant("2092-12-23T05:45:36Z"))
        );
        assert_eq!((range.least, range.greatest), (0, payment.greatest()));
        for (from, to) in [
            ("2000-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
            ("2092-12-23T05:45:36Z", "2093-01-01T00:00:00Z"),
        ] {
            let outside = payment
                .range(instant(from), instant(to))
                .expect_err("outside");
            assert!(matches!(outside, RangeError::Outside { .. }), "{outside}");
        }
    }

    #[test]
    fn constants_above_and_below_the_time_keep_their_values() {
        let format = custom(
            r#"{ name = "a", kind = "constant", bits = 4, value = 9 }, { name = "time", kind = "time", bits = 8 },
               { name = "b", kind = "constant", bits = 4, value = 7 }, { name = "random", kind = "random", bits = 4 }"#,
        );
        let found = range(&format, "2020-01-01T00:00:01Z", "2020-01-01T00:00:03Z");
        assert_eq!(found, Ok([0x9_0170, 0x9_027f]));
    }

    #[test]
    fn a_time_that_does_not_lead_gives_no_range() {
        let behind = custom(
            r#"{ name = "worker", kind = "worker", bits = 4 }, { name = "time", kind = "time", bits = 8 }"#,
        );
        let day = |format: &Format| range(format, "2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z");
        assert_eq!(day(&behind), Err(RangeError::TimeNotLeading));
        let timeless = custom(r#"{ name = "random", kind = "random", bits = 4 }"#);
        assert_eq!(day(&timeless), Err(RangeError::NoTime));
        let reversed = range(
            &preset("flax"),
            "2020-01-02T00:00:00Z",
            "2020-01-02T00:00:00Z",
        )
        .expect_err("empty");
        assert_eq!(
            reversed.to_string(),
            "from = 2020-01-02T00:00:00.000Z must be before to = 2020-01-02T00:00:00.000Z"
        );
    }
}
