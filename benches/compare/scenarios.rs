//! The servers that are compared, and the requests to each of them.

use std::net::SocketAddr;

use crate::cpu_pinning::CpuPinning;
use crate::fetch::{batch, fetch};
use crate::load::{LoadModel, Workload};
use crate::rivals::Target;
use crate::rivals::bare::{Bare, Kind};
use crate::rivals::idmint::Idmint;
use crate::rivals::nginx::Nginx;
use crate::rivals::postgresql::Postgresql;
use crate::rivals::redis::Redis;
use crate::scenario::Scenario;
use crate::startup::wait_until_minting;

const ONE_ID: &str = "POST /ids/snowflake";
const PACKED: &str = "accept: application/octet-stream\r\n";
const ROWS: &str = "accept: application/vnd.idmint.rows+json\r\n";
const PIPELINED: LoadModel = LoadModel::Closed { depth: 16 };
const FIXED: LoadModel = LoadModel::Open { per_second: 10_000 };
/// A load of about half of the single ids that one core can mint per second.
const HALF: LoadModel = LoadModel::Open { per_second: 35_000 };

/// The formats in a large decode request. The request has equally many ids of each.
const MIXED: [&str; 5] = [
    "snowflake?",
    "payment?",
    "siq?type=message&",
    "flax?",
    "uuid7?",
];
const IDS_OF_EACH: u32 = 2_000;

/// The format of large batches, which is `snowflake` with a wider sequence. With `snowflake`
/// itself, the format would limit the scenarios instead of the server, because one worker number
/// has only 4096 ids in a millisecond.
pub(crate) const WIDE: &str = "snowflake-22";
const WIDE_CONFIG: &str = r#"
    [formats.snowflake-22]
    like = "snowflake"
    fields = [{ name = "time", kind = "time", bits = 42 }, { name = "sequence", kind = "sequence", bits = 22 }]
"#;

/// The running servers of all scenarios.
pub(crate) struct Servers {
    /// idmint with its default configuration.
    pub(crate) idmint: Idmint,
    /// idmint with the format [`WIDE`].
    pub(crate) wide: Idmint,
    hyper: Result<Bare, String>,
    hyper_flush: Result<Bare, String>,
    hyper_1000: Result<Bare, String>,
    hyper_10000: Result<Bare, String>,
    axum: Result<Bare, String>,
    nginx: Result<Nginx, String>,
    redis: Result<Redis, String>,
    postgresql: Result<Postgresql, String>,
}

impl Servers {
    /// Starts the servers. `idmint` is started first, because its responses determine the length of
    /// the constant responses of the other servers.
    ///
    /// # Errors
    /// Returns an error if `idmint` does not run. If another server does not run, its scenario
    /// reports the failure.
    pub(crate) fn start(pinning: &CpuPinning) -> Result<Self, String> {
        let idmint = Idmint::start(pinning, "")?;
        let wide = Idmint::start(pinning, WIDE_CONFIG)?;
        wait_until_minting(idmint.address())?;
        wait_until_minting(wide.address())?;
        let body_len = |format, count| {
            Ok::<_, String>(fetch(wide.address(), &batch(format, count), "")?.len())
        };
        let [one, thousand, ten_thousand] = [
            body_len("snowflake", 1)?,
            body_len(WIDE, 1_000)?,
            body_len(WIDE, 10_000)?,
        ];
        Ok(Self {
            hyper: Bare::start(pinning, Kind::Hyper, one),
            hyper_flush: Bare::start(pinning, Kind::HyperFlush, one),
            hyper_1000: Bare::start(pinning, Kind::Hyper, thousand),
            hyper_10000: Bare::start(pinning, Kind::Hyper, ten_thousand),
            axum: Bare::start(pinning, Kind::Axum, one),
            nginx: Nginx::start(pinning, one),
            redis: Redis::start(pinning),
            postgresql: Postgresql::start(pinning),
            idmint,
            wide,
        })
    }

