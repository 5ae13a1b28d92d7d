//! Simulates callers that mint all sequenced formats with batches of many sizes, and collects the
//! results of their requests.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::http1::{Answer, Client, ReceiveError, request};
use crate::ids::{PAYMENT, Received, SEQUENCED, SNOWFLAKE, assert_no_id_twice};
use crate::service::{Home, PREFER_TEXT, until};

pub const CLIENTS: usize = 8;

/// The batch sizes, which each caller uses in turn.
const COUNTS: [u32; 9] = [1, 1, 40, 1, 700, 3, 1, 5_000, 2];

/// The maximum batch size for `payment`. A larger batch would only use up the 1296 ids that a
/// worker has in a second.
const PAYMENTS_MAX: u32 = 40;

/// A group of callers that are running.
pub struct Load {
    callers: Vec<Caller>,
    stop: Arc<AtomicBool>,
}

struct Caller {
    thread: JoinHandle<Minted>,
    /// `true` once the caller has received a complete response with ids.
    has_ids: Arc<AtomicBool>,
}

/// The results of one caller on one connection.
pub struct Minted {
    pub received: Received,
    pub end: End,
    /// The number of complete responses with as many ids as requested.
    pub granted: u64,
    /// The number of refused requests, for each problem type.
    pub refused: BTreeMap<String, u64>,
    /// The maximum time by which an id of `snowflake` or `payment` was ahead of the wall clock when
    /// it arrived, in milliseconds.
    pub ahead_ms: u128,
}

/// The reason why a caller stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The connection was closed during a response or before it.
    Cut,
    /// The connection ended with a response in which the service announced that it closes the
    /// connection.
    Closed,
    /// The test stopped the caller.
    Stopped,
}

impl Load {
    /// Starts one caller for each item of `received`. The caller adds to the ids that it received
    /// earlier.
    pub fn start(address: SocketAddr, received: Vec<Received>) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let caller = |(number, received)| {
            let caller_has_ids = Arc::new(AtomicBool::new(false));
            let (stop, has_ids) = (Arc::clone(&stop), Arc::clone(&caller_has_ids));
            let mint = move || mint_until_it_ends(address, number, received, &stop, &has_ids);
            Caller {
                thread: std::thread::spawn(mint),
                has_ids: caller_has_ids,
            }
        };
        Load {
            callers: received.into_iter().enumerate().map(caller).collect(),
            stop,
        }
    }

    pub fn fresh(address: SocketAddr) -> Load {
        Load::start(address, fresh_callers())
    }

    /// Waits until every caller has received ids or has ended.
    pub fn wait_until_each_has_ids(&self) {
        until("each caller has received ids", || {
            let is_done = |caller: &Caller| {
                caller.has_ids.load(Ordering::Relaxed) || caller.thread.is_finished()
            };
            self.callers.iter().all(is_done).then_some(())
        });
    }

    /// Waits until the callers end because the service ends.
    pub fn join(self) -> Vec<Minted> {
        self.callers
            .into_iter()
            .map(|caller| {
                caller
                    .thread
                    .join()
                    .expect("the caller found nothing wrong")
            })
            .collect()
    }

    /// Lets the callers finish their current request and then stop.
    pub fn stop(self) -> Vec<Minted> {
        self.stop.store(true, Ordering::Relaxed);
        self.join()
    }
}

pub fn fresh_callers() -> Vec<Received> {
    (0..CLIENTS).map(|_| Received::default()).collect()
}

/// Asserts that every caller received ids, and that the only reason for refusals was that a format
/// had no free ids at that moment.
#[track_caller]
pub fn assert_only_exhaustion_was_seen(minted: &[Minted]) {
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

pub fn into_received(minted: Vec<Minted>) -> Vec<Received> {
    minted.into_iter().map(|minted| minted.received).collect()
}

fn mint_until_it_ends(
    address: SocketAddr,
    number: usize,
    received: Received,
    stop: &AtomicBool,
    has_ids: &AtomicBool,
) -> Minted {
    let mut minted = Minted {
        received,
        end: End::Stopped,
        granted: 0,
        refused: BTreeMap::new(),
        ahead_ms: 0,
    };
    // If a service is killed immediately, it may be gone before its callers can connect.
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
        has_ids.store(minted.granted > 0, Ordering::Relaxed);
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
            // If the service refuses a whole connection, its response has no body.
            let problem = match answer.body.is_empty() {
                true => "turned away".to_owned(),
                false => answer.json()["type"]
                    .as_str()
                    .expect("a refusal is a problem")
                    .to_owned(),
            };
            *self.refused.entry(problem).or_default() += 1;
        }
        if answer.header("connection") == Some("close") {
            self.end = End::Closed;
        }
    }
}

/// The result of killing a service again and again.
pub struct Killed {
    /// The number of distinct ids of each format.
    pub ids: [u128; SEQUENCED.len()],
    /// The time that each start took until the service was ready, in ascending order.
    pub ready_after: Vec<Duration>,
    /// The maximum time by which an id was ahead of the wall clock in the last round, in
    /// milliseconds.
    pub ahead_ms_at_the_end: u128,
}

/// Starts a service and kills it while callers mint, for several rounds. Asserts that the ids of
/// each caller increase through all rounds.
pub fn kill_under_load(home: &Home, rounds: u32, load_max: Duration) -> Killed {
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

/// Returns how long the callers mint in a round. The time differs between rounds, so that kills
/// happen before, during and after an extension of the horizon. The horizon is the time on disk up
/// to which the service may mint.
fn load_of_round(round: u32, load_max: Duration) -> Duration {
    load_max * (round * 7 % 10 + 1) / 10
}

impl Killed {
    pub fn print(&self, begun: Instant) {
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

    pub fn median(&self) -> Duration {
        self.ready_after[self.ready_after.len() / 2]
    }
}
