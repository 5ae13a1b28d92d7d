//! In which order the ids of a format come.

use super::format::{Format, Rule};
use super::monotonic::Monotonic;
use crate::id::layout::FieldKind;
use crate::time::Tick;

impl Format {
    /// One sentence on the order of its ids as numbers, and so of its texts in encodings that sort.
    ///
    /// ```
    /// use idmint::id::Format;
    ///
    /// let format = Format::built_in("flax").expect("a built-in format");
    /// assert_eq!(format.sort_order(), "By time, in ticks of 1ms; in no order within one tick.");
    /// ```
    pub fn sort_order(&self) -> String {
        let tick = self.tick.filter(|_| self.leads_with_time());
        match (self.rule, tick) {
            (Rule::Sequenced, tick) => self.sequenced_order(tick.is_some()),
            (Rule::Random, tick) => self.random_order(tick),
            (Rule::DecodeOnly, Some(tick)) => {
                format!("By time, in ticks of {tick}; in no order within one tick.")
            }
            (Rule::Chained, Some(tick)) => {
                format!(
                    "By time, in ticks of {tick}; each id of a ledger is greater than the one before it."
                )
            }
            (Rule::Grouped, Some(tick)) => {
                format!(
                    "By the time that they carry, in ticks of {tick}, whenever they were minted."
                )
            }
            (Rule::Chained | Rule::Grouped | Rule::DecodeOnly, None) => "None.".to_owned(),
        }
    }

    /// Whether a later tick is always a greater id.
    pub fn leads_with_time(&self) -> bool {
        self.variants[0].layout.time_leads()
    }

    /// Whether ids of several worker numbers are in order when they are taken tick by tick, and worker by worker within a
    /// tick: the time stands above the worker, and the worker above the sequence.
    pub fn has_lanes_in_order(&self) -> bool {
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
            (Monotonic::Off, Some(by_time)) => format!("{by_time}; in no order within one tick."),
            (Monotonic::Batch, None) => {
                "Strictly increasing in one answer; in no order between answers.".to_owned()
            }
            (Monotonic::Batch, Some(by_time)) => {
                format!(
                    "{by_time}. Strictly increasing in one answer; in no order between answers of one tick."
                )
            }
            (Monotonic::Process | Monotonic::Clock, by_time) => {
                let parts = match self.monotonic {
                    Monotonic::Clock => format!(" and {} parts of each", Monotonic::PARTS_OF_TICK),
                    _ => String::new(),
                };
                let by_time = by_time.expect("it has ticks, checked when the format was made");
                format!(
                    "{by_time}{parts}. Strictly increasing in one process, from one answer to the next, too."
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
            ", and by time between them"
        } else {
            ""
        };
        let batch = match (self.has_lanes_in_order(), has(FieldKind::Worker)) {
            (true, _) => {
                " A large batch takes every worker number of its node, and increases from its first id to its last."
            }
            (false, Some(_)) => " A batch takes one worker number, however large it is.",
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
                "Strictly increasing for each worker number, and by time between them. \
                 A large batch takes every worker number of its node, and increases from its first id to its last.",
            ),
            (
                "sequenced",
                &[WORKER, TIME, SEQUENCE],
                "Strictly increasing for each worker number. A batch takes one worker number, however large it is.",
            ),
            (
                "sequenced",
                &[SEQUENCE, TIME],
                "None: the sequence stands above the time.",
            ),
            (
                "random",
                &[TIME, RANDOM],
                "By time, in ticks of 1s; in no order within one tick.",
            ),
            ("random", &[RANDOM, TIME], "None."),
            ("random", &[RANDOM], "None."),
            (
                "decode-only",
                &[TIME, WORKER],
                "By time, in ticks of 1s; in no order within one tick.",
            ),
            (
                "grouped",
                &[TIME, OBJECT, OTHER],
                "By the time that they carry, in ticks of 1s, whenever they were minted.",
            ),
        ] {
            assert_eq!(of(rule, fields), expected, "{rule} {fields:?}");
        }
        for (name, expected) in [
            ("uuid4", "None."),
            (
                "uuid7",
                "By time, in ticks of 1ms and 4096 parts of each. Strictly increasing in one process, from one answer to the \
                 next, too.",
            ),
            (
                "ulid",
                "By time, in ticks of 1ms. Strictly increasing in one answer; in no order between answers of one tick.",
            ),
        ] {
            assert_eq!(preset(name).sort_order(), expected);
        }
        assert_eq!(
            preset("evently").sort_order(),
            "By time, in ticks of 1us; each id of a ledger is greater than the one before it."
        );
        assert_eq!(
            preset("siq").sort_order(),
            "Strictly increasing for each worker number, domain and type, and by time between them. \
             A large batch takes every worker number of its node, and increases from its first id to its last."
        );
    }
}
