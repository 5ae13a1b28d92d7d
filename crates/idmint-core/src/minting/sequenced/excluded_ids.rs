//! Reads a list of ids that another generator minted, and collects their ticks, so that the service
//! does not mint in the same ticks.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::id::{FieldKind, Format, ListedId};
use crate::time::UnixNanos;

/// Reads sorted ids of another generator from lines of text, and collects their ticks.
///
/// All lines must be in one encoding. If several encodings can read every line, the ids are read in
/// each of these encodings, and all of their ticks are excluded. The memory use depends on the
/// number of ticks, not of ids.
///
/// A line that cannot be an id of the format is skipped and counted: a number outside the layout,
/// or a text with letters that the format does not use. Blanks, quotes and commas around an id are
/// ignored. The tick of a text in the wrong letter case, such as `1i9zc1000`, is excluded as well.
/// Such a text need not be in order, because it may be another id in base 62. In base 62,
/// lower-case letters are sorted after upper-case letters.
///
/// ```
/// use std::sync::Arc;
/// use idmint_core::id::Format;
/// use idmint_core::minting::ExcludedIds;
/// use idmint_core::time::UnixNanos;
///
/// let payment = Arc::new(Format::built_in("payment").expect("a built-in format"));
/// let from = UnixNanos::from_seconds(1_750_000_000);
/// let mut ids = ExcludedIds::of(payment, Some(vec![0, 1]), from);
/// // Two ids of one second, one id of the next second, and one id with a worker number that this
/// // node does not have. The last line is not an id of the format.
/// for line in ["1I9ZC1000", "1I9ZC1002", "1I9ZC2100", "1I9ZC5300", "1nvoJDIi0"] {
///     ids.read_line(line)?;
/// }
/// let ticks = ids.ticks();
/// assert_eq!((ticks.ids(), ticks.ticks(), ticks.skipped()), (4, 2, 1));
/// # Ok::<(), idmint_core::minting::ExclusionError>(())
/// ```
#[derive(Debug)]
pub struct ExcludedIds {
    format: Arc<Format>,
    /// The worker numbers with which this node may mint, or `None` for any. Ids with other worker
    /// numbers are ignored, because this node cannot repeat them.
    workers: Option<Vec<u32>>,
    from: UnixNanos,
    from_tick: u128,
    /// The ids read so far, once for each encoding that the list can still be in.
    readings: Vec<LinesRead>,
    lines: u64,
    skipped: u64,
}

/// The ids that one encoding reads from all lines so far.
#[derive(Debug)]
struct LinesRead {
    encoding: usize,
    last: u128,
    ticks: BTreeMap<LaneOfVariant, TickRows>,
}

/// The reason why a line cannot belong to a sorted list of ids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExclusionError {
    /// No encoding can read both this line and all previous lines.
    #[error(
        "line {line}: `{text}` is not an id of `{format}`, or not in the encoding of the earlier lines"
    )]
    NoId {
        /// The line number, counted from 1.
        line: u64,
        /// The text of the line, shortened to 80 characters.
        text: String,
        /// The name of the format.
        format: String,
    },
    /// The id is smaller than the id in the previous line.
    #[error("line {line}: `{text}` is smaller than the id on the line before; sort the file by id")]
    NotSorted {
        /// The line number, counted from 1.
        line: u64,
        /// The text of the line, shortened to 80 characters.
        text: String,
    },
}

/// The maximum number of characters of a line that an error message contains.
const SHOWN_MAX: usize = 80;

impl ExcludedIds {
    /// Creates a reader for a list of ids, of which no line has been read yet.
    ///
    /// `workers` are the worker numbers with which this node may mint, or `None` for any worker
    /// number. Ticks before `from` are not collected, so every session must begin at or after
    /// `from`.
    pub fn of(format: Arc<Format>, workers: Option<Vec<u32>>, from: UnixNanos) -> ExcludedIds {
        // If the epoch is after `from`, the tick of `from` is negative. Use 0 in this case, so that
        // the ticks of all ids are collected.
        let from_tick = format
            .tick
            .map_or(0, |tick| tick.count(format.epoch, from.into()));
        let reading = |encoding| LinesRead {
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
            skipped: 0,
            format,
        }
    }