    /// Returns the scenarios that the goals need, and more scenarios for comparison.
    ///
    /// # Errors
    /// Returns an error if `idmint` mints no ids for the decode scenarios.
    pub(crate) fn scenarios(&self) -> Result<Vec<Scenario>, String> {
        let (idmint, wide) = (Ok(self.idmint.target()), Ok(self.wide.target()));
        let bare =
            |bare: &Result<Bare, String>| bare.as_ref().map(Bare::target).map_err(Clone::clone);
        let one = || Workload::of(ONE_ID, "", "");
        let large = |count, accept| Workload::of(&batch(WIDE, count), accept, "");
        let http = |key, server, asked, target: &Result<Target, String>, workload, ids| {
            Scenario::over_http(key, server, asked, target.clone(), workload, ids)
        };
        let (axum, hyper, flush) = (
            &bare(&self.axum),
            &bare(&self.hyper),
            &bare(&self.hyper_flush),
        );
        let nginx = self
            .nginx
            .as_ref()
            .map(|nginx| nginx.target)
            .map_err(Clone::clone);
        let constant = "constant answer";
        let pipelined = "constant answer, pipelined 16 deep";
        let at_rate = "constant answer, at 10 000 requests/s";
        let mut scenarios = vec![
            http("one", "idmint", "one id", &idmint, one(), 1),
            http("axum", "axum::serve", constant, axum, one(), 0),
            http("hyper", "hyper", constant, hyper, one(), 0),
            http("nginx", "nginx", constant, &nginx, one(), 0),
            http(
                "one-pipelined",
                "idmint",
                "one id, pipelined 16 deep",
                &idmint,
                one().load_model(PIPELINED),
                1,
            ),
            http(
                "axum-pipelined",
                "axum::serve",
                pipelined,
                axum,
                one().load_model(PIPELINED),
                0,
            ),
            http(
                "hyper-pipelined",
                "hyper",
                pipelined,
                hyper,
                one().load_model(PIPELINED),
                0,
            ),
            http(
                "flush-pipelined",
                "hyper, pipeline_flush",
                pipelined,
                flush,
                one().load_model(PIPELINED),
                0,
            ),
            http(
                "json-1000",
                "idmint",
                "1 000 ids as JSON",
                &wide,
                large(1_000, ""),
                1_000,
            ),
            http(
                "hyper-1000",
                "hyper",
                "constant answer of that length",
                &bare(&self.hyper_1000),
                one(),
                0,
            ),
            http(
                "json-10000",
                "idmint",
                "10 000 ids as JSON",
                &wide,
                large(10_000, ""),
                10_000,
            ),
            http(
                "hyper-10000",
                "hyper",
                "constant answer of that length",
                &bare(&self.hyper_10000),
                one(),
                0,
            ),
            http(
                "packed-10000",
                "idmint",
                "10 000 ids as bytes",
                &wide,
                large(10_000, PACKED),
                10_000,
            ),
            http(
                "rows-pipelined",
                "idmint",
                "1 000 ids as rows, pipelined 16 deep",
                &wide,
                large(1_000, ROWS).load_model(PIPELINED),
                1_000,
            ),
        ];
        scenarios.extend(self.counter_scenarios());
        let built_in = |format| Workload::of(&batch(format, 1_000), "", "");
        let lane = built_in("conjunction-v1");
        scenarios.push(http(
            "lane",
            "idmint",
            "1 000 ids of conjunction-v1, one lane",
            &idmint,
            lane,
            1_000,
        ));
        let lanes = built_in("snowflake");
        scenarios.push(http(
            "lanes",
            "idmint",
            "1 000 ids of snowflake, default lanes",
            &idmint,
            lanes,
            1_000,
        ));
        scenarios.push(http(
            "one-fixed",
            "idmint",
            "one id, at 10 000 requests/s",
            &idmint,
            one().load_model(FIXED),
            1,
        ));
        let half = || one().connections(64).load_model(HALF).beside_readers();
        let (asked, at_half) = (
            "one id, at 35 000 requests/s, read beside",
            "constant answer, at 35 000 requests/s, read beside",
        );
        scenarios.push(http("one-half", "idmint", asked, &idmint, half(), 1));
        scenarios.push(http("axum-half", "axum::serve", at_half, axum, half(), 0));
        scenarios.push(http(
            "axum-fixed",
            "axum::serve",
            at_rate,
            axum,
            one().load_model(FIXED),
            0,
        ));
        scenarios.extend(self.decode_scenarios()?);
        Ok(scenarios)
    }

    /// Returns the scenarios that count in other servers, such as a PostgreSQL sequence.
    fn counter_scenarios(&self) -> Vec<Scenario> {
        let redis = |key, asked, words, depth, ids| {
            let benchmark = self
                .redis
                .as_ref()
                .map(|redis| redis.benchmark(words, depth, ids))
                .map_err(Clone::clone);
            Scenario::new(key, "Redis", asked, benchmark)
        };
        let (one, thousand) = (&["INCR", "ids"], &["INCRBY", "ids", "1000"]);
        let nextval = self
            .postgresql
            .as_ref()
            .map(Postgresql::benchmark)
            .map_err(Clone::clone);
        vec![
            redis("incr", "INCR", one, 1, 1),
            redis("incrby", "INCRBY 1000", thousand, 1, 1_000),
            redis("incr-pipelined", "INCR, pipelined 16 deep", one, 16, 1),
            redis(
                "incrby-pipelined",
                "INCRBY 1000, pipelined 16 deep",
                thousand,
                16,
                1_000,
            ),
            Scenario::new("nextval", "PostgreSQL", "select nextval", nextval),
        ]
    }

    fn decode_scenarios(&self) -> Result<Vec<Scenario>, String> {
        let address = self.idmint.address();
        let one_of = |format| Ok::<_, String>(mint(address, &format!("{format}?"), 1)?.concat());
        let one = |key, asked, id| {
            let workload = Workload::of(&format!("GET /decode/{id}"), "", "");
            Scenario::over_http(key, "idmint", asked, Ok(self.idmint.target()), workload, 1)
        };
        let mut mixed = Vec::new();
        for format in MIXED {
            mixed.extend(mint(address, format, IDS_OF_EACH)?);
        }
        let body = mixed.join("\n");
        let headers = "content-type: text/plain\r\naccept: application/x-ndjson\r\n";
        // Use one connection, because a node handles only one long request at a time for each core.
        let workload = Workload::of("POST /decode", headers, &body).connections(1);
        let ids = u32::try_from(mixed.len()).expect("as many as were asked for");
        Ok(vec![
            one(
                "decode-decimal",
                "decoding a decimal snowflake",
                one_of("snowflake")?,
            ),
            one("decode-flax", "decoding a Flax ID", one_of("flax")?),
            Scenario::over_http(
                "decode-many",
                "idmint",
                "decoding 10 000 ids of five formats",
                Ok(self.idmint.target()),
                workload,
                ids,
            ),
        ])
    }
}

/// Mints ids and returns their texts. `format` is the name of a format with the part of the query
/// before `count=`.
fn mint(address: SocketAddr, format: &str, count: u32) -> Result<Vec<String>, String> {
    let text = fetch(
        address,
        &format!("POST /ids/{format}count={count}"),
        "accept: text/plain\r\n",
    )?;
    Ok(String::from_utf8_lossy(&text)
        .lines()
        .map(str::to_owned)
        .collect())
}
