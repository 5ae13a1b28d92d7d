//! The banner that is printed at the start: the address, the formats, and an example request to
//! paste into a terminal.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use crate::server::config::{AssignmentKind, Config, Engine};
use idmint_core::id::Format;
use idmint_core::minting::Lanes;
use idmint_service::{Conjunctions, IdSource, ServedFormat, Service};

/// Returns the banner for a service that listens on `listen`.
pub fn banner(config: &Config, service: &Service, listen: SocketAddr) -> String {
    let state = match config.storage.engine {
        Engine::Memory => {
            "memory only: a restart may repeat ids (storage.engine = memory)".to_owned()
        }
        Engine::Embedded => config.storage.data_dir.display().to_string(),
        Engine::Etcd => format!("etcd, namespace {}", config.etcd.namespace),
    };
    let (assignment, scheme) = (config.worker.assignment(), config.http.scheme());
    let slot = match assignment.kind {
        AssignmentKind::Leased => format!(
            "any free worker slot of {}, leased from etcd",
            config.slot_share()
        ),
        AssignmentKind::Alone | AssignmentKind::Configured | AssignmentKind::Ordinal => {
            format!("worker slot {} of {}", assignment.slot, assignment.slots)
        }
    };
    let mut text = format!(
        "idmint {} listens on {scheme}://{listen}\n{slot}, data in {state}\n\
         at most {} connections\n\n{}",
        env!("CARGO_PKG_VERSION"),
        config.http.connections_max(),
        formats_table(service)
    );
    let _ = write!(
        text,
        "\ntry: curl -X POST {scheme}://{}/ids/snowflake\n",
        reachable(listen)
    );
    text
}

/// Returns a table with a heading and a row for each minted format. The row has the worker numbers,
/// the maximum number of ids per second, and the UTC date of the instant from which no id can be
/// minted. Words such as `never` replace a value that does not exist or is not known yet. If there
/// are decode-only formats, a final line lists them.
pub fn formats_table(service: &Service) -> String {
    let mut text = format!(
        "{:<16} {:<22} {:>14}  {}\n",
        "format", "workers", "ids/s", "ends"
    );
    let is_minted = |served: &&Arc<ServedFormat>| served.format().is_minted();
    for served in service.formats().iter().filter(is_minted) {
        let format = served.format();
        let most_lanes = served.minter().and_then(|minter| minter.most_lanes());
        let workers = match (most_lanes, served.workers()) {
            (None, _) => "none needed".to_owned(),
            (Some(_), numbers) if numbers.is_empty() => "those of its slot".to_owned(),
            (Some(_), numbers) => workers_text(&numbers),
        };
        let is_stored = match served.source() {
            IdSource::Events => true,
            IdSource::Reports(_) => service.conjunctions() != Conjunctions::Pure,
            IdSource::Count(_) | IdSource::DecodeOnly => false,
        };
        let rate = match most_lanes {
            Some(lanes) => ids_per_second(format, lanes).to_string(),
            None if is_stored => "disk-bound".to_owned(),
            None => "unlimited".to_owned(),
        };
        let end = format.end().map_or("never".to_owned(), |end| {
            end.to_text(0).unwrap_or_else(|| "after 9999".to_owned())
        });
        let end = end.split('T').next().unwrap_or_default();
        let _ = writeln!(text, "{:<16} {workers:<22} {rate:>14}  {end}", format.name);
    }
    let read_only = service.formats().iter().filter(|served| !is_minted(served));
    let names: Vec<_> = read_only
        .map(|served| served.format().name.as_str())
        .collect();
    if !names.is_empty() {
        let _ = writeln!(text, "decode only      {}", names.join(" "));
    }
    text
}

/// Writes ascending numbers as text, and joins consecutive numbers to ranges. Examples: `0-31`, or
/// `0 32 64`.
fn workers_text(numbers: &[u32]) -> String {
    let rows = numbers.chunk_by(|before, after| before.checked_add(1) == Some(*after));
    let texts: Vec<_> = rows
        .map(|row| match row {
            [first, .., last] => format!("{first}-{last}"),
            lone => lone.iter().map(u32::to_string).collect(),
        })
        .collect();
    texts.join(" ")
}

/// Returns the number of ids per second that the node can mint with all its worker numbers
/// (`lanes`) together. If the format has several types, the result is for the first type.
fn ids_per_second(format: &Format, lanes: &Lanes) -> u128 {
    let per_worker = format
        .per_second(&format.variants[0].layout)
        .expect("a sequenced format counts in ticks");
    per_worker * u128::try_from(lanes.workers().len()).expect("lanes are few")
}

/// Returns the address with which clients on the same machine reach a service that listens on
/// `listen`. Replaces an unspecified address, such as 0.0.0.0, by the loopback address.
pub fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

#[cfg(test)]
mod tests {
    use super::workers_text;

    #[test]
    fn worker_numbers_in_a_row_are_one_text() {
        let all: Vec<u32> = (0..32).collect();
        for (numbers, text) in [
            (&all[..], "0-31"),
            (&[], ""),
            (&[7], "7"),
            (&[1, 2], "1-2"),
            (&[0, 32, 64], "0 32 64"),
            (&[0, 1, 4, 6, 7, 8], "0-1 4 6-8"),
            (&[u32::MAX - 1, u32::MAX], "4294967294-4294967295"),
        ] {
            assert_eq!(workers_text(numbers), text, "{numbers:?}");
        }
    }
}
