//! The worker numbers that a node uses for a format. Each of them is called a lane.

use std::num::NonZeroU32;

use crate::id::{FieldKind, Format};

/// The settings from which the worker numbers of a node are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneRule {
    /// The slot of this node, which is its place among all possible nodes. It must be less than
    /// `slots`.
    pub slot: u32,
    /// The maximum number of nodes, which is the number of slots.
    pub slots: u32,
    /// The number of lanes for formats that do not set this number themselves.
    pub lanes: LaneCount,
    /// The value of every field of kind shard.
    pub shard: u64,
}

/// The requested number of lanes of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneCount {
    /// This number of lanes, or fewer if the format has too few worker numbers.
    UpTo(u32),
    /// Exactly this number of lanes. If the format has too few worker numbers, the process does not
    /// start.
    Exactly(u32),
}

/// The worker numbers of this node in one format. Lane `lane` of the node has the worker number
/// `first_worker + lane x slots + slot`. For example, with four slots and a `first_worker` of 0,
/// the lanes of slot 1 are 1, 5, 9 and so on.
///
/// Nodes in different slots have different worker numbers, even if they have different numbers of
/// lanes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lanes {
    workers: Vec<u32>,
}

/// The reason why the configured worker numbers or the shard number do not fit a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaneError {
    /// The node would need a worker number above the greatest one of the format.
    #[error(
        "format `{format}`: lane {lane} of slot {slot} would be worker {worker}, but the last is {last}; lower worker.slots or worker.lanes"
    )]
    WorkerTooHigh {
        /// The name of the format.
        format: String,
        /// The index of the lane, counted from 0.
        lane: u32,
        /// The slot of this node.
        slot: u32,
        /// The worker number that the lane would have.
        worker: u64,
        /// The greatest worker number of the format, or of its `worker_range`.
        last: u128,
    },
    /// The format has no worker field, so two nodes would mint the same ids.
    #[error(
        "format `{format}` has no field of kind worker, so only one node can mint it: worker.slots is {slots}, but must be 1"
    )]
    NoWorkerField {
        /// The name of the format.
        format: String,
        /// The maximum number of nodes in the configuration.
        slots: u32,
    },
    /// The shard number in the configuration does not fit the shard field.
    #[error(
        "format `{format}`: worker.shard = {shard} exceeds {last}, the largest value of field `{field}`"
    )]
    ShardTooHigh {
        /// The name of the format.
        format: String,
        /// The name of the shard field.
        field: String,
        /// The configured shard number.
        shard: u64,
        /// The greatest value of the shard field.
        last: u128,
    },
}

impl Lanes {
    /// Computes the worker numbers of a node in `format`, using the settings in `rule`.
    ///
    /// # Errors
    /// Returns a [`LaneError`] if the first worker number or the shard number does not fit the
    /// format, if an exact number of lanes is set and not all of them fit, or if the format has no
    /// worker field although `rule` has several slots.
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

    /// `true` if the node has several worker numbers and one batch may contain ids of several of
    /// them. The ids of such a batch ascend only if their fields are in the order time, worker
    /// number, sequence.
    pub(in crate::minting) fn share_a_batch(&self, format: &Format) -> bool {
        self.workers.len() > 1 && format.has_lanes_in_order()
    }

    /// Returns the worker numbers of the node. The first one is lane 0, the second one is lane 1,
    /// and so on.
    pub fn workers(&self) -> &[u32] {
        &self.workers
    }
}

/// The worker numbers of a format in each slot. A node leases one slot at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotLanes {
    /// The rule for the worker numbers of slot 0. The rules of other slots differ only in `slot`.
    rule: LaneRule,
    /// The worker numbers of slot 0. No other slot has more of them.
    most: Lanes,
}

impl SlotLanes {
    /// Computes the worker numbers of a format for all slots from 0 to `slots - 1`.
    ///
    /// # Errors
    /// Returns a [`LaneError`] if the shard number does not fit the format, or if the format has
    /// too few worker numbers for every slot. Every slot needs one lane, or the exact number of
    /// lanes if one is set.
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

    /// Returns the worker numbers of slot 0. No other slot has more, because the worker numbers of
    /// later slots are higher, and fewer of them may fit the format.
    pub(in crate::minting) fn most(&self) -> &Lanes {
        &self.most
    }

    /// Returns the worker numbers of a node in the slot with the number `slot`. `format` must be
    /// the format that was passed to [`SlotLanes::of`].
    ///
    /// # Panics
    /// Panics if the slot does not exist.
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
            "format `payment`: lane 0 of slot 36 would be worker 36, but the last is 35; lower worker.slots or worker.lanes"
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
            "format `snowflake`: worker.shard = 32 exceeds 31, the largest value of field `shard`"
        );
    }
}
