//! The formats that the callers mint: all built-in sequenced formats except `payment-wide`, and
//! seven custom formats with other shapes.

use idmint_testing::http1::request;

/// A format, with its properties as the author of the test states them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tortured {
    pub(crate) name: &'static str,
    /// The query parameters of a request that precede the count.
    pub(crate) query: &'static str,
    /// The difference between two consecutive ids with the same tick and worker number.
    pub(crate) step: u128,
    /// `true` if the ids of a batch increase from the first one to the last one.
    pub(crate) increases: bool,
    /// The maximum count of one request. A larger count would only use up all ids of the second or
    /// the hour.
    pub(crate) count_max: u32,
    /// `true` if the ticks are so long that a life of the node may end within the tick in which it
    /// began.
    pub(crate) has_long_ticks: bool,
    /// The table that defines the format, or `None` if the format is built in. From the second life
    /// on, some lives have such a format.
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

/// The maximum count for a format that has few ids per second.
const FEW: u32 = 200;

/// The maximum count for a format with long ticks. A request with this count uses up a few seconds
/// of each lane (worker number). Reserved time then gets ahead of the clock, but not by hours.
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
    // This custom format has the layout of `payment-wide`. The built-in format itself is not used,
    // because a new data directory does not mint it together with `payment`.
    Tortured {
        count_max: FEW,
        ..custom(
            "wide",
            r#"tick = "1s"
            fields = [
                { name = "time", kind = "time", digits = 6, radix = 36, stride = 46656 },
                { name = "worker", kind = "worker", cardinality = 45 },
                { name = "sequence", kind = "sequence", cardinality = 1024 },
            ]"#,
            1,
        )
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
    // In this format, the time comes after the worker number.
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
    // In this format, the sequence comes before the time, so the ids of one tick are far apart.
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
    // This format has ticks of a third of a second, and gaps between the values of all fields.
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
    /// Returns the request for `count` ids as bytes.
    pub(crate) fn request(&self, count: u32) -> String {
        let order = format!("POST /ids/{}?{}count={count}", self.name, self.query);
        request(&order, "accept: application/octet-stream\r\n", "")
    }

    /// Returns the table that defines the format in a configuration file. Returns `None` if the
    /// format is built in.
    pub(crate) fn table(&self) -> Option<String> {
        let table = self.custom?;
        Some(format!(
            "[formats.{}]\nsummary = \"of the torture\"\nrule = \"sequenced\"\nepoch = \"2020-01-01T00:00:00.003Z\"\n\
             encodings = [\"decimal\"]\n{table}\n",
            self.name
        ))
    }
}
