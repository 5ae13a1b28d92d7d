//! Who asks the nodes all the time: for ids of all formats, and for appends, which are asked for again later.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::appending::{Appender, Begun, Order, Place, Seen};
use crate::http1::{Answer, Client, ReceiveError};
use crate::torture::callers::Minted;
use crate::torture::formats::FORMATS;

/// What is minted beside each other: ticks of many seconds, of a third of a second, 7 ns, and what is usual.
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

/// Between two requests of one caller: what goes wrong matters here, not how much is asked for.
const PAUSE: Duration = Duration::from_millis(10);
const APPENDER_PAUSE: Duration = Duration::from_millis(40);

/// What a node may say instead of ids.
const REFUSALS: [&str; 7] = [
    "/problems/sequence-exhausted",
    "/problems/horizon-reached",
    "/problems/no-worker-slot",
    "/problems/clock-jumped",
    "/problems/clock-behind",
    "/problems/storage-unavailable",
    "/problems/overloaded",
];

/// The formats that are minted, by their places in [`FORMATS`].
pub(super) fn formats() -> Vec<usize> {
    let place = |name| {
        FORMATS
            .iter()
            .position(|format| format.name == name)
            .expect("there is such a format")
    };
    NAMES.into_iter().map(place).collect()
}

/// Asks one node for ids until it is told to stop, wherever that node is.
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

/// Takes in one answer, or what came of it; returns whether the connection is still of use.
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
        // Of what comes later nothing is counted, as of an answer that never comes.
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

/// An append that was acknowledged, and where what was told of it is kept.
struct Answered {
    turn: usize,
    order: Order,
    first: usize,
}

/// Appends until it is told to stop, a quarter of the time to the ledger where everybody is; and asks again, at another node, for
/// what it appended at any time before. Returns how often it did that, too.
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
    // The last ones have the fewest journals behind them.
    for Answered { turn, order, first } in answered.iter().rev().take(50) {
        appender.append_again(*turn, order, *first);
        again += 1;
    }
    (appender.seen, again)
}
