//! The service is attacked by strangers from other addresses, beside an honest caller who must not notice.
//!
//! Each attack goes first against the control, another process that takes everything and does nothing, while the honest
//! caller asks the service: what that costs, the machine costs. Where attackers ask again as soon as they have an answer, the
//! control answers them with as many bytes as the service does. Then it goes against the service.
//!
//! ```text
//! honest caller, 50/s ──────────▶ idmint             honest caller, 50/s ──▶ idmint
//! attackers ────────────────────▶ sink               attackers ────────────▶   "
//!                       control                                       attack
//! ```
//!
//! `ATTACK_SECONDS` says how long each lasts (4 unless set; `make attacks`: 20), `ATTACKS` which ones, by part of a name.
//! `UPDATE_DOCS=1` writes the table of all of them into docs/SECURITY.md.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../http1/mod.rs"]
mod http1;
#[allow(dead_code, reason = "some of it is used by tests/process alone")]
#[path = "../process/service.rs"]
mod service;

mod aim;
mod attack;
mod attacker;
mod bodies;
mod door;
mod floods;
mod frames;
mod greedy;
mod handshakes;
mod honest;
mod listed;
mod logged;
mod malformed;
mod metrics;
mod outcome;
mod overload;
mod sink;
mod slow;
mod unread;
mod windows;

use std::fmt::Write as _;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::Runtime;

use crate::aim::Aim;
use crate::attack::{ATTACKS, Attack};
use crate::honest::{Honest, Seen};
use crate::metrics::{Metrics, Shed};
use crate::outcome::{Outcome, Round, TABLE_HEAD};
use crate::service::{Home, Service, until};
use crate::sink::Sink;

const SECONDS: u64 = 4;

/// One round in which the machine was busy with something else says nothing, so there may be more of them.
const ROUNDS_MAX: usize = 3;

const TABLE_BEGIN: &str = "<!-- attacks -->\n\n";
const TABLE_END: &str = "\n<!-- end of attacks -->";

/// Descriptors that the attackers need.
const DESCRIPTORS: u64 = 12_000;

/// Attacks for this long, and until enough was done, while the honest caller calls.
fn attack_while_calling(
    attack: &Attack,
    aim: &Aim,
    caller: Honest,
    time: Duration,
    is_enough: impl Fn() -> bool,
) -> (Seen, Seen) {
    let runtime = Runtime::new().unwrap();
    caller.call_during(|| {
        let attackers = {
            let _inside = runtime.enter();
            (attack.begin)(aim)
        };
        std::thread::sleep(time);
        until(attack.name, || ((attack.is_made)(&aim.deeds) && is_enough()).then_some(()));
        aim.is_over.cancel();
        runtime.block_on(attackers.join_all());
    })
}

fn carry_out(attack: &Attack, time: Duration) -> Outcome {
    let (request_len, answer_len) = attack.control_lengths();
    let (home, sink) = (Home::new(), Sink::start(request_len, answer_len));
    let _log_pipe = attack.node.log_pipe(&home);
    let service = attack.node.start(&home);
    let door = attack.node.door(&home, &service);
    door.get("/health/ready");
    attack.node.prepare(&service);
    let mut rounds = Vec::new();
    while rounds.len() < ROUNDS_MAX && !rounds.last().is_some_and(Round::is_fast_enough) {
        let control = Aim::at(sink.address, None, service.address());
        let caller = Honest::connect(&door);
        let (beside_control, _) = attack_while_calling(attack, &control, caller, time, || true);
        let aim = Aim::at(service.address(), door.encryption(), service.address());
        let is_met = || (attack.is_met)(&aim.deeds, &Shed::read(&Metrics::of(&door)));
        let caller = Honest::connect(&door);
        let (attacked, newcomers) = attack_while_calling(attack, &aim, caller, time, is_met);
        println!("    control: {}\n    attack:  {}", control.deeds.summary(), aim.deeds.summary());
        rounds.push(Round { control: beside_control, attacked, newcomers, p99_floor: attack.p99_floor() });
    }
    let metrics = Metrics::of(&door);
    Outcome {
        name: attack.name,
        rounds,
        peak_mib: resident_peak_kib(&service).div_ceil(1024),
        shed: Shed::read(&metrics),
        failed: metrics.sum("idmint_http_requests_total", "500") + metrics.sum("idmint_http_requests_total", "504"),
        has_panicked: service.log().contains("panic"),
    }
}

/// The most memory that the process has had.
fn resident_peak_kib(service: &Service) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says so");
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// How long each attack lasts.
fn time_of_each() -> Duration {
    Duration::from_secs(number("ATTACK_SECONDS").unwrap_or(SECONDS))
}

/// The number in this variable of the environment.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, which is no number")))
}

/// Attackers hold many connections, and a sink as many.
fn allow_many_descriptors() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    assert!(maximum.is_none_or(|most| most >= DESCRIPTORS), "{maximum:?} descriptors, {DESCRIPTORS} are needed");
    setrlimit(Resource::Nofile, Rlimit { current: Some(DESCRIPTORS), maximum }).unwrap();
}

/// Replaces the table in docs/SECURITY.md, which stands between two comments.
fn write_to_docs(table: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/SECURITY.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (before, rest) = text.split_once(TABLE_BEGIN).expect("the table has a place");
    let (_, after) = rest.split_once(TABLE_END).expect("and an end");
    std::fs::write(path, format!("{before}{TABLE_BEGIN}{table}{TABLE_END}{after}")).unwrap();
}

#[test]
fn no_attack_harms_an_honest_caller() {
    allow_many_descriptors();
    let time = time_of_each();
    let wanted = std::env::var("ATTACKS").unwrap_or_default();
    let (mut table, mut objections) = (TABLE_HEAD.to_owned(), Vec::new());
    let mut carried_out = 0;
    for attack in ATTACKS.iter().filter(|attack| attack.name.contains(&wanted)) {
        println!("{}", attack.name);
        let outcome = carry_out(attack, time);
        let row = outcome.row();
        println!("{row}");
        writeln!(table, "{row}").unwrap();
        for objection in outcome.objections() {
            println!("    WRONG: {objection}");
            objections.push(format!("{}: {objection}", attack.name));
        }
        carried_out += 1;
    }
    println!("\n{table}");
    if std::env::var_os("UPDATE_DOCS").is_some() && wanted.is_empty() {
        write_to_docs(&table);
    }
    assert!(carried_out > 0, "no attack has {wanted:?} in its name");
    assert!(objections.is_empty(), "{objections:#?}");
}
