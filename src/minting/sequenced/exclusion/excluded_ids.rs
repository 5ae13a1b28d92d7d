//! Ids of another generator, line by line.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::excluded_ticks::{ExcludedTicks, Lane, TickRows};
use crate::id::{FieldKind, Format};
use crate::time::UnixNanos;

/// Reads ids of another generator, one a line and sorted, to find the ticks that they are in.
///
/// All lines are of one encoding. Where several can read all of them, the ticks of each are left out. Memory: that of the ticks,
/// however many ids there are.
///
/// ```
/// use std::sync::Arc;
/// use idmint::id::Format;
/// use idmint::minting::ExcludedIds;
/// use idmint::time::UnixNanos;
///
/// let payment = Arc::new(Format::built_in("payment").expect("a built-in format"));
/// let from = UnixNanos::from_seconds(1_750_000_000);
/// let mut ids = ExcludedIds::of(payment, Some(vec![0, 1]), from);
/// // Two of one second, one of the next, and one of a worker number that this node does not have.
/// for line in ["1I9ZC1000", "1I9ZC1002", "1I9ZC2100", "1I9ZC5300"] {
///     ids.read_line(line)?;
/// }
/// assert_eq!(ids.ticks().ticks(), 2);
/// # Ok::<(), idmint::minting::ExclusionError>(())
/// ```
#[derive(Debug)]
pub struct ExcludedIds {
    format: Arc<Format>,
    /// Whose ticks matter; `None` for all.
    workers: Option<Vec<u32>>,
    from: UnixNanos,
    from_tick: u128,
    /// By each encoding that could read every line so far.
    readings: Vec<Reading>,
    lines: u64,
}

/// The lines as one encoding reads them.
#[derive(Debug)]
struct Reading {
    encoding: usize,
    last: u128,
    ticks: BTreeMap<Lane, TickRows>,
}

/// A line that cannot be one of a sorted list of ids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExclusionError {
    /// No encoding that reads the lines before it reads this one.
    #[error(
        "line {line}: `{text}` is no id of `{format}` in an encoding that the lines before it have, too"
    )]
    NoId {
        /// Its number, from 1.
        line: u64,
        /// The line, or its beginning.
        text: String,
        /// The format.
        format: String,
    },
    /// Its number is less than that of the line before.
    #[error("line {line}: `{text}` is below the line before it")]
    NotSorted {
        /// Its number, from 1.
        line: u64,
        /// The line.
        text: String,
    },
}

/// As much of a line as a message shows.
const SHOWN_MAX: usize = 80;

impl ExcludedIds {
    /// No ids yet. `workers`: the numbers that are minted with, or `None` for any; `from`: every session begins there or later.
    pub fn of(format: Arc<Format>, workers: Option<Vec<u32>>, from: UnixNanos) -> ExcludedIds {
        // An epoch in the future has no tick yet, and all of its ids count.
        let from_tick = format
            .tick
            .map_or(0, |tick| tick.count(format.epoch, from.into()));
        let reading = |encoding| Reading {
            encoding,
            last: 0,
            ticks: BTreeMap::new(),
        };
        let readings = (0..format.encodings.len()).map(reading).collect();
        ExcludedIds {
            workers,
            from,
            from_tick: u128::try_from(from_tick).unwrap_or(0),
            readings,
            lines: 0,
            format,
        }
    }

    /// Reads one line, without its end.
    ///
    /// # Errors
    /// [`ExclusionError`] with the number of the line; nothing more can be read then.
    pub fn read_line(&mut self, text: &str) -> Result<(), ExclusionError> {
        self.lines += 1;
        let ExcludedIds {
            format,
            workers,
            from_tick,
            readings,
            ..
        } = self;
        let mut is_below = false;
        readings.retain_mut(|reading| {
            let read = format
                .read_as(reading.encoding, text)
                .ok()
                .and_then(|id| Some((id, placed(format, id)?)));
            let Some((id, place)) = read else {
                return false;
            };
            if id < reading.last {
                is_below = true;
                return false;
            }
            reading.last = id;
            let ((worker, _), tick) = place;
            let matters = tick >= *from_tick
                && workers
                    .as_ref()
                    .is_none_or(|workers| workers.contains(&worker));
            // A tick that does not fit is above all that are minted.
            if let (true, Ok(tick)) = (matters && tick < u64::MAX.into(), u64::try_from(tick)) {
                reading.ticks.entry(place.0).or_default().add(tick);
            }
            true
        });
        if !self.readings.is_empty() {
            return Ok(());
        }
        let (line, text) = (self.lines, text.chars().take(SHOWN_MAX).collect());
        Err(match is_below {
            true => ExclusionError::NotSorted { line, text },
            false => ExclusionError::NoId {
                line,
                text,
                format: self.format.name.clone(),
            },
        })
    }

