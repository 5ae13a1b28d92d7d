//! Which worker numbers a node has in a format: one for each lane.

use std::num::NonZeroU32;

use crate::id::{FieldKind, Format};

/// What the configuration says about worker numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneRule {
    /// The number of this node, below `slots`.
    pub slot: u32,
    /// How many nodes there can be.
    pub slots: u32,
    /// How many lanes a format gets, unless it says so itself.
    pub lanes: LaneCount,
    /// The number in fields of kind shard.
    pub shard: u64,
}

/// How many lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneCount {
    /// As many as fit, at most so many.
    UpTo(u32),
    /// So many, or the program does not start.
    Exactly(u32),
}

/// The worker numbers of this node in one format: `first_worker + lane x slots + slot`.
///
/// Two nodes of different slots share none, whatever their numbers of lanes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lanes {
    workers: Vec<u32>,
}

/// The slot or the lanes do not fit the format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaneError {
    /// A worker number beyond the last.
    #[error(
        "format `{format}`: lane {lane} of slot {slot} would be worker {worker}, the last one is {last}; lower worker.slots or worker.lanes"
    )]
    WorkerTooHigh {
        /// The format.
        format: String,
        /// The lane, from 0.
        lane: u32,
        /// This node's slot.
        slot: u32,
        /// The number it would have.
        worker: u64,
        /// The greatest that the format, or its `worker_range`, has.
        last: u128,
    },
    /// A format that cannot tell two nodes apart.
    #[error(
        "format `{format}` has no field of kind worker, so only one node can mint it: worker.slots is {slots}, it must be 1"
    )]
    NoWorkerField {
        /// The format.
        format: String,
        /// How many nodes there can be.
        slots: u32,
    },
    /// The configured shard number is beyond the field.
    #[error(
        "format `{format}`: worker.shard = {shard} does not fit, the field `{field}` ends at {last}"
    )]
    ShardTooHigh {
        /// The format.
        format: String,
        /// The field of kind shard.
        field: String,
        /// The configured number.
        shard: u64,
        /// The greatest it holds.
        last: u128,
    },
}

impl Lanes {
    /// The worker numbers of a format under a rule.
    ///
    /// # Errors
    /// [`LaneError`] when not even one lane fits, or not as many as were asked for.
    pub fn of(format: &Format, rule: &LaneRule) -> Result<Lanes, LaneError> {
        let layout = &format.variants[0].layout;
        if let Some(field) = layout
            .field_of(FieldKind::Shard)
            .filter(|field| u128::from(rule.shard) > field.max)
        {
            let (format, name) = (format.name.clone(), field.name.clone());
            return Err(LaneError::ShardTooHigh {
                format,
                field: name,
                shard: rule.shard,
                last: field.max,
            });
        }
        let Some(field) = layout.field_of(FieldKind::Worker) else {
            return match rule.slots {
                1 => Ok(Lanes { workers: vec![0] }),
                slots => Err(LaneError::NoWorkerField {
                    format: format.name.clone(),
                    slots,
                }),
            };
        };
        let last = field
            .max
            .min(format.last_worker.map_or(u128::MAX, u128::from));
        let (wanted, exact) = match (format.lanes, rule.lanes) {
            (Some(lanes), _) | (None, LaneCount::Exactly(lanes)) => (lanes, true),
            (None, LaneCount::UpTo(lanes)) => (lanes, false),
        };
        let mut workers = Vec::new();
        for lane in 0..wanted.max(1) {
            let worker = u64::from(format.first_worker)
                + u64::from(lane) * u64::from(rule.slots)
                + u64::from(rule.slot);
            match u32::try_from(worker) {
                Ok(number) if u128::from(worker) <= last => workers.push(number),
                _ if !exact && lane > 0 => break,
                _ => {
                    let (format, slot) = (format.name.clone(), rule.slot);
                    return Err(LaneError::WorkerTooHigh {
                        format,
                        lane,
                        slot,
                        worker,
                        last,
                    });
                }
            }
        }
        Ok(Lanes { workers })
    }

    /// Whether a batch may take several of them: its ids, tick by tick and lane by lane, are then in order.
    pub(in crate::minting) fn share_a_batch(&self, format: &Format) -> bool {
        self.workers.len() > 1 && format.has_lanes_in_order()
    }

    /// The worker numbers, one for each lane.
    pub fn workers(&self) -> &[u32] {
        &self.workers
    }
}

