//! Keeps all ids that callers receive, and compares them exactly. The ids are parsed here according
//! to the published layouts, and not with the program's own decoder.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// A sequenced format, with the positions of the time, the worker and the sequence in its ids.
#[derive(Debug)]
pub struct Sequenced {
    /// The format and the query of a request, to which the count can be appended as `count=40`.
    pub order: &'static str,
    radix: u32,
    time_stride: u128,
    worker_stride: u128,
    workers: u128,
    /// The difference between two consecutive ids of one tick.
    step: u128,
    ticks_per_second: u128,
    epoch_unix_ms: u128,
}

pub const SNOWFLAKE: usize = 0;
pub const PAYMENT: usize = 2;

pub const SEQUENCED: [Sequenced; 5] = [
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
    pub fn value(&self, text: &str) -> u128 {
        u128::from_str_radix(text, self.radix)
            .unwrap_or_else(|_| panic!("{text:?} is no id of {}", self.order))
    }

    /// Returns the id with this worker and sequence in the tick at `unix_ms`. The lowest bits,
    /// which are the same in all ids of the format, are 0.
    pub fn id(&self, unix_ms: u128, worker: u128, sequence: u128) -> u128 {
        let tick = (unix_ms - self.epoch_unix_ms) * self.ticks_per_second / 1_000;
        tick * self.time_stride + worker * self.worker_stride + sequence * self.step
    }

    pub fn worker(&self, id: u128) -> u128 {
        id / self.worker_stride % self.workers
    }

    /// Returns the time at which the tick of the id begins, in milliseconds since 1970.
    pub fn unix_ms(&self, id: u128) -> u128 {
        id / self.time_stride * 1_000 / self.ticks_per_second + self.epoch_unix_ms
    }

    /// Returns how many milliseconds after the current time the tick of the id begins. Returns 0 if
    /// it has already begun.
    pub fn ahead_ms(&self, id: u128) -> u128 {
        self.unix_ms(id).saturating_sub(
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap()
                .as_millis(),
        )
    }
}

/// A range of ids without gaps. Batches are long, so the ranges are few, and all of them fit into
/// memory.
#[derive(Debug, Clone, Copy)]
struct Run {
    first: u128,
    last: u128,
}

/// All ids that one caller has received, even over several connections.
#[derive(Default)]
pub struct Received {
    runs: [Vec<Run>; SEQUENCED.len()],
    /// The newest id for each format and worker.
    newest: HashMap<(usize, u128), u128>,
}

impl Received {
    /// Adds the ids in a response body, which has one id on each line. Returns the last id.
    ///
    /// # Panics
    /// Panics if an id is not greater than the previous id of the same worker.
    pub fn take(&mut self, format: usize, body: &[u8]) -> Option<u128> {
        let text = std::str::from_utf8(body).unwrap();
        // Ignore a last line without a line end. Such a line was cut, so its id is not known.
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

/// Asserts that no id occurs twice among all callers. Returns the number of ids of each format.
#[track_caller]
pub fn assert_no_id_twice(all: Vec<Received>) -> [u128; SEQUENCED.len()] {
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
        // All ids have the same constants in their lowest bits. Two ranges therefore have a common
        // id exactly if they overlap.
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
