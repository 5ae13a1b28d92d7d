//! Writes the table `results.md`.

use std::fmt::Write;

use super::Results;
use super::number::{middle, number, spread};
use crate::goals::Verdict;
use crate::scenario::{Round, Scenario};

pub(super) fn render(results: &Results<'_>) -> String {
    let mut text = String::from("# idmint beside other ways to get ids\n\n");
    text.push_str(
        "Measured by `make compare`. Every figure of every round is in `results.json`.\n\n",
    );
    for (name, fact) in &results.machine.0 {
        line(&mut text, format_args!("- {name}: {fact}"));
    }
    line(
        &mut text,
        format_args!("- Placement: {}", results.pinning.description()),
    );
    let (rounds, time) = (results.settings.rounds, results.settings.time.as_secs_f64());
    line(
        &mut text,
        format_args!(
            "- {rounds} rounds of {time} s for each scenario, after one that does not count; medians"
        ),
    );
    line(
        &mut text,
        format_args!("- Took {} s in all", results.passed.as_secs()),
    );
    line(
        &mut text,
        format_args!("- {}\n", describe_other_work(&results.scenarios)),
    );
    text.push_str("![Ids a second, on a logarithmic scale](chart.svg)\n\n## What was wanted\n\n");
    text.push_str(
        "Medians of the ratios of each round, and from the first tenth of them to the last.\n\n",
    );
    text.push_str(&verdicts(&results.verdicts));
    text.push_str(ROWS);
    scenario_table(&mut text, &results.scenarios);
    for table in &results.scaling {
        line(
            &mut text,
            format_args!(
                "\n## {}\n\n{} rounds.\n",
                table.title, results.settings.scaling_rounds
            ),
        );
        scaling_table(&mut text, &table.scenarios);
    }
    text.push_str(NOTES);
    text
}

/// Describes how much CPU time other work took from the servers, and how this affects the figures.
fn describe_other_work(scenarios: &[Scenario]) -> String {
    let waiting: Vec<f64> = scenarios
        .iter()
        .flat_map(|scenario| &scenario.rounds)
        .filter_map(|round| round.waiting_percent)
        .collect();
    let percent = middle(&waiting);
    let meaning = if percent > QUIET_PERCENT {
        "**not a quiet machine: CPU for each request holds, rates do not**"
    } else {
        "quiet"
    };
    format!(
        "Servers could run but had to wait for other work for {} % of the time: {meaning}",
        number(percent)
    )
}

pub(super) fn verdicts(verdicts: &[Verdict]) -> String {
    let mut text =
        String::from("| what | wanted | measured | spread | |\n|---|---|---:|---|---|\n");
    for Verdict {
        claim,
        unit,
        figures,
        wanted,
        verdict,
    } in verdicts
    {
        let (middle, spread) = (number(middle(figures)), spread(figures));
        line(
            &mut text,
            format_args!("| {claim} | {wanted} | {middle} {unit} | {spread} | {verdict} |"),
        );
    }
    text
}

fn scenario_table(text: &mut String, scenarios: &[Scenario]) {
    text.push_str(
        "| server | asked for | requests/s | spread | ids/s | MB/s | p50 µs | p99 µs | p99.9 µs | CPU µs | busy % | waiting % | load µs |\n",
    );
    text.push_str("|---|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    for scenario in scenarios {
        let middle = |figure: fn(&Round) -> f64| number(middle(&scenario.figures(figure)));
        let rates = scenario.figures(|round| round.requests_per_second);
        let ids = match middle(|round| round.ids_per_second) {
            zero if zero == number(0.0) => "–".to_owned(),
            ids => ids,
        };
        let failure = scenario
            .failure
            .as_ref()
            .map_or_else(String::new, |failure| format!(" (**{failure}**)"));
        line(
            text,
            format_args!(
                "| {} | {}{failure} | {} | {} | {ids} | {} | {} | {} | {} | {} | {} | {} | {} |",
                scenario.server,
                scenario.asked,
                middle(|round| round.requests_per_second),
                spread(&rates),
                middle(|round| round.megabytes_per_second.unwrap_or(f64::NAN)),
                middle(|round| round.p50_us),
                middle(|round| round.p99_us),
                middle(|round| round.p999_us.unwrap_or(f64::NAN)),
                middle(|round| round.server_us),
                middle(|round| round.busy_percent),
                middle(|round| round.waiting_percent.unwrap_or(f64::NAN)),
                middle(|round| round.load_us.unwrap_or(f64::NAN)),
            ),
        );
    }
}

