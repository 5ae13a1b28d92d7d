//! From which id to which the ids of a time span go.

use crate::id::format::Format;
use crate::id::layout::{Field, FieldKind};
use crate::time::{Tick, UnixTime};

/// The ids of a time span: all of them lie between `least` and `greatest`, and no id of another time does.
///
/// Made by [`Format::range`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdRange {
    /// Where the span begins: as asked for, or where the format begins.
    pub from: UnixTime,
    /// Where the span ends, exclusive: as asked for, or where the format ends.
    pub to: UnixTime,
    /// The smallest id of the span's first tick.
    pub least: u128,
    /// The greatest id of its last tick.
    pub greatest: u128,
}

/// Why a time span has no range of ids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// Ids of this format carry no time.
    #[error("its ids carry no time")]
    NoTime,
    /// Something that varies stands above the time or within it, or its pieces stand in another order.
    #[error(
        "its ids do not begin with their time, or have it in scattered pieces, so those of a time span are no range"
    )]
    TimeNotLeading,
    /// The span ends before it begins, or where it begins.
    #[error("from {from} is not before to {to}")]
    NotBefore {
        /// Where it should begin.
        from: UnixTime,
        /// Where it should end.
        to: UnixTime,
    },
    /// The span lies before the first tick or after the last.
    #[error("from {from} to {to} lies outside of what its ids can say")]
    Outside {
        /// Where the span begins.
        from: UnixTime,
        /// Where it ends.
        to: UnixTime,
        /// The format's first instant.
        first: UnixTime,
        /// The first instant after its last tick; `None` if that is further away than any text can say.
        end: Option<UnixTime>,
    },
    /// The span lies within one tick.
    #[error("no tick of {tick} begins in this span")]
    WithinOneTick {
        /// The unit of the time.
        tick: Tick,
    },
}

impl Format {
    /// The smallest and the greatest id of the half-open time span from `from` to `to`: of the ticks that *begin* in it.
    ///
    /// A span that reaches beyond the format's first or last tick is cut there, and the answer says so. Constants keep
    /// their values. Bounds: instants that RFC 3339 can write.
    ///
    /// ```
    /// use idmint::id::Format;
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
    /// [`RangeError`] says why there is no such range.
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
        // A tick begins at its first whole nanosecond, so those that begin before an instant are those that one
        // nanosecond earlier had begun.
        let begun_before =
            |instant: UnixTime| tick.count(first, UnixTime::from_nanos(instant.nanos() - 1)) + 1;
        let (begin, after) = (begun_before(from), begun_before(to));
        if begin >= after {
            return Err(RangeError::WithinOneTick { tick });
        }
        let ticks =
            |count: i128| u128::try_from(count).expect("the span was cut at the first tick");
        let least = self.extreme_at(ticks(begin), Extreme::Least);
        let greatest = self.extreme_at(ticks(after - 1), Extreme::Greatest);
        Ok(IdRange {
            from,
            to,
            least,
            greatest,
        })
    }

    /// The smallest or the greatest id of a tick, whichever layout it has.
    fn extreme_at(&self, ticks: u128, extreme: Extreme) -> u128 {
        let ids = self.variants.iter().map(|variant| {
            let extreme_of = |field: &Field| match extreme {
                Extreme::Least => field.constant.unwrap_or(0),
                Extreme::Greatest => field.constant.unwrap_or(field.max),
            };
            let values = variant.layout.fields().iter().map(extreme_of).collect();
            variant
                .layout
                .pack(&variant.layout.with_ticks(ticks, values))
                .expect("each value is within its field")
        });
        match extreme {
            Extreme::Least => ids.min(),
            Extreme::Greatest => ids.max(),
        }
        .expect("a format has a layout")
    }
}

#[derive(Debug, Clone, Copy)]
enum Extreme {
    Least,
    Greatest,
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
        assert_eq!(within.to_string(), "no tick of 1s begins in this span");
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
            "from 2020-01-02T00:00:00.000Z is not before to 2020-01-02T00:00:00.000Z"
        );
    }
}
