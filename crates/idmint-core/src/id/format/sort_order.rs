//! Describes the order of a format's ids as numbers, such as whether newer ids come last.

use super::format::{Format, Rule};
use super::monotonic::Monotonic;
use crate::id::layout::FieldKind;
use crate::time::Tick;

impl Format {
    /// Returns one or more sentences that describe the order of ids that are sorted as numbers. The
    /// texts of a sortable encoding sort in the same order.
    ///
    /// ```
    /// use idmint_core::id::Format;
    ///
    /// let format = Format::built_in("flax").expect("a built-in format");
    /// assert_eq!(format.sort_order(), "By time, in ticks of 1ms. Ids of one tick have no order.");
    /// ```
    pub fn sort_order(&self) -> String {
        let tick = self.tick.filter(|_| self.leads_with_time());
        match (self.rule, tick) {
            (Rule::Sequenced, tick) => self.sequenced_order(tick.is_some()),
            (Rule::Random, tick) => self.random_order(tick),
            (Rule::DecodeOnly, Some(tick)) => {
                format!("By time, in ticks of {tick}. Ids of one tick have no order.")
            }
            (Rule::Chained, Some(tick)) => {
                format!(
                    "By time, in ticks of {tick}. Each id of a ledger (a chain of events) is greater than the ledger's earlier ids."
                )
            }
            (Rule::Grouped, Some(tick)) => {
                format!(
                    "Ids sort by the time that they contain, in ticks of {tick}, and not by when they were minted."
                )
            }
            (Rule::Chained | Rule::Grouped | Rule::DecodeOnly, None) => "None.".to_owned(),
        }
    }

    /// Returns `true` if an id with a later time is always a greater number.
    pub fn leads_with_time(&self) -> bool {
        self.variants[0].layout.time_leads()
    }

    /// Returns `true` if sorting ids as numbers also sorts them by tick, then by worker number,
    /// then by sequence.
    ///
    /// This holds if the time comes before the worker in the layout, and the worker before the
    /// sequence.
    pub(crate) fn has_lanes_in_order(&self) -> bool {
        self.variants.iter().all(|variant| {
            let stride = |kind| variant.layout.field_of(kind).map(|field| field.stride);
            match (
                stride(FieldKind::Time),
                stride(FieldKind::Worker),
                stride(FieldKind::Sequence),
            ) {
                (Some(time), Some(worker), Some(sequence)) => time > worker && worker > sequence,
                _ => false,
            }
        })
    }

    fn random_order(&self, tick: Option<Tick>) -> String {
        let by_time = tick.map(|tick| format!("By time, in ticks of {tick}"));
        match (self.monotonic, by_time) {
            (Monotonic::Off, None) => "None.".to_owned(),
            (Monotonic::Off, Some(by_time)) => format!("{by_time}. Ids of one tick have no order."),
            (Monotonic::Batch, None) => {
                "Strictly increasing within one response. Ids of different responses have no order."
                    .to_owned()
            }
            (Monotonic::Batch, Some(by_time)) => {
                format!(
                    "{by_time}. Strictly increasing within one response. Ids of different responses in one tick have no order."
                )
            }
            (Monotonic::Process | Monotonic::Clock, by_time) => {
                let parts = match self.monotonic {
                    Monotonic::Clock => {
                        format!(", each divided into {} parts", Monotonic::PARTS_OF_TICK)
                    }
                    _ => String::new(),
                };
                let by_time = by_time.expect("it has ticks, checked when the format was made");
                format!(
                    "{by_time}{parts}. Each id that a process mints is greater than all its earlier ids."
                )
            }
        }
    }

