//! Reads the metrics of the service after an attack.

use std::fmt;

use super::door::Door;

/// The text of `/metrics`, read at one moment.
pub(crate) struct Metrics(String);

impl Metrics {
    /// Reads the metrics as soon as the service responds to a new connection.
    pub(crate) fn of(door: &Door) -> Metrics {
        Metrics(door.get("/metrics"))
    }

    /// Returns the sum of all series with the name `name` that have the value `label` in one of
    /// their labels.
    pub(crate) fn sum(&self, name: &str, label: &str) -> u64 {
        let label = format!("=\"{label}\"");
        let series = self
            .0
            .lines()
            .filter(|line| line.starts_with(name) && line.contains(&label));
        series.map(value_of).sum()
    }

    fn one(&self, name: &str) -> u64 {
        value_of(
            self.0
                .lines()
                .find(|line| line.starts_with(name))
                .expect("there from the first scrape"),
        )
    }
}

fn value_of(line: &str) -> u64 {
    line.rsplit(' ')
        .next()
        .and_then(|value| value.parse().ok())
        .unwrap_or_else(|| panic!("no count in {line}"))
}

/// The number of requests and connections that the service rejected, for each reason, and the
/// number of log lines that it dropped.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Shed {
    pub(crate) memory: u64,
    pub(crate) bulk: u64,
    pub(crate) in_flight: u64,
    pub(crate) bodies: u64,
    pub(crate) connections: u64,
    pub(crate) frames: u64,
    pub(crate) handshakes: u64,
    pub(crate) lines: u64,
}

impl Shed {
    pub(crate) fn read(metrics: &Metrics) -> Shed {
        let of = |reason| metrics.sum("idmint_requests_shed_total", reason);
        Shed {
            memory: of("memory"),
            bulk: of("bulk"),
            in_flight: of("in_flight"),
            bodies: of("bodies"),
            connections: of("connections"),
            frames: of("frames"),
            handshakes: of("handshake"),
            lines: metrics.one("idmint_log_lines_dropped_total"),
        }
    }
}

impl fmt::Display for Shed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shed {
            memory,
            bulk,
            in_flight,
            bodies,
            connections,
            frames,
            handshakes,
            lines,
        } = *self;
        let counts = [
            ("memory", memory),
            ("bulk", bulk),
            ("in_flight", in_flight),
            ("bodies", bodies),
            ("connections", connections),
            ("frames", frames),
            ("handshakes", handshakes),
            ("log lines", lines),
        ];
        let told = counts
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(what, count)| format!("{what} {count}"));
        let told: Vec<_> = told.collect();
        f.write_str(if told.is_empty() { "none" } else { "" })?;
        f.write_str(&told.join(", "))
    }
}
