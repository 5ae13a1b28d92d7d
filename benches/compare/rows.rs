//! What is compared: the servers, and what each is asked.

use std::net::SocketAddr;

use crate::ask::ask;
use crate::load::{Order, Pace};
use crate::places::Places;
use crate::rivals::Target;
use crate::rivals::bare::{Bare, Kind};
use crate::rivals::idmint::Idmint;
use crate::rivals::nginx::Nginx;
use crate::rivals::postgresql::Postgresql;
use crate::rivals::redis::Redis;
use crate::row::Row;

const ONE_ID: &str = "POST /ids/snowflake";
const PACKED: &str = "accept: application/octet-stream\r\n";
const PIPELINED: Pace = Pace::Closed { depth: 16 };
const FIXED: Pace = Pace::Open { per_second: 10_000 };

/// What many ids are decoded of: so many of each format.
const MIXED: [&str; 5] = ["snowflake?", "payment?", "siq?type=message&", "flax?", "uuid7?"];
const IDS_OF_EACH: u32 = 2_000;

/// What large batches are minted of: `snowflake`, but for the 4096 ids that one worker number has in a millisecond, which
/// would bound the rows instead of the server.
pub(crate) const WIDE: &str = "snowflake-22";
const WIDE_CONFIG: &str = r#"
    [formats.snowflake-22]
    like = "snowflake"
    fields = [{ name = "time", kind = "time", bits = 42 }, { name = "sequence", kind = "sequence", bits = 22 }]
"#;

/// Every server, for as long as rows are measured.
pub(crate) struct Servers {
    /// As it comes.
    pub(crate) idmint: Idmint,
    /// With [`WIDE`].
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
    /// Starts `idmint` first: constant answers are as long as its own.
    ///
    /// # Errors
    /// When `idmint` does not run. What else does not is for its rows to say.
    pub(crate) fn start(places: &Places) -> Result<Self, String> {
        let idmint = Idmint::start(places, "")?;
        let wide = Idmint::start(places, WIDE_CONFIG)?;
        crate::starts::until_minting(idmint.address())?;
        crate::starts::until_minting(wide.address())?;
        let body_len = |format, count| Ok::<_, String>(ask(wide.address(), &batch(format, count), "")?.len());
        let [one, thousand, ten_thousand] =
            [body_len("snowflake", 1)?, body_len(WIDE, 1_000)?, body_len(WIDE, 10_000)?];
        Ok(Self {
            hyper: Bare::start(places, Kind::Hyper, one),
            hyper_flush: Bare::start(places, Kind::HyperFlush, one),
            hyper_1000: Bare::start(places, Kind::Hyper, thousand),
            hyper_10000: Bare::start(places, Kind::Hyper, ten_thousand),
            axum: Bare::start(places, Kind::Axum, one),
            nginx: Nginx::start(places, one),
            redis: Redis::start(places),
            postgresql: Postgresql::start(places),
            idmint,
            wide,
        })
    }

