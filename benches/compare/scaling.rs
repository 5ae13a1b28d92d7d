//! Measures how the figures depend on the size of batches, the number of connections, the number of
//! lanes (worker numbers), and the format.

use serde_json::Value;

use crate::cpu_pinning::CpuPinning;
use crate::fetch::{batch, fetch};
use crate::load::Workload;
use crate::rivals::Target;
use crate::rivals::idmint::Idmint;
use crate::scenario::{Scenario, measure_all};
use crate::scenarios::{Servers, WIDE};
use crate::settings::Settings;
use crate::startup::wait_until_minting;

/// A table of scenarios that differ in one parameter.
pub(crate) struct ScalingTable {
    pub(crate) title: &'static str,
    pub(crate) scenarios: Vec<Scenario>,
}

/// Measures all scaling tables.
///
/// # Errors
/// Returns an error if `idmint` does not run with the settings of a scenario.
pub(crate) fn measure(
    pinning: &CpuPinning,
    servers: &Servers,
    settings: &Settings,
) -> Result<Vec<ScalingTable>, String> {
    let wide = servers.wide.target();
    let mut tables = vec![
        ScalingTable {
            title: "By batch size (snowflake-22, JSON, 16 connections)",
            scenarios: by_batch_size(wide),
        },
        ScalingTable {
            title: "By connections (snowflake-22, JSON)",
            scenarios: by_connections(wide),
        },
        ScalingTable {
            title: "By format (default lanes, JSON, 16 connections)",
            scenarios: by_format(servers.idmint.target())?,
        },
    ];
    for table in &mut tables {
        measure_all(
            table.title,
            &mut table.scenarios,
            settings.scaling_rounds,
            settings.time,
        );
    }
    let with_lanes = LANES.map(|lanes| Idmint::start(pinning, &format!("worker.lanes = {lanes}")));
    let mut scenarios = Vec::new();
    for connections in [16, 256] {
        for (lanes, idmint) in LANES.iter().zip(&with_lanes) {
            let idmint = idmint.as_ref().map_err(Clone::clone)?;
            wait_until_minting(idmint.address())?;
            let workload =
                Workload::of(&batch("snowflake", 1_000), "", "").connections(connections);
            scenarios.push(scenario(
                &format!("{lanes} lanes, {connections} connections, count=1000"),
                idmint.target(),
                workload,
                1_000,
            ));
        }
    }
    let title = "By lanes (snowflake, JSON; one lane gives 4 096 000 ids/s)";
    measure_all(
        title,
        &mut scenarios,
        settings.scaling_rounds,
        settings.time,
    );
    tables.push(ScalingTable { title, scenarios });
    Ok(tables)
}

const LANES: [u32; 5] = [1, 2, 4, 8, 16];

fn scenario(asked: &str, target: Target, workload: Workload, ids: u32) -> Scenario {
    Scenario::over_http(asked, "idmint", asked, Ok(target), workload, ids)
}

fn by_batch_size(target: Target) -> Vec<Scenario> {
    let sizes = [1, 10, 100, 1_000, 10_000, 100_000];
    sizes
        .map(|count| {
            scenario(
                &format!("count={count}"),
                target,
                Workload::of(&batch(WIDE, count), "", ""),
                count,
            )
        })
        .into()
}

fn by_connections(target: Target) -> Vec<Scenario> {
    let numbers = [1, 4, 16, 64, 256];
    let scenarios = [1, 1_000].map(|count| {
        numbers.map(|connections| {
            let workload = Workload::of(&batch(WIDE, count), "", "").connections(connections);
            scenario(
                &format!("{connections} connections, count={count}"),
                target,
                workload,
                count,
            )
        })
    });
    scenarios.into_iter().flatten().collect()
}

/// Returns a scenario for every format that needs no parameter other than a count.
fn by_format(target: Target) -> Result<Vec<Scenario>, String> {
    let listed: Value = serde_json::from_slice(&fetch(target.address, "GET /formats", "")?)
        .map_err(|e| e.to_string())?;
    let formats = listed["formats"]
        .as_array()
        .ok_or("GET /formats lists none")?;
    let is_plain = |format: &&Value| {
        format["minted"] == true && (format["rule"] == "sequenced" || format["rule"] == "random")
    };
    let scenarios = formats.iter().filter(is_plain).flat_map(|format| {
        let name = format["name"].as_str().unwrap_or_default();
        let of_type = if format["types"]["message"].is_null() {
            ""
        } else {
            "&type=message"
        };
        [1, 1_000].map(|count| {
            let workload =
                Workload::of(&format!("POST /ids/{name}?count={count}{of_type}"), "", "");
            scenario(&format!("{name}, count={count}"), target, workload, count)
        })
    });
    Ok(scenarios.collect())
}
