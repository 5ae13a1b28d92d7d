//! Callers that mint all sequenced formats in batches of all sizes, and what became of their requests.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::http1::{Answer, Client, ReceiveError, request};
use crate::ids::{PAYMENT, Received, SEQUENCED, SNOWFLAKE, assert_no_id_twice};
use crate::service::{Home, PREFER_TEXT};

pub(crate) const CLIENTS: usize = 8;

/// Sizes of batches, taken in turn.
const COUNTS: [u32; 9] = [1, 1, 40, 1, 700, 3, 1, 5_000, 2];

/// More than this would only find the second used up: a payment id has 1296 of them for each worker.
const PAYMENTS_MAX: u32 = 40;

/// Callers at work.
pub(crate) struct Load {
    callers: Vec<JoinHandle<Minted>>,
    stop: Arc<AtomicBool>,
}

/// What one caller got on one connection.
pub(crate) struct Minted {
    pub(crate) received: Received,
    pub(crate) end: End,
    /// How many answers were whole and held all ids.
    pub(crate) granted: u64,
    /// How many were not, by the type of the problem.
    pub(crate) refused: BTreeMap<String, u64>,
    /// The furthest that the time in an id of `snowflake` or `payment` was ahead of the wall clock when the id came.
    pub(crate) ahead_ms: u128,
}

/// Why a caller stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The connection ended in the middle of an answer, or before it.
    Cut,
    /// The service said with its last answer that it closes.
    Closed,
    /// It was told to.
    Stopped,
}

impl Load {
    /// Starts one caller for each of these, which hold what it received before.
    pub(crate) fn start(address: SocketAddr, received: Vec<Received>) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let caller = |(number, received)| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || mint_until_it_ends(address, number, received, &stop))
        };
        Load {
            callers: received.into_iter().enumerate().map(caller).collect(),
            stop,
        }
    }

    pub(crate) fn fresh(address: SocketAddr) -> Load {
        Load::start(address, fresh_callers())
    }

    /// Waits for callers that end with the service.
    pub(crate) fn join(self) -> Vec<Minted> {
        self.callers
            .into_iter()
            .map(|caller| caller.join().expect("the caller found nothing wrong"))
            .collect()
    }

    /// Tells the callers to finish their request and no more.
    pub(crate) fn stop(self) -> Vec<Minted> {
        self.stop.store(true, Ordering::Relaxed);
        self.join()
    }
}

pub(crate) fn fresh_callers() -> Vec<Received> {
    (0..CLIENTS).map(|_| Received::default()).collect()
}

/// Everybody got ids, and nobody was refused for another reason than that a format had no more for the moment.
#[track_caller]
pub(crate) fn assert_only_exhaustion_was_seen(minted: &[Minted]) {
    for caller in minted {
        assert!(caller.granted > 0, "{:?}", caller.refused);
        let refused: Vec<_> = caller
            .refused
            .keys()
            .filter(|problem| *problem != "/problems/sequence-exhausted")
            .collect();
        assert!(refused.is_empty(), "{:?}", caller.refused);
    }
}

pub(crate) fn into_received(minted: Vec<Minted>) -> Vec<Received> {
    minted.into_iter().map(|minted| minted.received).collect()
}