    /// Everything that claims are made of, and what is shown beside it.
    ///
    /// # Errors
    /// When `idmint` mints nothing that could be decoded.
    pub(crate) fn rows(&self) -> Result<Vec<Row>, String> {
        let (idmint, wide) = (Ok(self.idmint.target()), Ok(self.wide.target()));
        let bare = |bare: &Result<Bare, String>| bare.as_ref().map(Bare::target).map_err(Clone::clone);
        let one = || Order::of(ONE_ID, "", "");
        let large = |count, accept| Order::of(&batch(WIDE, count), accept, "");
        let http = |key, server, asked, target: &Result<Target, String>, order, ids| {
            Row::over_http(key, server, asked, target.clone(), order, ids)
        };
        let (axum, hyper, flush) = (&bare(&self.axum), &bare(&self.hyper), &bare(&self.hyper_flush));
        let nginx = self.nginx.as_ref().map(|nginx| nginx.target).map_err(Clone::clone);
        let constant = "constant answer";
        let pipelined = "constant answer, pipelined 16 deep";
        let at_rate = "constant answer, at 10 000 requests/s";
        let mut rows = vec![
            http("one", "idmint", "one id", &idmint, one(), 1),
            http("axum", "axum::serve", constant, axum, one(), 0),
            http("hyper", "hyper", constant, hyper, one(), 0),
            http("nginx", "nginx", constant, &nginx, one(), 0),
            http("one-pipelined", "idmint", "one id, pipelined 16 deep", &idmint, one().pace(PIPELINED), 1),
            http("axum-pipelined", "axum::serve", pipelined, axum, one().pace(PIPELINED), 0),
            http("hyper-pipelined", "hyper", pipelined, hyper, one().pace(PIPELINED), 0),
            http("flush-pipelined", "hyper, pipeline_flush", pipelined, flush, one().pace(PIPELINED), 0),
            http("json-1000", "idmint", "1 000 ids as JSON", &wide, large(1_000, ""), 1_000),
            http("hyper-1000", "hyper", "constant answer of that length", &bare(&self.hyper_1000), one(), 0),
            http("json-10000", "idmint", "10 000 ids as JSON", &wide, large(10_000, ""), 10_000),
            http("hyper-10000", "hyper", "constant answer of that length", &bare(&self.hyper_10000), one(), 0),
            http("packed-10000", "idmint", "10 000 ids as bytes", &wide, large(10_000, PACKED), 10_000),
        ];
        rows.extend(self.counters());
        let built_in = |format| Order::of(&batch(format, 1_000), "", "");
        let lane = built_in("conjunction-v1");
        rows.push(http("lane", "idmint", "1 000 ids of conjunction-v1, one lane", &idmint, lane, 1_000));
        let lanes = built_in("snowflake");
        rows.push(http("lanes", "idmint", "1 000 ids of snowflake, default lanes", &idmint, lanes, 1_000));
        rows.push(http("one-fixed", "idmint", "one id, at 10 000 requests/s", &idmint, one().pace(FIXED), 1));
        rows.push(http("axum-fixed", "axum::serve", at_rate, axum, one().pace(FIXED), 0));
        rows.extend(self.decoding()?);
        Ok(rows)
    }

    /// What other servers hand out numbers with.
    fn counters(&self) -> Vec<Row> {
        let redis = |key, asked, words, depth, ids| {
            let measure = self.redis.as_ref().map(|redis| redis.measuring(words, depth, ids)).map_err(Clone::clone);
            Row::new(key, "Redis", asked, measure)
        };
        let (one, thousand) = (&["INCR", "ids"], &["INCRBY", "ids", "1000"]);
        let nextval = self.postgresql.as_ref().map(Postgresql::measuring).map_err(Clone::clone);
        vec![
            redis("incr", "INCR", one, 1, 1),
            redis("incrby", "INCRBY 1000", thousand, 1, 1_000),
            redis("incr-pipelined", "INCR, pipelined 16 deep", one, 16, 1),
            redis("incrby-pipelined", "INCRBY 1000, pipelined 16 deep", thousand, 16, 1_000),
            Row::new("nextval", "PostgreSQL", "select nextval", nextval),
        ]
    }

    fn decoding(&self) -> Result<Vec<Row>, String> {
        let address = self.idmint.address();
        let one_of = |format| Ok::<_, String>(minted(address, &format!("{format}?"), 1)?.concat());
        let one = |key, asked, id| {
            let order = Order::of(&format!("GET /decode/{id}"), "", "");
            Row::over_http(key, "idmint", asked, Ok(self.idmint.target()), order, 1)
        };
        let mut mixed = Vec::new();
        for format in MIXED {
            mixed.extend(minted(address, format, IDS_OF_EACH)?);
        }
        let body = mixed.join("\n");
        let headers =
            format!("content-type: text/plain\r\naccept: application/x-ndjson\r\ncontent-length: {}\r\n", body.len());
        let order = Order::of("POST /decode", &headers, &body);
        let ids = u32::try_from(mixed.len()).expect("as many as were asked for");
        Ok(vec![
            one("decode-decimal", "decoding a decimal snowflake", one_of("snowflake")?),
            one("decode-flax", "decoding a Flax ID", one_of("flax")?),
            Row::over_http(
                "decode-many",
                "idmint",
                "decoding 10 000 ids of five formats",
                Ok(self.idmint.target()),
                order,
                ids,
            ),
        ])
    }
}

pub(crate) fn batch(format: &str, count: u32) -> String {
    format!("POST /ids/{format}?count={count}")
}

/// Ids as texts; `format` ends where `count=` can follow.
fn minted(address: SocketAddr, format: &str, count: u32) -> Result<Vec<String>, String> {
    let text = ask(address, &format!("POST /ids/{format}count={count}"), "accept: text/plain\r\n")?;
    Ok(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
}
