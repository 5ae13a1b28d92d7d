//! How figures grow: with the size of a batch, with connections, with lanes, and what each format gives.

use serde_json::Value;

use crate::ask::ask;
use crate::load::Order;
use crate::places::Places;
use crate::rivals::Target;
use crate::rivals::idmint::Idmint;
use crate::row::{Row, measure_all};
use crate::rows::{Servers, WIDE, batch};
use crate::settings::Settings;
use crate::starts::until_minting;

/// One table of rows.
pub(crate) struct Growth {
    pub(crate) title: &'static str,
    pub(crate) rows: Vec<Row>,
}

/// Measures all of it.
///
/// # Errors
/// When `idmint` does not run as it is told to.
pub(crate) fn measured(places: &Places, servers: &Servers, settings: &Settings) -> Result<Vec<Growth>, String> {
    let wide = servers.wide.target();
    let mut tables = vec![
        Growth { title: "By batch size (snowflake-22, JSON, 16 connections)", rows: by_batch_size(wide) },
        Growth { title: "By connections (snowflake-22, JSON)", rows: by_connections(wide) },
        Growth { title: "By format (default lanes, JSON, 16 connections)", rows: by_format(servers.idmint.target())? },
    ];
    for table in &mut tables {
        measure_all(table.title, &mut table.rows, settings.growth_rounds, settings.time);
    }
    let with_lanes = LANES.map(|lanes| Idmint::start(places, &format!("worker.lanes = {lanes}")));
    let mut rows = Vec::new();
    for connections in [16, 256] {
        for (lanes, idmint) in LANES.iter().zip(&with_lanes) {
            let idmint = idmint.as_ref().map_err(Clone::clone)?;
            until_minting(idmint.address())?;
            let order = Order::of(&batch("snowflake", 1_000), "", "").connections(connections);
            rows.push(row(
                &format!("{lanes} lanes, {connections} connections, count=1000"),
                idmint.target(),
                order,
                1_000,
            ));
        }
    }
    let title = "By lanes (snowflake, JSON; one lane gives 4 096 000 ids/s)";
    measure_all(title, &mut rows, settings.growth_rounds, settings.time);
    tables.push(Growth { title, rows });
    Ok(tables)
}

const LANES: [u32; 5] = [1, 2, 4, 8, 16];

fn row(asked: &str, target: Target, order: Order, ids: u32) -> Row {
    Row::over_http(asked, "idmint", asked, Ok(target), order, ids)
}

fn by_batch_size(target: Target) -> Vec<Row> {
    let sizes = [1, 10, 100, 1_000, 10_000, 100_000];
    sizes.map(|count| row(&format!("count={count}"), target, Order::of(&batch(WIDE, count), "", ""), count)).into()
}

fn by_connections(target: Target) -> Vec<Row> {
    let numbers = [1, 4, 16, 64, 256];
    let rows = [1, 1_000].map(|count| {
        numbers.map(|connections| {
            let order = Order::of(&batch(WIDE, count), "", "").connections(connections);
            row(&format!("{connections} connections, count={count}"), target, order, count)
        })
    });
    rows.into_iter().flatten().collect()
}

/// Every format that needs nothing but a number of ids.
fn by_format(target: Target) -> Result<Vec<Row>, String> {
    let listed: Value = serde_json::from_slice(&ask(target.address, "GET /formats", "")?).map_err(|e| e.to_string())?;
    let formats = listed["formats"].as_array().ok_or("GET /formats lists none")?;
    let is_plain =
        |format: &&Value| format["minted"] == true && (format["rule"] == "sequenced" || format["rule"] == "random");
    let rows = formats.iter().filter(is_plain).flat_map(|format| {
        let name = format["name"].as_str().unwrap_or_default();
        let of_type = if format["types"]["message"].is_null() { "" } else { "&type=message" };
        [1, 1_000].map(|count| {
            let order = Order::of(&format!("POST /ids/{name}?count={count}{of_type}"), "", "");
            row(&format!("{name}, count={count}"), target, order, count)
        })
    });
    Ok(rows.collect())
}