fn mint_until_it_ends(
    address: SocketAddr,
    number: usize,
    received: Received,
    stop: &AtomicBool,
) -> Minted {
    let mut minted = Minted {
        received,
        end: End::Stopped,
        granted: 0,
        refused: BTreeMap::new(),
        ahead_ms: 0,
    };
    // A service that is killed at once may be gone before its callers are there.
    let mut client = match Client::try_connect(address) {
        Ok(client) => client,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            minted.end = End::Cut;
            return minted;
        }
        Err(error) => panic!("{address}: {error}"),
    };
    for turn in number.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let format = turn % SEQUENCED.len();
        let count = COUNTS[turn % COUNTS.len()].min(if format == PAYMENT {
            PAYMENTS_MAX
        } else {
            u32::MAX
        });
        let mint = format!("POST /ids/{}count={count}", SEQUENCED[format].order);
        match client.try_exchange(request(&mint, PREFER_TEXT, "")) {
            Ok(answer) => minted.take(format, &answer, count),
            Err(ReceiveError::Closed(part)) => {
                if let Some(part) = part.filter(|part| part.status == 200) {
                    minted.received.take(format, &part.body);
                }
                minted.end = End::Cut;
            }
            Err(error) => panic!("{mint}: {error}"),
        }
        if minted.end != End::Stopped {
            break;
        }
    }
    minted
}

impl Minted {
    fn take(&mut self, format: usize, answer: &Answer, count: u32) {
        if answer.status == 200 {
            self.granted += 1;
            assert_eq!(
                answer.header("idmint-count"),
                Some(count.to_string().as_str())
            );
            let lines = answer.body.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(
                lines,
                usize::try_from(count).unwrap(),
                "a whole answer holds all ids"
            );
            let last = self
                .received
                .take(format, &answer.body)
                .expect("at least one id");
            if [SNOWFLAKE, PAYMENT].contains(&format) {
                self.ahead_ms = self.ahead_ms.max(SEQUENCED[format].ahead_ms(last));
            }
        } else {
            let problem = answer.json()["type"]
                .as_str()
                .expect("a refusal is a problem")
                .to_owned();
            *self.refused.entry(problem).or_default() += 1;
        }
        if answer.header("connection") == Some("close") {
            self.end = End::Closed;
        }
    }
}

/// What came of killing a service again and again.
pub(crate) struct Killed {
    /// How many ids came, of each format; no two are equal.
    pub(crate) ids: [u128; SEQUENCED.len()],
    /// From each start to the moment it minted, the shortest first.
    pub(crate) ready_after: Vec<Duration>,
    /// The furthest that the time in an id was ahead of the wall clock, in the last round.
    pub(crate) ahead_ms_at_the_end: u128,
}

/// Starts a service, loads it, kills it under load, and so on. Each caller's ids rise through all rounds.
pub(crate) fn kill_under_load(home: &Home, rounds: u32, load_max: Duration) -> Killed {
    let mut callers = fresh_callers();
    let mut ready_after = Vec::new();
    let mut ahead_ms_at_the_end = 0;
    for round in 0..rounds {
        let service = home.start();
        ready_after.push(service.wait_until_ready());
        let load = Load::start(service.address(), callers);
        std::thread::sleep(load_of_round(round, load_max));
        service.kill();
        let minted = load.join();
        assert!(
            minted.iter().all(|minted| minted.end == End::Cut),
            "a killed service says no goodbye"
        );
        ahead_ms_at_the_end = minted.iter().map(|minted| minted.ahead_ms).max().unwrap();
        callers = into_received(minted);
    }
    ready_after.sort();
    Killed {
        ids: assert_no_id_twice(callers),
        ready_after,
        ahead_ms_at_the_end,
    }
}

/// Of different lengths, so that kills come before, in and after extensions of the horizon.
fn load_of_round(round: u32, load_max: Duration) -> Duration {
    load_max * (round * 7 % 10 + 1) / 10
}

impl Killed {
    pub(crate) fn print(&self, begun: Instant) {
        let (median, worst) = (self.median(), self.ready_after.last().unwrap());
        println!(
            "{} rounds in {:?}; ids {:?}, {} in all, none twice; ready after {median:?} (median), {worst:?} (worst); \
             at the end {} ms ahead",
            self.ready_after.len(),
            begun.elapsed(),
            self.ids,
            self.ids.iter().sum::<u128>(),
            self.ahead_ms_at_the_end
        );
    }

    pub(crate) fn median(&self) -> Duration {
        self.ready_after[self.ready_after.len() / 2]
    }
}
