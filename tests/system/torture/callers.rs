//! Callers that mint ids of all formats as bytes, in batches of all sizes, and check each id.

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
use idmint_testing::http1::{Answer, Client, ReceiveError};

const CALLERS: u64 = 4;

/// The sizes of batches. Callers choose each with the same probability.
const COUNTS: [u32; 7] = [1, 30, 1_000, 20_000, 100_000, 400_000, 1_000_000];

/// The problem types with which a correct node may refuse to mint.
const REFUSALS: [&str; 5] = [
    "/problems/sequence-exhausted",
    "/problems/horizon-reached",
    // This is allowed only after the test has made the disk fail, shortly before the node ends.
    "/problems/storage-unavailable",
    "/problems/draining",
    // A node refuses long work for which it has no capacity.
    "/problems/overloaded",
];

/// The callers that run at the moment.
pub(crate) struct Callers {
    callers: Vec<JoinHandle<Minted>>,
    progress: Vec<Arc<Progress>>,
}

/// The progress of one caller, which the caller writes and the test reads. Ordering: `SeqCst`,
/// because it is the simplest to reason about.
#[derive(Default)]
struct Progress {
    /// Twice the number of completed requests, plus one if a request is in progress. The value is
    /// therefore odd while a request is in progress.
    requests: AtomicU64,
    ids: AtomicU64,
}

/// The progress of each caller at one moment.
pub(crate) struct InFlight(Vec<u64>);

/// The ids that the callers have received.
#[derive(Debug, Clone)]
pub(crate) struct Minted {
    pub(crate) runs: Vec<Runs>,
    /// The number of ids of each format.
    pub(crate) ids: [u64; FORMATS.len()],
    /// The number of responses that were cut off. Complete ids in such a response are kept.
    pub(crate) cut: u64,
    pub(crate) refused: BTreeMap<String, u64>,
}

impl Callers {
    /// Starts callers that mint these formats. Their choices depend only on `seed`.
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

    /// Returns the number of ids in complete responses so far.
    pub(crate) fn ids(&self) -> u64 {
        self.progress
            .iter()
            .map(|progress| progress.ids.load(Ordering::SeqCst))
            .sum()
    }

    /// Returns the progress of each caller at this moment.
    pub(crate) fn in_flight(&self) -> InFlight {
        InFlight(
            self.progress
                .iter()
                .map(|progress| progress.requests.load(Ordering::SeqCst))
                .collect(),
        )
    }

    /// Waits until all callers have ended, which they do when the service ends. Returns their ids,
    /// and the number of requests that were in progress at `moment` and never got a complete
    /// response.
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

    /// Mints one id of this format. Returns the response if the node refused to mint.
    pub(crate) fn mint_one(&mut self, address: SocketAddr, format: usize) -> Option<Answer> {
        let answer = Client::connect(address).exchange(FORMATS[format].request(1));
        if answer.status != 200 {
            return Some(answer);
        }
        assert_eq!(self.take(format, &answer), 1);
        None
    }

    /// Records the complete ids of a response, which may be cut off. Returns the number of these
    /// ids.
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

/// Mints until the connection is closed.
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
                // Pause briefly. Otherwise repeated refusals would take up the time of formats that
                // can mint.
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
