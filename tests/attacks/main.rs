//! Attacks the service while an honest caller uses it. The attackers have other source addresses
//! than the honest caller, which must not notice the attack.
//!
//! Each attack first runs against the control, while the honest caller calls the service. The
//! control is another process, which accepts everything and does nothing. This first run measures
//! how much the load alone slows down the machine. If attackers repeat requests as soon as they
//! have a response, the control responds with as many bytes as the service does. Then the attack
//! runs against the service.
//!
//! ```text
//! honest caller, 50/s ──────────▶ idmint             honest caller, 50/s ──▶ idmint
//! attackers ────────────────────▶ sink               attackers ────────────▶   "
//!                       control                                       attack
//! ```
//!
//! The service and the control share one CPU core. The callers use another core if the machine has
//! one. An attack that does not depend on a protocol runs over HTTP/1.1, HTTP/2 and TLS.
//!
//! Environment variables:
//!
//! - `ATTACK_SECONDS`: the duration of each attack (default 4; `make attacks`: 20).
//! - `ATTACKS`: parts of names of the attacks to run, separated by `|`.
//! - `ATTACK_ADDRESSES`: the numbers of source addresses of attacks that work over any protocol
//!   (default 2; `make attacks`: 1 2 6).
//! - `ATTACK_WAYS`: the maximum number of ways (protocol and number of addresses) of each attack
//!   (default all; `make test-all`: 1). Each attack starts with another way.
//! - `UPDATE_DOCS=1`: write the table of all attacks into docs/internals/MEASUREMENTS.md.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../benches/compare/cpu_pinning.rs"]
#[allow(dead_code, reason = "the comparison also runs servers as other users")]
mod cpu_pinning;

mod aim;
mod ask;
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

use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::Runtime;

use crate::aim::{Aim, Protocol, Way};
use crate::attack::{ATTACKS, Attack};
use crate::cpu_pinning::{CpuPinning, Side};
use crate::honest::{Honest, Seen};
use crate::metrics::{Metrics, Shed};
use crate::outcome::{IS_OPTIMISED, Outcome, Round, TABLE_HEAD};
use crate::sink::Sink;
use idmint_testing::service::{Home, Service};

const SECONDS: u64 = 4;

/// The maximum number of rounds. A round is repeated if the machine was too busy with other work,
/// because such a round proves nothing.
const ROUNDS_MAX: usize = 3;

/// The maximum time until the attackers have sent enough and the service has noticed. No attack
/// needs nearly that long.
const ENOUGH_WITHIN: Duration = Duration::from_secs(120);

const TABLE_BEGIN: &str = "<!-- attacks -->\n\n";
const TABLE_END: &str = "\n<!-- end of attacks -->";

/// The number of file descriptors that the attackers need.
const DESCRIPTORS: u64 = 12_000;

/// The assignment of CPU cores: one for the service and the control, and another one for the
/// callers.
static PINNING: LazyLock<CpuPinning> = LazyLock::new(CpuPinning::pin_load);

/// Returns the same command, but pinned to the CPU core for servers.
fn on_core_of_servers(command: &Command) -> Command {
    let mut pinned = PINNING.command(Side::Server, command.get_program());
    pinned.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => pinned.env(name, value),
            None => pinned.env_remove(name),
        };
    }
    pinned
}

/// Attacks while the honest caller sends its requests. The attack lasts for `time`, and longer if
/// the attackers have not sent enough yet.
///
/// The last value of the result is `true` if they have sent enough.
fn attack_while_calling(
    attack: &Attack,
    aim: &Aim,
    caller: Honest,
    time: Duration,
    is_enough: impl Fn() -> bool,
) -> (Seen, Seen, bool) {
    let (runtime, mut is_attack) = (Runtime::new().unwrap(), false);
    let (kept, newcomers) = caller.call_during(|| {
        let attackers = {
            let _inside = runtime.enter();
            (attack.begin)(aim)
        };
        std::thread::sleep(time);
        let begun = Instant::now();
        while !is_attack && begun.elapsed() < ENOUGH_WITHIN {
            is_attack = (attack.is_made)(&aim.deeds) && is_enough();
            std::thread::sleep(Duration::from_millis(10));
        }
        aim.is_over.cancel();
        runtime.block_on(attackers.join_all());
    });
    (kept, newcomers, is_attack)
}

fn carry_out(attack: &Attack, way: Way, time: Duration) -> Outcome {
    let home = Home::new();
    let _log_pipe = attack.node.log_pipe(&home);
    let service = attack.node.start(&home, way.protocol);
    let sink = start_control(attack, way.protocol, &home);
    let door = attack::door(&home, &service, way.protocol);
    door.get("/health/ready");
    attack.node.prepare(&door);
    let mut rounds = Vec::new();
    while rounds.len() < ROUNDS_MAX && !rounds.last().is_some_and(Round::is_good) {
        // The attackers use TLS with the control only if it responds. A control that never responds
        // discards encrypted bytes like any other bytes.
        let encryption = attack.control.and_then(|_| door.encryption(attack.alpn()));
        let control = Aim::at(sink.address, way, encryption, &door);
        let caller = Honest::connect(&door);
        // Without optimisation, the response times are not judged, so the control runs only until
        // the attackers have sent enough.
        let time_of_control = if IS_OPTIMISED { time } else { Duration::ZERO };
        let (beside_control, _, is_made) =
            attack_while_calling(attack, &control, caller, time_of_control, || true);
        let aim = Aim::at(
            service.address(),
            way,
            door.encryption(attack.alpn()),
            &door,
        );
        let is_met = || (attack.is_met)(&aim.deeds, &Shed::read(&Metrics::of(&door)));
        let caller = Honest::connect(&door);
        let (attacked, newcomers, is_noticed) =
            attack_while_calling(attack, &aim, caller, time, is_met);
        println!(
            "    control: {}\n    attack:  {}",
            control.deeds.summary(),
            aim.deeds.summary()
        );
        let is_attack = is_made && is_noticed;
        rounds.push(Round {
            control: beside_control,
            attacked,
            newcomers,
            is_attack,
            bounds: attack.bounds,
        });
    }
    let metrics = Metrics::of(&door);
    Outcome {
        name: attack.name,
        way,
        rounds,
        peak_mib: resident_peak_kib(&service).div_ceil(1024),
        shed: Shed::read(&metrics),
        failed: failed_statuses()
            .iter()
            .map(|status| metrics.sum("idmint_http_requests_total", status))
            .sum(),
        has_panicked: service.log().contains("panic"),
    }
}