fn scaling_table(text: &mut String, scenarios: &[Scenario]) {
    text.push_str(
        "| asked for | requests/s | ids/s | MB/s | p50 µs | p99 µs | CPU µs | busy % |\n|---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for scenario in scenarios {
        let middle = |figure: fn(&Round) -> f64| number(middle(&scenario.figures(figure)));
        let failure = scenario
            .failure
            .as_ref()
            .map_or_else(String::new, |failure| format!(" (**{failure}**)"));
        line(
            text,
            format_args!(
                "| {}{failure} | {} | {} | {} | {} | {} | {} | {} |",
                scenario.asked,
                middle(|round| round.requests_per_second),
                middle(|round| round.ids_per_second),
                middle(|round| round.megabytes_per_second.unwrap_or(f64::NAN)),
                middle(|round| round.p50_us),
                middle(|round| round.p99_us),
                middle(|round| round.server_us),
                middle(|round| round.busy_percent),
            ),
        );
    }
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a String takes everything");
}

/// The share of waiting time in percent above which a rate says more about other work on the
/// machine than about the server.
const QUIET_PERCENT: f64 = 5.0;

const ROWS: &str = "
## Rows

CPU is time for which the server's threads were running, for each request, and busy its share of the time. Waiting is how
long they could have run while something else did: the higher, the less requests/s say. Load is the CPU time of the
program that asks, for each request.

";

const NOTES: &str = "
## Notes

- Load: 16 kept-alive connections unless a row says otherwise, each with one request at a time (or 16 written at once), on
  one thread that waits in epoll. Every answer's status is read and must be 200; others make a row fail, none is tried again.
  Bodies are counted by length; once a run, 20 000 ids are read and must all be different.
- At 10 000 requests/s an answer's time counts from when its request was due, not from when it could be sent.
- On one machine a sender also does the kernel's work of receiving, so that load and server share what a network costs.
- hyper and axum run on a tokio runtime with one worker thread, as idmint does here (`TOKIO_WORKER_THREADS=1`), with
  TCP_NODELAY, and give one constant answer as long as idmint's body. They send fewer headers than idmint.
- idmint has everything on: files, metrics, request ids. Single ids are of `snowflake` with the default configuration. Batches,
  unless the row says so, are of `snowflake-22`: the same with 22 bits of sequence instead of worker, shard and 12 bits, so
  that encoding bounds the row and not the clock. `snowflake` itself has 4 096 000 ids/s in each of 8 lanes, and takes
  another lane only when an answer would wait longer than `mint.lead_max`: that depends on how much is asked for at once.
- `conjunction-v1` has one worker number, and so one lane, in a default configuration.
- Redis is loaded by redis-benchmark and PostgreSQL by pgbench (`-M prepared`, 16 clients, one thread), on the CPU of the load.
  Both keep the durability they come with: Redis saves a snapshot after 60 s and may lose what came since; PostgreSQL syncs its
  log once for every 32 numbers of a sequence. idmint syncs once for up to 3 s of ids, before any of them is minted.
- INCRBY 1000 gives a range, out of which a client has to count its own ids; it is shown as 1 000 ids.
- CPU of PostgreSQL includes opening 16 sessions in each round.
- Startup go through `taskset` and `setpriv`, which is about a millisecond of each.
- A format of long ticks or few worker numbers has fewer ids a second than a server can ask for: `payment` 10 368. What cannot be
  had within 250 ms is refused, and its row fails.
";