    /// Reads one line. `text` must not include the line ending.
    ///
    /// # Errors
    /// Returns an [`ExclusionError`] with the line number if the line is not the next id of a
    /// sorted list. The reader cannot be used after an error.
    pub fn read_line(&mut self, text: &str) -> Result<(), ExclusionError> {
        self.lines += 1;
        let ExcludedIds {
            format,
            workers,
            from_tick,
            readings,
            ..
        } = self;
        let listed = |reading: &LinesRead| format.read_listed(reading.encoding, text);
        let is_id = |listed| matches!(listed, ListedId::Id(_) | ListedId::OtherCase(_));
        if !readings.iter().map(listed).any(is_id) {
            return self.skip_line(text);
        }
        let mut is_below = false;
        readings.retain_mut(|reading| {
            let id = match format.read_listed(reading.encoding, text) {
                ListedId::Id(id) if id < reading.last => {
                    is_below = true;
                    return false;
                }
                ListedId::Id(id) => {
                    reading.last = id;
                    id
                }
                ListedId::OtherCase(id) => id,
                ListedId::Outside | ListedId::Unreadable => return false,
            };
            let Some(((worker, variant), tick)) = placed(format, id) else {
                return false;
            };
            let matters = tick >= *from_tick
                && workers
                    .as_ref()
                    .is_none_or(|workers| workers.contains(&worker));
            // This node cannot mint in a tick (time unit, counted since the epoch) whose number
            // needs more than 64 bits, so such a tick need not be excluded.
            if let (true, Ok(tick)) = (matters && tick < u64::MAX.into(), u64::try_from(tick)) {
                let lane = (worker, variant);
                reading.ticks.entry(lane).or_default().add(tick);
            }
            true
        });
        if !self.readings.is_empty() {
            return Ok(());
        }
        let (line, text) = (self.lines, shown(text));
        Err(match is_below {
            true => ExclusionError::NotSorted { line, text },
            false => ExclusionError::NoId {
                line,
                text,
                format: self.format.name.clone(),
            },
        })
    }

    /// Skips a line that is not an id in any encoding.
    ///
    /// # Errors
    /// Returns [`ExclusionError::NoId`] if no encoding can read the line, but ids can have all its
    /// letters. If a damaged id were skipped, the service could mint a duplicate of the intact id.
    fn skip_line(&mut self, text: &str) -> Result<(), ExclusionError> {
        let format = &self.format;
        let is_outside =
            |reading: &LinesRead| format.read_listed(reading.encoding, text) == ListedId::Outside;
        if self.readings.iter().any(is_outside) {
            // Some encodings can read the line as a number, although no id has this number. Keep
            // only these encodings, because all lines of the list are in the same encoding.
            self.readings.retain(is_outside);
        } else if self.format.can_have_letters_of(text) {
            return Err(ExclusionError::NoId {
                line: self.lines,
                text: shown(text),
                format: self.format.name.clone(),
            });
        }
        self.skipped += 1;
        Ok(())
    }

    /// Returns the ticks that the ids of all lines use.
    pub fn ticks(self) -> ExcludedTicks {
        let mut lanes: BTreeMap<LaneOfVariant, TickRows> = BTreeMap::new();
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
            ids: self.lines - self.skipped,
            skipped: self.skipped,
        }
    }
}

fn shown(line: &str) -> String {
    line.chars().take(SHOWN_MAX).collect()
}

/// Returns the tick of an id, and the lane that minted it: the worker number and the variant.
/// Returns `None` if the number is not an id. If the format has no worker field, the worker number
/// is 0.
fn placed(format: &Format, id: u128) -> Option<(LaneOfVariant, u128)> {
    let variant = format.variant_at(id);
    let layout = &format.variants[variant].layout;
    let values = layout.unpack(id).ok()?;
    let worker = layout.sum_of(FieldKind::Worker, &values).unwrap_or(0);
    // The conversion of the worker number never fails, because worker numbers have at most 32 bits.
    Some((
        (u32::try_from(worker).ok()?, variant),
        layout.sum_of(FieldKind::Time, &values)?,
    ))
}

/// A worker number, which keeps the ids of two nodes apart, and the index of a variant. Each such
/// pair has its own sequence.
type LaneOfVariant = (u32, usize);

/// The ticks in which another generator has issued ids of a format, for each worker number. This
/// node mints no id in these ticks.
///
/// Unit: ticks since the epoch. Each range of neighbouring ticks takes 16 bytes of memory. Ticks
/// before the earliest possible start of a session are not kept. [`ExcludedIds`] creates this set
/// of ticks, and its documentation has an example.
#[derive(Debug, Clone)]
pub struct ExcludedTicks {
    from: UnixNanos,
    /// The ticks in which this node must not mint, for each worker number and variant. The ranges
    /// ascend, with at least one free tick between two of them.
    lanes: BTreeMap<LaneOfVariant, Arc<[Range<u64>]>>,
    ids: u64,
    skipped: u64,
}