/// The worker numbers of every slot in one format, of which a node leases one slot after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotLanes {
    /// Of every slot; that of the rule is the first one.
    rule: LaneRule,
    /// Those of the first slot. No other one has more.
    most: Lanes,
}

impl SlotLanes {
    /// The worker numbers of a format in slots from 0 to below `slots`.
    ///
    /// # Errors
    /// [`LaneError`] when the last slot has not even one lane, or not as many as were asked for.
    pub fn of(
        format: &Format,
        slots: NonZeroU32,
        lanes: LaneCount,
        shard: u64,
    ) -> Result<SlotLanes, LaneError> {
        let rule = LaneRule {
            slot: 0,
            slots: slots.get(),
            lanes,
            shard,
        };
        Lanes::of(
            format,
            &LaneRule {
                slot: slots.get() - 1,
                ..rule
            },
        )?;
        Ok(SlotLanes {
            rule,
            most: Lanes::of(format, &rule)?,
        })
    }

    /// As many as any slot has.
    pub(in crate::minting) fn most(&self) -> &Lanes {
        &self.most
    }

    /// Those of one slot, in the format that they were checked for.
    ///
    /// # Panics
    /// When there is no such slot.
    pub(in crate::minting) fn of_slot(&self, format: &Format, slot: u32) -> Lanes {
        assert!(
            slot < self.rule.slots,
            "slot {slot} is one of {}",
            self.rule.slots
        );
        Lanes::of(format, &LaneRule { slot, ..self.rule })
            .expect("the last slot fits, so each one before it does")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::preset;

    #[test]
    fn leased_slots_share_no_worker_number_and_the_last_one_is_checked_first() {
        let (format, slots) = (preset("snowflake"), NonZeroU32::new(5).expect("not zero"));
        let lanes = SlotLanes::of(&format, slots, LaneCount::UpTo(8), 0).expect("fits");
        let mut all: Vec<u32> = (0..5)
            .flat_map(|slot| lanes.of_slot(&format, slot).workers)
            .collect();
        all.sort_unstable();
        assert_eq!(all, (0..32).collect::<Vec<_>>());
        assert_eq!(lanes.most().workers().len(), 7);
        let too_many = SlotLanes::of(
            &format,
            NonZeroU32::new(33).expect("not zero"),
            LaneCount::UpTo(8),
            0,
        );
        assert!(matches!(
            too_many,
            Err(LaneError::WorkerTooHigh { slot: 32, .. })
        ));
    }

    fn workers(name: &str, slot: u32, slots: u32, lanes: LaneCount) -> Result<Vec<u32>, LaneError> {
        Lanes::of(
            &preset(name),
            &LaneRule {
                slot,
                slots,
                lanes,
                shard: 0,
            },
        )
        .map(|lanes| lanes.workers)
    }

    #[test]
    fn alone_a_node_has_eight_lanes_where_they_fit() {
        assert_eq!(
            workers("payment", 0, 1, LaneCount::UpTo(8)),
            Ok((0..8).collect())
        );
        assert_eq!(
            workers("conjunction-v1", 0, 1, LaneCount::UpTo(8)),
            Ok(vec![1])
        );
    }

    #[test]
    fn nodes_of_different_slots_share_no_worker_number() {
        let slots = 5;
        let mut all: Vec<u32> = (0..slots)
            .flat_map(|slot| workers("snowflake", slot, slots, LaneCount::UpTo(8)).expect("fits"))
            .collect();
        all.sort_unstable();
        assert_eq!(all, (0..32).collect::<Vec<_>>());
    }

    #[test]
    fn a_worker_number_that_does_not_fit_is_refused_with_format_and_limit() {
        let error = workers("payment", 36, 37, LaneCount::UpTo(8)).expect_err("36 digits");
        assert_eq!(
            error.to_string(),
            "format `payment`: lane 0 of slot 36 would be worker 36, the last one is 35; lower worker.slots or worker.lanes"
        );
        assert!(workers("payment", 0, 1, LaneCount::Exactly(37)).is_err());
    }

    #[test]
    fn a_shard_number_that_does_not_fit_is_refused_with_field_and_limit() {
        let rule = LaneRule {
            slot: 0,
            slots: 1,
            lanes: LaneCount::UpTo(8),
            shard: 32,
        };
        let error = Lanes::of(&preset("snowflake"), &rule).expect_err("5 bits");
        assert_eq!(
            error.to_string(),
            "format `snowflake`: worker.shard = 32 does not fit, the field `shard` ends at 31"
        );
    }
}
