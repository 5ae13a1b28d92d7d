//! Stores all received ids exactly in little memory, and compares them with each other.
//!
//! Ids that differ by the step of their format's sequence are stored together as a run, after each
//! of them was checked. 10^9 ids give a few million runs. Two runs with the same step share an id
//! if and only if they overlap and have the same remainder modulo the step. After sorting the runs
//! by remainder and first id, comparing neighbours is therefore sufficient.

/// The ids from `first` to `last`, each one step greater than the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    first: u128,
    last: u128,
}

/// The runs of ids of one format, in the order in which they arrived.
#[derive(Debug, Clone)]
pub(crate) struct Runs {
    step: u128,
    runs: Vec<Run>,
}

/// The error for two runs that have an id in common.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shared {
    earlier: Run,
    later: Run,
}

impl Runs {
    /// Creates an empty set of ids. `step` is the difference between two ids whose sequences differ
    /// by one.
    pub(crate) fn new(step: u128) -> Runs {
        Runs {
            step,
            runs: Vec::new(),
        }
    }

    /// Adds the complete ids of a response body, each in `width` big-endian bytes. Returns the
    /// number of these ids.
    ///
    /// # Panics
    /// Panics if `increases` is `true` and an id is not greater than the previous one.
    pub(crate) fn take(&mut self, body: &[u8], width: usize, increases: bool) -> u64 {
        let mut ids = body.chunks_exact(width).map(number);
        let Some(first) = ids.next() else { return 0 };
        let (mut run, mut count) = (Run { first, last: first }, 1);
        for id in ids {
            assert!(
                !increases || id > run.last,
                "{id} comes after {} in one batch",
                run.last
            );
            if id.checked_sub(run.last) == Some(self.step) {
                run.last = id;
            } else {
                self.runs.push(run);
                run = Run {
                    first: id,
                    last: id,
                };
            }
            count += 1;
        }
        self.runs.push(run);
        count
    }

    /// Adds the runs of `other`.
    pub(crate) fn append(&mut self, mut other: Runs) {
        assert_eq!(self.step, other.step);
        self.runs.append(&mut other.runs);
    }

    /// Returns the number of runs.
    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }

    /// Compares every id with every other one, and returns the number of ids.
    ///
    /// # Errors
    /// Returns [`Shared`] if an id occurs twice.
    pub(crate) fn check(mut self) -> Result<u128, Shared> {
        let step = self.step;
        self.runs
            .sort_unstable_by_key(|run| (run.first % step, run.first));
        for pair in self.runs.windows(2) {
            let [earlier, later] = [pair[0], pair[1]];
            if earlier.first % step == later.first % step && earlier.last >= later.first {
                return Err(Shared { earlier, later });
            }
        }
        Ok(self
            .runs
            .iter()
            .map(|run| (run.last - run.first) / step + 1)
            .sum())
    }
}

fn number(bytes: &[u8]) -> u128 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u128::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(ids: impl IntoIterator<Item = u32>) -> Vec<u8> {
        ids.into_iter().flat_map(u32::to_be_bytes).collect()
    }

    /// Checks batches of ids, which may be in any order, and returns the result.
    fn check(step: u128, batches: &[Vec<u32>]) -> Result<u128, Shared> {
        let mut runs = Runs::new(step);
        for batch in batches {
            assert_eq!(
                runs.take(&packed(batch.iter().copied()), 4, false),
                batch.len() as u64
            );
        }
        runs.check()
    }

    #[test]
    fn ids_that_all_differ_are_counted() {
        assert_eq!(check(1, &[]), Ok(0));
        assert_eq!(
            check(
                1,
                &[(10..20).collect(), (20..25).collect(), (0..10).collect()]
            ),
            Ok(25)
        );
        // The ranges of these batches overlap, but their remainders modulo 16 differ.
        assert_eq!(
            check(
                16,
                &[
                    (0..10).map(|n| 16 * n).collect(),
                    (0..10).map(|n| 16 * n + 5).collect()
                ]
            ),
            Ok(20)
        );
        // This batch contains a jump to a greater id, and a jump back.
        assert_eq!(check(3, &[vec![3, 6, 9, 100, 103, 12, 15]]), Ok(7));
    }

    #[test]
    fn an_id_that_came_twice_is_found_wherever_it_lies() {
        let thousand: Vec<u32> = (5_000..6_000).collect();
        for doubled in [5_000, 5_001, 5_500, 5_998, 5_999] {
            assert!(
                check(1, &[thousand.clone(), vec![doubled]]).is_err(),
                "{doubled}"
            );
            assert!(
                check(1, &[vec![doubled], vec![1, 2, 3], thousand.clone()]).is_err(),
                "{doubled}"
            );
            assert!(
                check(1, &[vec![1, 2, doubled, 9_000], thousand.clone()]).is_err(),
                "{doubled}"
            );
        }
        for outside in [4_999, 6_000] {
            assert_eq!(check(1, &[thousand.clone(), vec![outside]]), Ok(1_001));
        }
        let strides: Vec<u32> = (0..1_000).map(|n| 7 * n + 2).collect();
        assert!(check(7, &[strides.clone(), vec![7 * 999 + 2]]).is_err());
        assert!(check(7, &[strides.clone(), vec![9, 16]]).is_err());
        assert_eq!(check(7, &[strides, vec![10, 17]]), Ok(1_002));
        assert!(check(1, &[vec![4, 4]]).is_err(), "twice in one batch");
    }

    #[test]
    fn one_doubled_id_among_a_million_in_many_runs_is_found() {
        // Runs of 7 ids with a step of 3, and gaps between the runs. The duplicate id is in the
        // middle of a run.
        let ids = (0..1_000_000_u32).map(|n| n / 7 * 40 + n % 7 * 3);
        let mut runs = Runs::new(3);
        assert_eq!(runs.take(&packed(ids), 4, true), 1_000_000);
        let mut doubled = Runs::new(3);
        doubled.take(&packed([70_000 * 40 + 9]), 4, true);
        runs.append(doubled);
        assert!(runs.check().is_err());
    }

    #[test]
    #[should_panic(expected = "5 comes after 5 in one batch")]
    fn a_batch_that_does_not_increase_is_found() {
        Runs::new(1).take(&packed([4, 5, 5]), 4, true);
    }

    #[test]
    fn half_an_id_at_the_end_of_a_cut_body_is_left_out() {
        let mut runs = Runs::new(1);
        assert_eq!(runs.take(&packed([4, 5, 6])[..10], 4, true), 2);
        assert_eq!(runs.check(), Ok(2));
    }
}
