//! Callers that ask for packed ids of all formats in batches of all sizes, and look at each id.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::formats::FORMATS;
use super::runs::Runs;
use crate::http1::{Answer, Client, ReceiveError};

const CALLERS: u64 = 4;

/// Sizes of batches, one as likely as the other.
const COUNTS: [u32; 7] = [1, 30, 1_000, 20_000, 100_000, 400_000, 1_000_000];

/// What a caller may be told instead of ids, while the node is what it should be.
const REFUSALS: [&str; 5] = [
    "/problems/sequence-exhausted",
    "/problems/horizon-reached",
    // Only where the test made the disk fail: the node is about to end.
    "/problems/storage-unavailable",
    "/problems/draining",
    // Long work beyond what the node can do soon.
    "/problems/overloaded",
];

/// Callers at work.
pub(crate) struct Callers {
    callers: Vec<JoinHandle<Minted>>,
    progress: Vec<Arc<Progress>>,
}

/// How far one caller is. Written by it, read by the test. Ordering: `SeqCst`, the simplest to reason about.
#[derive(Default)]
struct Progress {
    /// Twice the requests that are over, and one more while one is in flight.
    requests: AtomicU64,
    ids: AtomicU64,
}

/// The requests of all callers at one moment.
pub(crate) struct InFlight(Vec<u64>);

/// What callers got.
#[derive(Debug, Clone)]
pub(crate) struct Minted {
    pub(crate) runs: Vec<Runs>,
    /// How many ids, of each format.
    pub(crate) ids: [u64; FORMATS.len()],
    /// Answers that were cut, of which the whole ids are kept as well.
    pub(crate) cut: u64,
    pub(crate) refused: BTreeMap<String, u64>,
}

impl Callers {
    /// Starts callers that mint these formats, whose choices follow from the seed.
    pub(crate) fn start(address: SocketAddr, formats: &[usize], seed: u64) -> Callers {
        let mut progress = Vec::new();
        let caller = |number| {
            let (of_caller, formats) = (Arc::new(Progress::default()), formats.to_owned());
            progress.push(Arc::clone(&of_caller));
            let random = StdRng::seed_from_u64(seed * CALLERS + number);
            std::thread::spawn(move || mint_until_it_ends(address, &formats, random, &of_caller))
        };
        Callers {
            callers: (0..CALLERS).map(caller).collect(),
            progress,
        }
    }

    /// How many ids have been received in whole answers.
    pub(crate) fn ids(&self) -> u64 {
        self.progress
            .iter()
            .map(|progress| progress.ids.load(Ordering::SeqCst))
            .sum()
    }

    /// The requests at this moment.
    pub(crate) fn in_flight(&self) -> InFlight {
        InFlight(
            self.progress
                .iter()
                .map(|progress| progress.requests.load(Ordering::SeqCst))
                .collect(),
        )
    }

    /// Waits for callers that end with the service; returns what they got, and how many of the requests that were in flight
    /// at `moment` never had a whole answer.
    pub(crate) fn join(self, moment: &InFlight) -> (Minted, usize) {
        let mut all = Minted::default();
        for caller in self.callers {
            all.append(caller.join().expect("the caller found nothing wrong"));
        }
        let at_the_end = self
            .progress
            .iter()
            .map(|progress| progress.requests.load(Ordering::SeqCst));
        let unanswered = moment
            .0
            .iter()
            .zip(at_the_end)
            .filter(|(then, end)| *then % 2 == 1 && *then == end)
            .count();
        (all, unanswered)
    }
}

impl Default for Minted {
    fn default() -> Minted {
        let runs = FORMATS
            .iter()
            .map(|format| Runs::new(format.step))
            .collect();
        Minted {
            runs,
            ids: [0; FORMATS.len()],
            cut: 0,
            refused: BTreeMap::new(),
        }
    }
}

impl Minted {
    pub(crate) fn append(&mut self, other: Minted) {
        self.runs
            .iter_mut()
            .zip(other.runs)
            .for_each(|(mine, others)| mine.append(others));
        self.ids
            .iter_mut()
            .zip(other.ids)
            .for_each(|(mine, others)| *mine += others);
        self.cut += other.cut;
        for (problem, count) in other.refused {
            *self.refused.entry(problem).or_default() += count;
        }
    }

    /// Asks for one id of this format, and returns the refusal, if that is the answer.
    pub(crate) fn mint_one(&mut self, address: SocketAddr, format: usize) -> Option<Answer> {
        let answer = Client::connect(address).exchange(FORMATS[format].request(1));
        if answer.status != 200 {
            return Some(answer);
        }
        assert_eq!(self.take(format, &answer), 1);
        None
    }

    /// Takes in the whole ids of an answer, or of the part of one that came, and says how many those are.
    pub(crate) fn take(&mut self, format: usize, answer: &Answer) -> u64 {
        let width = answer
            .header("idmint-width")
            .expect("packed ids have a width")
            .parse()
            .unwrap();
        let ids = self.runs[format].take(&answer.body, width, FORMATS[format].increases);
        self.ids[format] += ids;
        ids
    }
}

/// Until the connection ends.
fn mint_until_it_ends(
    address: SocketAddr,
    formats: &[usize],
    mut random: StdRng,
    progress: &Progress,
) -> Minted {
    let mut minted = Minted::default();
    let mut client = Client::connect(address);
    loop {
        let format = formats[random.random_range(0..formats.len())];
        let tortured = &FORMATS[format];
        let count = COUNTS[random.random_range(0..COUNTS.len())].min(tortured.count_max);
        let order = tortured.request(count);
        progress.requests.fetch_add(1, Ordering::SeqCst);
        match client.try_exchange(&order) {
            Ok(answer) if answer.status == 200 => {
                assert_eq!(
                    minted.take(format, &answer),
                    u64::from(count),
                    "{order}: a whole answer holds all ids"
                );
                progress.ids.fetch_add(u64::from(count), Ordering::SeqCst);
                progress.requests.fetch_add(1, Ordering::SeqCst);
                if answer.header("connection") == Some("close") {
                    break;
                }
            }
            Ok(refusal) => {
                progress.requests.fetch_add(1, Ordering::SeqCst);
                let problem = refusal.json()["type"]
                    .as_str()
                    .expect("a refusal is a problem")
                    .to_owned();
                assert!(REFUSALS.contains(&problem.as_str()), "{order}: {refusal:?}");
                *minted.refused.entry(problem).or_default() += 1;
                if refusal.header("connection") == Some("close") {
                    break;
                }
                // The next one may be of a format that has ids; a storm of refusals would only take its time.
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(ReceiveError::Closed(part)) => {
                if let Some(part) = part.filter(|part| part.status == 200) {
                    minted.take(format, &part);
                }
                minted.cut += 1;
                break;
            }
            Err(error) => panic!("{order}: {error}"),
        }
    }
    minted
}
