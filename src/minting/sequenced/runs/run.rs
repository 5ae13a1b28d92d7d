//! A row of ids of one worker number, as numbers that nobody has computed yet.

use crate::id::{FieldKind, Layout, Progression};

/// What the fields of one layout add to an id, so that a stamp becomes an id by two multiplications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::minting) struct Shape {
    /// The share of everything that is the same in every id: constants, qualifier, shard.
    pub(in crate::minting) fixed: u128,
    pub(in crate::minting) worker_stride: u128,
    pub(in crate::minting) object_stride: u128,
    pub(in crate::minting) steps: Steps,
}

/// How far it is from one id to the next, and from one tick to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::minting) struct Steps {
    pub(in crate::minting) time_stride: u128,
    pub(in crate::minting) sequence_stride: u128,
    /// How many values the sequence has.
    pub(in crate::minting) per_tick: u64,
}

impl Shape {
    /// The shape of a sequenced layout on a node with that shard number.
    pub(in crate::minting) fn of(layout: &Layout, shard: u64) -> Shape {
        let stride = |kind| layout.field_of(kind).map_or(0, |field| field.stride);
        let constants: u128 = layout
            .fields()
            .iter()
            .filter_map(|field| field.constant.map(|value| value * field.stride))
            .sum();
        let sequence = layout
            .field_of(FieldKind::Sequence)
            .expect("a sequenced layout has a sequence, checked when it was made");
        Shape {
            fixed: constants + u128::from(shard) * stride(FieldKind::Shard),
            worker_stride: stride(FieldKind::Worker),
            object_stride: stride(FieldKind::Object),
            steps: Steps {
                time_stride: stride(FieldKind::Time),
                sequence_stride: sequence.stride,
                per_tick: u64::try_from(sequence.max + 1)
                    .expect("at most 2^32, checked when the format was made"),
            },
        }
    }
}

/// A row of ids of one worker number: strictly increasing stamps, which nobody else has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub(in crate::minting) steps: Steps,
    /// The share of worker and object, and of all that is fixed.
    pub(in crate::minting) base: u128,
    pub(in crate::minting) tick: u64,
    pub(in crate::minting) sequence: u64,
    pub(in crate::minting) count: u64,
}

impl Run {
    /// How many ids are left in it.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Takes the ids of the first tick off the run, `limit` (at least one) at most; `None` when it is empty.
    pub fn take_progression(&mut self, limit: u64) -> Option<Progression> {
        if self.count == 0 {
            return None;
        }
        let count = (self.steps.per_tick - self.sequence)
            .min(self.count)
            .min(limit.max(1));
        let first = self.base
            + u128::from(self.tick) * self.steps.time_stride
            + u128::from(self.sequence) * self.steps.sequence_stride;
        self.count -= count;
        self.sequence += count;
        if self.sequence == self.steps.per_tick {
            self.sequence = 0;
            self.tick += 1;
        }
        Some(Progression {
            first,
            step: self.steps.sequence_stride,
            count,
        })
    }

    /// The sum of the lengths of all its ids' texts; `None` beyond 64 bits.
    pub(in crate::minting) fn text_len(
        mut self,
        len: impl Fn(u128) -> usize + Copy,
    ) -> Option<u64> {
        let mut total = 0_u64;
        while let Some(progression) = self.take_progression(u64::MAX) {
            total = total.checked_add(progression.total_len(len))?;
        }
        Some(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_on_in_the_next_tick() {
        let steps = Steps {
            time_stride: 100,
            sequence_stride: 2,
            per_tick: 3,
        };
        let mut run = Run {
            steps,
            base: 50,
            tick: 7,
            sequence: 2,
            count: 5,
        };
        let mut ids = Vec::new();
        while let Some(progression) = run.take_progression(u64::MAX) {
            ids.extend(progression.values());
        }
        assert_eq!(ids, [754, 850, 852, 854, 950]);
    }
}
