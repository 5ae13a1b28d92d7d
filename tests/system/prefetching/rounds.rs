//! Checks a client that mints while its two services are killed in turn, round after round.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use super::pair::Pair;

const ROUNDS: usize = 10;
pub(crate) const THREADS: usize = 64;
const IDS_A_ROUND: usize = 30_000;
pub(crate) const VALIDITY_SECONDS: u64 = 60;

/// The number of bits below the time in a `snowflake` id. The time counts milliseconds since 2015.
const TIME_SHIFT: u32 = 22;
const EPOCH_UNIX_MS: u64 = 1_420_070_400_000;

/// A client that mints a fixed number of ids with [`THREADS`] threads in each round. No id may be
/// older than [`VALIDITY_SECONDS`].
pub(crate) trait Minting {
    fn begin(&mut self);
    /// Reads the records of the current round. `mod.rs` describes their format.
    fn read_records(&mut self, bytes: &mut [u8]);
    fn end(self);
}

/// A program in another language. `mod.rs` describes its arguments and its output.
pub(crate) struct Program(Child);

impl Program {
    pub(crate) fn start(mut program: Command, urls: &str, ids_a_round: usize) -> Program {
        program.args([
            urls,
            "snowflake",
            &THREADS.to_string(),
            &ids_a_round.to_string(),
            &VALIDITY_SECONDS.to_string(),
        ]);
        Program(
            program
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("the client starts"),
        )
    }
}

impl Minting for Program {
    fn begin(&mut self) {
        self.0
            .stdin
            .as_mut()
            .expect("piped")
            .write_all(b"\n")
            .unwrap();
    }

    fn read_records(&mut self, bytes: &mut [u8]) {
        if let Err(error) = self.0.stdout.as_mut().expect("piped").read_exact(bytes) {
            panic!("the client ended, {}: {error}", self.0.wait().unwrap());
        }
    }

    fn end(mut self) {
        drop(self.0.stdin.take());
        assert!(
            self.0.wait().unwrap().success(),
            "the client ends well when there is nothing more to do"
        );
    }
}

/// Runs [`assert_mints_while_services_are_killed`] with a program in another language.
pub(crate) fn assert_program_mints_while_services_are_killed(program: Command) {
    assert_mints_while_services_are_killed(|urls, ids_a_round| {
        Program::start(program, urls, ids_a_round)
    });
}

/// Mints in rounds, while one of the two services is killed in each round. Asserts that no id is
/// minted twice, that no id is older than its validity, and that no call fails.
///
/// The variable `IDS_A_ROUND` sets the number of ids of a round.
pub(crate) fn assert_mints_while_services_are_killed<M: Minting>(
    open: impl FnOnce(&str, usize) -> M,
) {
    let asked = std::env::var("IDS_A_ROUND")
        .ok()
        .map(|ids| ids.parse().expect("IDS_A_ROUND is a number"));
    let ids_a_round: usize = asked.unwrap_or(IDS_A_ROUND);
    let mut pair = Pair::start();
    let mut client = open(&pair.urls(), ids_a_round);
    let (mut ids, mut oldest_ms) = (Vec::with_capacity(ROUNDS * ids_a_round), 0);
    let mut bytes = vec![0; 16 * ids_a_round];
    for round in 0..ROUNDS {
        client.begin();
        pair.kill(round % 2);
        client.read_records(&mut bytes);
        pair.start_again(round % 2);
        for record in bytes.chunks_exact(16) {
            let (id, asked_ms) = record.split_at(8);
            let [id, asked_ms] =
                [id, asked_ms].map(|number| u64::from_be_bytes(number.try_into().unwrap()));
            let age_ms = asked_ms.saturating_sub((id >> TIME_SHIFT) + EPOCH_UNIX_MS);
            oldest_ms = oldest_ms.max(age_ms);
            ids.push(id);
        }
    }
    client.end();
    assert!(
        oldest_ms <= VALIDITY_SECONDS * 1_000,
        "an id was {oldest_ms} ms old"
    );
    let minted = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), minted, "{} ids came twice", minted - ids.len());
    println!(
        "{minted} ids by {THREADS} threads in {ROUNDS} rounds with a kill in each; the oldest was {oldest_ms} ms old"
    );
}