    fn sequenced_order(&self, by_time: bool) -> String {
        let layout = &self.variants[0].layout;
        let has = |kind| layout.field_of(kind);
        let mut apart = vec!["worker number"];
        apart.extend(has(FieldKind::Object).map(|field| field.name.as_str()));
        apart.extend(self.has_types().then_some("type"));
        let each = match apart.as_slice() {
            [only] => (*only).to_owned(),
            [others @ .., last] => format!("{} and {last}", others.join(", ")),
            [] => unreachable!("there is always the worker number"),
        };
        let stride = |kind| has(kind).map_or(0, |field| field.stride);
        if stride(FieldKind::Time) < stride(FieldKind::Sequence) {
            return "None: the sequence stands above the time.".to_owned();
        }
        let beyond = if by_time {
            ". Across worker numbers, ids are ordered by tick"
        } else {
            ""
        };
        let batch = match (self.has_lanes_in_order(), has(FieldKind::Worker)) {
            (true, _) => {
                " A large batch uses all worker numbers of its node, and its ids increase in the order of the response."
            }
            (false, Some(_)) => " A batch uses one worker number, whatever its size.",
            (false, None) => "",
        };
        format!("Strictly increasing for each {each}{beyond}.{batch}")
    }
}

#[cfg(test)]
mod tests {
    use crate::id::format::definition::FormatDefinition;
    use crate::id::preset;

    fn order(rule: &str, fields: &str) -> String {
        let text = format!(
            "summary = ''\nrule = '{rule}'\ntick = '1s'\nepoch = '2020-01-01T00:00:00Z'\nfields = [{fields}]\nencodings = ['hex']"
        );
        FormatDefinition::from_toml("custom", &text)
            .expect("TOML")
            .compile("custom")
            .expect("sound")
            .sort_order()
    }

    const TIME: &str = "{ name = 'time', kind = 'time', bits = 8 }";
    const WORKER: &str = "{ name = 'worker', kind = 'worker', bits = 8 }";
    const SEQUENCE: &str = "{ name = 'sequence', kind = 'sequence', bits = 8 }";
    const OBJECT: &str = "{ name = 'object', kind = 'object', bits = 8 }";
    const OTHER: &str = "{ name = 'other', kind = 'object', bits = 8 }";
    const RANDOM: &str = "{ name = 'random', kind = 'random', bits = 8 }";

    #[test]
    fn the_order_follows_from_the_rule_and_the_place_of_the_time() {
        let of = |rule: &str, fields: &[&str]| order(rule, &fields.join(", "));
        for (rule, fields, expected) in [
            (
                "sequenced",
                &[TIME, WORKER, SEQUENCE][..],
                "Strictly increasing for each worker number. Across worker numbers, ids are ordered by tick. \
                 A large batch uses all worker numbers of its node, and its ids increase in the order of the response.",
            ),
            (
                "sequenced",
                &[WORKER, TIME, SEQUENCE],
                "Strictly increasing for each worker number. A batch uses one worker number, whatever its size.",
            ),
            (
                "sequenced",
                &[SEQUENCE, TIME],
                "None: the sequence stands above the time.",
            ),
            (
                "random",
                &[TIME, RANDOM],
                "By time, in ticks of 1s. Ids of one tick have no order.",
            ),
            ("random", &[RANDOM, TIME], "None."),
            ("random", &[RANDOM], "None."),
            (
                "decode-only",
                &[TIME, WORKER],
                "By time, in ticks of 1s. Ids of one tick have no order.",
            ),
            (
                "grouped",
                &[TIME, OBJECT, OTHER],
                "Ids sort by the time that they contain, in ticks of 1s, and not by when they were minted.",
            ),
        ] {
            assert_eq!(of(rule, fields), expected, "{rule} {fields:?}");
        }
        for (name, expected) in [
            ("uuid4", "None."),
            (
                "uuid7",
                "By time, in ticks of 1ms, each divided into 4096 parts. Each id that a process mints is greater than all its earlier \
                 ids.",
            ),
            (
                "ulid",
                "By time, in ticks of 1ms. Strictly increasing within one response. Ids of different responses in one tick have no order.",
            ),
        ] {
            assert_eq!(preset(name).sort_order(), expected);
        }
        assert_eq!(
            preset("evently").sort_order(),
            "By time, in ticks of 1us. Each id of a ledger (a chain of events) is greater than the ledger's earlier ids."
        );
        assert_eq!(
            preset("siq").sort_order(),
            "Strictly increasing for each worker number, domain and type. Across worker numbers, ids are ordered by tick. \
             A large batch uses all worker numbers of its node, and its ids increase in the order of the response."
        );
    }
}