/// Returns the statuses that no response may have. An unoptimized build may need more than the 10 s
/// after which a slow write gets 504, so only an optimized build must never respond with 504.
fn failed_statuses() -> &'static [&'static str] {
    match IS_OPTIMISED {
        true => &["500", "504"],
        false => &["500"],
    }
}

fn start_control(attack: &Attack, protocol: Protocol, home: &Home) -> Sink {
    let (request_len, answer_len) = attack.control_lengths();
    let program = on_core_of_servers(&Command::new(std::env::current_exe().unwrap()));
    Sink::start(program, request_len, answer_len, protocol, home.path(""))
}

/// Returns the peak memory of the process in KiB.
fn resident_peak_kib(service: &Service) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.pid())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("Linux says so");
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Returns the duration of each attack, from `ATTACK_SECONDS`.
fn time_of_each() -> Duration {
    Duration::from_secs(number("ATTACK_SECONDS").unwrap_or(SECONDS))
}

/// Returns the numbers of source addresses with which attacks are repeated, from
/// `ATTACK_ADDRESSES`.
fn numbers_of_addresses() -> Vec<usize> {
    let numbers = std::env::var("ATTACK_ADDRESSES").unwrap_or_else(|_| "2".to_owned());
    let number = |text: &str| {
        text.parse()
            .unwrap_or_else(|_| panic!("ATTACK_ADDRESSES has {text:?}, no number"))
    };
    numbers.split(' ').map(number).collect()
}

/// Returns the number in the environment variable `name`, or `None` if the variable is not set.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is {text:?}, which is no number")),
    )
}

/// Raises the limit of open files, because the attackers and the control hold thousands of
/// connections.
fn allow_many_descriptors() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    assert!(
        maximum.is_none_or(|most| most >= DESCRIPTORS),
        "{maximum:?} descriptors, {DESCRIPTORS} are needed"
    );
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(DESCRIPTORS),
            maximum,
        },
    )
    .unwrap();
}

/// Replaces the table of attacks in docs/internals/MEASUREMENTS.md. Two HTML comments mark its
/// place.
fn write_to_docs(table: &str) {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/docs/internals/MEASUREMENTS.md"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let (before, rest) = text.split_once(TABLE_BEGIN).expect("the table has a place");
    let (_, after) = rest.split_once(TABLE_END).expect("and an end");
    std::fs::write(
        path,
        format!("{before}{TABLE_BEGIN}{table}{TABLE_END}{after}"),
    )
    .unwrap();
}

#[test]
fn no_attack_harms_an_honest_caller() {
    allow_many_descriptors();
    let time = time_of_each();
    let wanted = std::env::var("ATTACKS").unwrap_or_default();
    let (mut worst, mut objections) = (Vec::<Outcome>::new(), Vec::new());
    let addresses = numbers_of_addresses();
    let is_wanted = |attack: &Attack| wanted.split('|').any(|part| attack.name.contains(part));
    let ways_max = number("ATTACK_WAYS").map_or(usize::MAX, |ways| ways.try_into().unwrap());
    let ways = |(turn, attack): (usize, &'static Attack)| {
        let mut ways = attack.ways(&addresses);
        let count = ways.len();
        ways.rotate_left(turn % count.max(1));
        ways.into_iter()
            .take(ways_max)
            .map(move |way| (attack, way))
    };
    for (attack, way) in ATTACKS
        .iter()
        .enumerate()
        .flat_map(ways)
        .filter(|(attack, _)| is_wanted(attack))
    {
        println!("{}", attack.name);
        let outcome = carry_out(attack, way, time);
        println!("{}", outcome.row());
        for objection in outcome.objections() {
            println!("    WRONG: {objection}");
            objections.push(format!("{}: {objection}", attack.name));
        }
        // For an attack that ran with several numbers of addresses, the table shows the slowest
        // result.
        match worst.iter_mut().find(|known| known.is_like(&outcome)) {
            Some(known) if known.slowness() < outcome.slowness() => *known = outcome,
            Some(_) => {}
            None => worst.push(outcome),
        }
    }
    let table = worst.iter().fold(TABLE_HEAD.to_owned(), |table, outcome| {
        table + &outcome.row() + "\n"
    });
    println!("\n{table}");
    if std::env::var_os("UPDATE_DOCS").is_some() && wanted.is_empty() {
        write_to_docs(&table);
    }
    assert!(!worst.is_empty(), "no attack has {wanted:?} in its name");
    assert!(objections.is_empty(), "{objections:#?}");
}
