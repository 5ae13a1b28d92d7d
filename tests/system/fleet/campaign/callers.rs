//! Callers of the campaign. They mint ids of all formats and append events all the time, and later
//! repeat their appends.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::appending::{Appender, Begun, Order, Place, Seen};
use crate::torture::callers::Minted;
use crate::torture::formats::FORMATS;
use idmint_testing::http1::{Answer, Client, ReceiveError};

/// The formats that are minted. Their ticks include many seconds, a third of a second and 7 ns.
const NAMES: [&str; 8] = [
    "snowflake",
    "conjunction-v1",
    "siq",
    "minutes",
    "thirds",
    "nanos",
    "below",
    "upside",
];

const COUNTS: [u32; 4] = [1, 40, 700, 5_000];

/// The pause between two requests of one caller. The campaign tests failures and not load.
const PAUSE: Duration = Duration::from_millis(10);
const APPENDER_PAUSE: Duration = Duration::from_millis(40);

/// The problem types with which a node may refuse to mint.
const REFUSALS: [&str; 7] = [
    "/problems/sequence-exhausted",
    "/problems/horizon-reached",
    "/problems/no-worker-slot",
    "/problems/clock-jumped",
    "/problems/clock-behind",
    "/problems/storage-unavailable",
    "/problems/overloaded",
];

/// Returns the formats that are minted, as indexes into [`FORMATS`].
pub(super) fn formats() -> Vec<usize> {
    let place = |name| {
        FORMATS
            .iter()
            .position(|format| format.name == name)
            .expect("there is such a format")
    };
    NAMES.into_iter().map(place).collect()
}

/// Mints ids until `stop` is set. Always uses the current address in `place`.
pub(super) fn mint(place: &Place, seed: u64, stop: &AtomicBool) -> Minted {
    let (formats, mut random) = (formats(), StdRng::seed_from_u64(seed));
    let (mut minted, mut client) = (Minted::default(), None);
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(PAUSE);
        let format = formats[random.random_range(0..formats.len())];
        let count = COUNTS[random.random_range(0..COUNTS.len())];
        let Some(mut asked) = client.take().or_else(|| place.try_connect()) else {
            continue;
        };
        if take_in(&mut minted, format, count, &mut asked) {
            client = Some(asked);
        }
    }
    minted
}

/// Receives a response, and records its ids or its failure. Returns `true` if the connection can
/// still be used.
fn take_in(minted: &mut Minted, format: usize, count: u32, client: &mut Client) -> bool {
    match client.try_exchange(FORMATS[format].request(count)) {
        Ok(answer) if answer.status == 200 => {
            assert_eq!(
                minted.take(format, &answer),
                u64::from(count),
                "a whole answer holds all ids"
            );
            answer.header("connection") != Some("close")
        }
        Ok(refusal) => {
            *minted.refused.entry(problem_of(&refusal)).or_default() += 1;
            refusal.header("connection") != Some("close")
        }
        Err(ReceiveError::Closed(part)) => {
            if let Some(part) = part.filter(|part| part.status == 200) {
                minted.take(format, &part);
            }
            minted.cut += 1;
            false
        }
        // Count a response that takes too long as one that never arrives.
        Err(ReceiveError::TimedOut) => {
            minted.cut += 1;
            false
        }
        Err(error) => panic!("{}: {error}", FORMATS[format].name),
    }
}

fn problem_of(refusal: &Answer) -> String {
    let problem = refusal.json()["type"]
        .as_str()
        .expect("a refusal is a problem")
        .to_owned();
    assert!(REFUSALS.contains(&problem.as_str()), "{refusal:?}");
    problem
}

/// An acknowledged append, and the index of its first event in the caller's `Seen::kept`.
struct Answered {
    turn: usize,
    order: Order,
    first: usize,
}

/// Appends until `stop` is set. A quarter of the appends go to the ledger that all callers share.
/// In between, repeats earlier appends at another node.
///
/// Returns the caller's observations, and the number of repeated appends.
pub(super) fn append(
    mut appender: Appender,
    number: usize,
    ledgers: &[Begun],
    acknowledged: &AtomicU64,
    stop: &AtomicBool,
) -> (Seen, u64) {
    let mut random = StdRng::seed_from_u64(u64::try_from(number).expect("a small number"));
    let (contended, mut answered, mut again) = (ledgers.len() - 1, Vec::<Answered>::new(), 0);
    for turn in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        thread::sleep(APPENDER_PAUSE);
        let order = Order {
            ledger: if random.random_ratio(1, 4) {
                contended
            } else {
                number % contended
            },
            count: if random.random_ratio(1, 8) {
                random.random_range(2..6)
            } else {
                1
            },
            expects: random.random_ratio(1, 8),
        };
        let first = appender.seen.kept.len();
        appender.append(turn, &order);
        acknowledged.fetch_add(1, Ordering::Relaxed);
        if !order.expects {
            answered.push(Answered { turn, order, first });
        }
        if random.random_ratio(1, 8) {
            appender.go_elsewhere();
        }
        if random.random_ratio(1, 16) && !answered.is_empty() {
            let Answered { turn, order, first } = &answered[random.random_range(0..answered.len())];
            appender.append_again(*turn, order, *first);
            again += 1;
        }
    }
    // Repeat the last 50 appends, because the fewest journals (the nodes' copies of their commits)
    // contain them.
    for Answered { turn, order, first } in answered.iter().rev().take(50) {
        appender.append_again(*turn, order, *first);
        again += 1;
    }
    (appender.seen, again)
}
