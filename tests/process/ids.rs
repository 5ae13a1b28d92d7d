//! Every id that came, kept and compared exactly. Read here by hand, from the layouts as published, not by the
//! program's own decoder.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// A format with time, worker and sequence, and where they stand in an id.
#[derive(Debug)]
pub(crate) struct Sequenced {
    /// What to ask for; a count can follow.
    pub(crate) order: &'static str,
    radix: u32,
    time_stride: u128,
    worker_stride: u128,
    workers: u128,
    /// From one id to the next of the same tick.
    step: u128,
    ticks_per_second: u128,
    epoch_unix_ms: u128,
}

pub(crate) const SNOWFLAKE: usize = 0;
pub(crate) const PAYMENT: usize = 2;

pub(crate) const SEQUENCED: [Sequenced; 5] = [
    Sequenced {
        order: "snowflake?",
        radix: 10,
        time_stride: 1 << 22,
        worker_stride: 1 << 17,
        workers: 1 << 5,
        step: 1,
        ticks_per_second: 1_000,
        epoch_unix_ms: 1_420_070_400_000,
    },
    Sequenced {
        order: "twitter?",
        radix: 10,
        time_stride: 1 << 22,
        worker_stride: 1 << 12,
        workers: 1 << 10,
        step: 1,
        ticks_per_second: 1_000,
        epoch_unix_ms: 1_288_834_974_657,
    },
    Sequenced {
        order: "payment?",
        radix: 36,
        time_stride: 36 * 36 * 36,
        worker_stride: 36 * 36,
        workers: 36,
        step: 1,
        ticks_per_second: 1,
        epoch_unix_ms: 1_704_067_200_000,
    },
    Sequenced {
        order: "conjunction-v1?",
        radix: 10,
        time_stride: 1 << 23,
        worker_stride: 1 << 13,
        workers: 1 << 10,
        step: 1,
        ticks_per_second: 1_000,
        epoch_unix_ms: 1_633_046_400_000,
    },
    Sequenced {
        order: "siq?type=message&",
        radix: 16,
        time_stride: 1 << 56,
        worker_stride: 1 << 48,
        workers: 1 << 8,
        step: 1 << 4,
        ticks_per_second: 65_536,
        epoch_unix_ms: 0,
    },
];

impl Sequenced {
    pub(crate) fn value(&self, text: &str) -> u128 {
        u128::from_str_radix(text, self.radix)
            .unwrap_or_else(|_| panic!("{text:?} is no id of {}", self.order))
    }

    /// The id of that tick, without what is the same in all of them.
    pub(crate) fn id(&self, unix_ms: u128, worker: u128, sequence: u128) -> u128 {
        let tick = (unix_ms - self.epoch_unix_ms) * self.ticks_per_second / 1_000;
        tick * self.time_stride + worker * self.worker_stride + sequence * self.step
    }

    pub(crate) fn worker(&self, id: u128) -> u128 {
        id / self.worker_stride % self.workers
    }

    /// When the tick in the id begins.
    pub(crate) fn unix_ms(&self, id: u128) -> u128 {
        id / self.time_stride * 1_000 / self.ticks_per_second + self.epoch_unix_ms
    }

    /// By how much the tick in the id begins after this moment; 0 if it has begun.
    pub(crate) fn ahead_ms(&self, id: u128) -> u128 {
        self.unix_ms(id).saturating_sub(
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap()
                .as_millis(),
        )
    }
}

/// Ids that follow each other without a gap. Batches are long, so that runs are few and all of them can be kept.
#[derive(Debug, Clone, Copy)]
struct Run {
    first: u128,
    last: u128,
}

/// The ids that one caller has received, in all its connections one after the other.
#[derive(Default)]
pub(crate) struct Received {
    runs: [Vec<Run>; SEQUENCED.len()],
    /// The newest of each format and worker.
    newest: HashMap<(usize, u128), u128>,
}

impl Received {
    /// Takes in the ids of a body, one a line; each must be above the one that the same worker minted before.
    /// Returns the last.
    pub(crate) fn take(&mut self, format: usize, body: &[u8]) -> Option<u128> {
        let text = std::str::from_utf8(body).unwrap();
        // A line without an end was cut: nobody knows which id it would have become.
        let lines = text
            .split_inclusive('\n')
            .filter_map(|line| line.strip_suffix('\n'));
        lines
            .map(|line| self.take_one(format, SEQUENCED[format].value(line)))
            .last()
    }

    fn take_one(&mut self, format: usize, id: u128) -> u128 {
        let worker = SEQUENCED[format].worker(id);
        if let Some(before) = self.newest.insert((format, worker), id) {
            assert!(
                before < id,
                "{}: {id} came after {before} of worker {worker}",
                SEQUENCED[format].order
            );
        }
        match self.runs[format].last_mut() {
            Some(run) if run.last + SEQUENCED[format].step == id => run.last = id,
            _ => self.runs[format].push(Run {
                first: id,
                last: id,
            }),
        }
        id
    }
}

/// Compares every id with every other, and returns how many there are of each format.
#[track_caller]
pub(crate) fn assert_no_id_twice(all: Vec<Received>) -> [u128; SEQUENCED.len()] {
    let mut counts = [0; SEQUENCED.len()];
    for (at, format) in SEQUENCED.iter().enumerate() {
        let mut runs: Vec<Run> = all
            .iter()
            .flat_map(|received| &received.runs[at])
            .copied()
            .collect();
        runs.sort_unstable_by_key(|run| run.first);
        for pair in runs.windows(2) {
            assert!(
                pair[0].last < pair[1].first,
                "{}: {:?} and {:?} share ids",
                format.order,
                pair[0],
                pair[1]
            );
        }
        // The ids of all runs end alike, so that runs which do not overlap have no id in common and the reverse.
        assert!(
            runs.iter()
                .all(|run| run.first % format.step == runs[0].first % format.step),
            "{}",
            format.order
        );
        counts[at] = runs
            .iter()
            .map(|run| (run.last - run.first) / format.step + 1)
            .sum();
    }
    counts
}
