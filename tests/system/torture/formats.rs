//! What is minted: every sequenced format that is built in, and six others whose shapes are unlike theirs.

use crate::http1::request;

/// A format, and what is known of it by hand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tortured {
    pub(crate) name: &'static str,
    /// What a request says beside the count.
    pub(crate) query: &'static str,
    /// From one id to the next of the same tick and worker number.
    pub(crate) step: u128,
    /// Whether each batch increases from its first id to its last.
    pub(crate) increases: bool,
    /// More at once would only find its second, or its hour, used up.
    pub(crate) count_max: u32,
    /// Whether lives may end within the tick in which they began.
    pub(crate) has_long_ticks: bool,
    /// Its table, unless it is built in. It joins some lives after the first.
    pub(crate) custom: Option<&'static str>,
}

const fn built_in(name: &'static str) -> Tortured {
    Tortured {
        name,
        query: "",
        step: 1,
        increases: true,
        count_max: u32::MAX,
        has_long_ticks: false,
        custom: None,
    }
}

const fn custom(name: &'static str, table: &'static str, step: u128) -> Tortured {
    Tortured {
        step,
        custom: Some(table),
        ..built_in(name)
    }
}

/// Ids of a second: few.
const FEW: u32 = 200;

/// Ids of a long tick: of each lane some seconds' worth, so that what is reserved runs ahead of the clock, but not by hours.
const LONG_TICK_COUNT_MAX: u32 = 100_000;

pub(crate) const FORMATS: [Tortured; 14] = [
    built_in("snowflake"),
    built_in("twitter"),
    built_in("instagram"),
    built_in("conjunction-v1"),
    Tortured {
        count_max: FEW,
        ..built_in("js53")
    },
    Tortured {
        query: "type=message&",
        step: 16,
        ..built_in("siq")
    },
    Tortured {
        count_max: FEW,
        ..built_in("payment")
    },
    Tortured {
        count_max: FEW,
        ..built_in("payment-wide")
    },
    Tortured {
        count_max: LONG_TICK_COUNT_MAX,
        has_long_ticks: true,
        ..custom(
            "minutes",
            r#"tick = "60s"
            fields = [
                { name = "time", kind = "time", bits = 32 },
                { name = "worker", kind = "worker", bits = 4 },
                { name = "sequence", kind = "sequence", bits = 20 },
            ]"#,
            1,
        )
    },
    Tortured {
        count_max: LONG_TICK_COUNT_MAX,
        has_long_ticks: true,
        ..custom(
            "hours",
            r#"tick = "3600s"
            fields = [
                { name = "worker", kind = "worker", cardinality = 31, stride = "36028797018963968" },
                { name = "time", kind = "time", cardinality = "67108864", stride = "536870912" },
                { name = "sequence", kind = "sequence", cardinality = 67108859 },
            ]"#,
            1,
        )
    },
    custom(
        "nanos",
        r#"tick = "7ns"
        fields = [
            { name = "time", kind = "time", bits = 62, stride = "65541" },
            { name = "worker", kind = "worker", cardinality = 13, stride = "5021" },
            { name = "sequence", kind = "sequence", cardinality = 401, stride = "11" },
        ]"#,
        11,
    ),
    // The time stands below the worker number.
    custom(
        "below",
        r#"tick = "1ms"
        fields = [
            { name = "worker", kind = "worker", bits = 5 },
            { name = "time", kind = "time", bits = 45 },
            { name = "sequence", kind = "sequence", bits = 13 },
        ]"#,
        1,
    ),
    // The sequence stands above the time: the ids of a tick lie far apart.
    Tortured {
        increases: false,
        ..custom(
            "upside",
            r#"tick = "100us"
            fields = [
                { name = "sequence", kind = "sequence", cardinality = 1999, stride = "72057594037927936" },
                { name = "time", kind = "time", cardinality = "4503599627370496", stride = "16" },
                { name = "worker", kind = "worker", cardinality = 16 },
            ]"#,
            1 << 56,
        )
    },
    // A third of a second, and gaps between all that its fields can hold.
    custom(
        "thirds",
        r#"tick = "1s/3"
        fields = [
            { name = "time", kind = "time", bits = 40, stride = "12000000017" },
            { name = "worker", kind = "worker", cardinality = 23, stride = "500000003" },
            { name = "sequence", kind = "sequence", cardinality = 9999991, stride = "47" },
        ]"#,
        47,
    ),
];

impl Tortured {
    /// The request for so many packed ids.
    pub(crate) fn request(&self, count: u32) -> String {
        let order = format!("POST /ids/{}?{}count={count}", self.name, self.query);
        request(&order, "accept: application/octet-stream\r\n", "")
    }

    /// The table of a configuration file, if it is not built in.
    pub(crate) fn table(&self) -> Option<String> {
        let table = self.custom?;
        Some(format!(
            "[formats.{}]\nsummary = \"of the torture\"\nrule = \"sequenced\"\nepoch = \"2020-01-01T00:00:00.003Z\"\n\
             encodings = [\"decimal\"]\n{table}\n",
            self.name
        ))
    }
}