    /// The ticks that the ids are in.
    pub fn ticks(self) -> ExcludedTicks {
        let mut lanes: BTreeMap<Lane, TickRows> = BTreeMap::new();
        for (lane, ticks) in self.readings.into_iter().flat_map(|reading| reading.ticks) {
            lanes.entry(lane).or_default().append(ticks);
        }
        let lanes = lanes
            .into_iter()
            .map(|(lane, ticks)| (lane, ticks.in_order()))
            .collect();
        ExcludedTicks {
            from: self.from,
            lanes,
            ids: self.lines,
        }
    }
}

/// Which sequence would mint an id, and its tick; `None` if it is no id. Of a format without worker numbers that is worker 0.
fn placed(format: &Format, id: u128) -> Option<(Lane, u128)> {
    let variant = format.variant_at(id);
    let layout = &format.variants[variant].layout;
    let values = layout.unpack(id).ok()?;
    let worker = layout.sum_of(FieldKind::Worker, &values).unwrap_or(0);
    // Worker numbers have 32 bits at most.
    Some((
        (u32::try_from(worker).ok()?, variant),
        layout.sum_of(FieldKind::Time, &values)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::preset;

    const FROM: UnixNanos = UnixNanos::from_seconds(1_750_000_000);

    fn reader(format: &str, workers: Option<Vec<u32>>) -> ExcludedIds {
        ExcludedIds::of(Arc::new(preset(format)), workers, FROM)
    }

    #[test]
    fn what_can_be_read_in_two_encodings_is_left_out_in_both_until_a_line_decides() {
        // Nine digits are a payment id, and also the decimal number of another one, of long ago.
        let rows = |lines: &[&str]| {
            let mut ids = ExcludedIds::of(
                Arc::new(preset("payment")),
                None,
                UnixNanos::from_seconds(0),
            );
            lines
                .iter()
                .for_each(|line| ids.read_line(line).expect("sorted"));
            ids.ticks().ticks()
        };
        assert_eq!(rows(&["575021959"]), 2);
        assert_eq!(
            rows(&["575021959", "57502195A"]),
            1,
            "with a letter all of them are of base 36"
        );
        assert_eq!(
            rows(&["575021959", "9575021959"]),
            2,
            "with ten digits all of them are decimal, and of two seconds"
        );
    }

    #[test]
    fn a_line_that_is_no_id_is_named() {
        let mut ids = reader("snowflake", None);
        ids.read_line("1573542478315782144").expect("an id");
        let error = ids.read_line("id").expect_err("a word").to_string();
        assert!(
            error.starts_with("line 2: `id` is no id of `snowflake`"),
            "{error}"
        );
        assert!(
            reader("snowflake", None).read_line("").is_err(),
            "an empty line is none"
        );
        let mut ids = reader("payment", None);
        ["1I9ZC1001", "1I9ZC1001"]
            .iter()
            .for_each(|line| ids.read_line(line).expect("the same again is in order"));
        let error = ids
            .read_line("1I9ZC1000")
            .expect_err("unsorted")
            .to_string();
        assert_eq!(error, "line 3: `1I9ZC1000` is below the line before it");
    }

    #[test]
    fn what_is_before_every_session_or_of_another_worker_takes_no_memory() {
        let payment = preset("payment");
        let id = |seconds: u64, worker: u128| {
            let tick = payment
                .ticks_at(UnixNanos::from_seconds(seconds).into())
                .expect("a tick");
            payment.canonical().to_text(
                payment.variants[0]
                    .layout
                    .pack(&[tick, worker, 7])
                    .expect("fits"),
            )
        };
        let mut ids = reader("payment", Some(vec![2]));
        for (seconds, worker) in [
            (1_749_999_998, 2),
            (1_749_999_999, 2),
            (1_750_000_000, 1),
            (1_750_000_000, 2),
            (1_750_000_001, 3),
        ] {
            ids.read_line(&id(seconds, worker)).expect("sorted");
        }
        let ticks = ids.ticks();
        assert_eq!((ticks.ids(), ticks.ticks()), (5, 1));
        assert!(ticks.of_lane(2, 0, FROM).is_some() && ticks.of_lane(1, 0, FROM).is_none());
    }

    #[test]
    #[should_panic(expected = "begins before")]
    fn a_session_that_begins_before_what_is_held_is_a_bug() {
        reader("payment", None)
            .ticks()
            .of_lane(0, 0, UnixNanos::new(FROM.get() - 1));
    }
}