impl ExcludedTicks {
    /// Returns the number of lines that were read as ids of another generator.
    pub fn ids(&self) -> u64 {
        self.ids
    }

    /// Returns the number of lines that were skipped, because they cannot be ids of the format.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns the number of excluded ticks, summed over all worker numbers.
    pub fn ticks(&self) -> u64 {
        self.lanes
            .values()
            .flat_map(|rows| rows.iter())
            .map(|row| row.end - row.start)
            .sum()
    }

    /// Returns the ticks in which this node must not mint with one worker number and variant, or
    /// `None` if there are none.
    ///
    /// # Panics
    /// Panics if `start`, at which the session starts, is before the instant from which the list of
    /// excluded ticks is complete.
    pub(in crate::minting) fn of_lane(
        &self,
        worker: u32,
        variant: usize,
        start: UnixNanos,
    ) -> Option<Arc<[Range<u64>]>> {
        assert!(
            start >= self.from,
            "a session at {start} begins before {}, from where excluded ids are held",
            self.from
        );
        self.lanes.get(&(worker, variant)).map(Arc::clone)
    }
}

/// Collects the used ticks as ranges while ids are being read.
#[derive(Debug, Default, Clone)]
struct TickRows(Vec<Range<u64>>);

impl TickRows {
    /// Adds a tick to the ranges, in any order, but fastest in ascending order.
    fn add(&mut self, tick: u64) {
        match self.0.last_mut() {
            Some(last) if last.contains(&tick) => {}
            Some(last) if last.end == tick => last.end = tick + 1,
            _ => self.0.push(tick..tick + 1),
        }
    }

    fn append(&mut self, other: TickRows) {
        self.0.extend(other.0);
    }

    /// Returns the collected ranges in ascending order, with adjacent ranges merged.
    fn in_order(mut self) -> Arc<[Range<u64>]> {
        if !self.0.is_sorted_by(|row, next| row.end < next.start) {
            self.0.sort_unstable_by_key(|row| row.start);
            self.0.dedup_by(|next, row| {
                let touches = next.start <= row.end;
                if touches {
                    row.end = row.end.max(next.end);
                }
                touches
            });
        }
        self.0.into()
    }
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
        // The text `575021959` is an id of the format `payment` in base 36, and a much older id in
        // decimal. `rows` reads lines, and returns the number of ticks to skip.
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
        let error = ids.read_line("15735_424").expect_err("no id").to_string();
        assert!(
            error.starts_with("line 2: `15735_424` is not an id of `snowflake`"),
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
        assert_eq!(
            error,
            "line 3: `1I9ZC1000` is smaller than the id on the line before; sort the file by id"
        );
    }

    #[test]
    fn a_line_that_the_format_cannot_have_is_skipped_and_counted() {
        // A list of ids, with some lines that are no ids of the format, and with the heading,
        // quotes and commas that a query tool adds.
        let list = [
            "\u{feff}id",
            "\"03nvoJDIi\",",
            "\"1I9ZC1000\",",
            "'1I9ZD1000'",
            "1I9Zy1000",
            "\t1I9ZE1000 ",
            "1i9zc9000",
            "zzzzzzzzé",
        ];
        let mut ids = reader("payment", None);
        for line in list {
            ids.read_line(line).expect(line);
        }
        let ticks = ids.ticks();
        assert_eq!((ticks.ids(), ticks.skipped(), ticks.ticks()), (4, 4, 4));

        let beyond = 36_u128.pow(9);
        let mut ids = reader("payment", None);
        for line in [(beyond - 1).to_string(), beyond.to_string()] {
            ids.read_line(&line).expect("a number");
        }
        let error = ids.read_line("1I9ZC1000").expect_err("base 36");
        assert!(matches!(error, ExclusionError::NoId { line: 3, .. }));
        let ticks = ids.ticks();
        assert_eq!((ticks.ids(), ticks.skipped()), (2, 1));

        for unclear in ["", "1I9ZC100", "1I9ZC-1000", "1I9ZC10000"] {
            let read = reader("payment", None).read_line(unclear);
            assert!(read.is_err(), "{unclear}: {read:?}");
        }
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

    #[test]
    fn ticks_in_any_order_make_rows_that_ascend() {
        for ticks in [[3, 4, 5, 9, 9], [9, 3, 5, 4, 9], [5, 9, 4, 3, 3]] {
            let mut rows = TickRows::default();
            ticks.into_iter().for_each(|tick| rows.add(tick));
            assert_eq!(*rows.in_order(), [3..6, 9..10], "{ticks:?}");
        }
    }
}
