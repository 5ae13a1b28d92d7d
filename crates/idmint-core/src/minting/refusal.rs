//! The reasons why ids cannot be minted now, and what the caller can do.

use std::time::Duration;

use crate::time::{UnixNanos, UnixTime, format_seconds};

/// The reason why a valid request got no ids. No id was minted or lost.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// All worker numbers of this node have used up their sequences, and the next free ids are due
    /// later than the caller may wait.
    #[error(
        "`{format}` has no free ids for the next {} ms, because all its sequences are used up; retry then", .retry_after.as_millis()
    )]
    SequenceExhausted {
        /// The name of the format.
        format: String,
        /// The time after which the requested number of ids will be available.
        retry_after: Duration,
    },
    /// The request is for more ids than this node can mint at once.
    #[error(
        "`{format}` mints at most {most} ids at once with the lanes of this node, but {count} were requested"
    )]
    TooMany {
        /// The name of the format.
        format: String,
        /// The number of ids that the caller requested.
        count: u64,
        /// The greatest count that this node can grant at once.
        most: u64,
    },
    /// The ids would be above the horizon, and the store did not confirm a higher horizon in time.
    #[error(
        "the store did not confirm a new time reservation (horizon) of this node in time; retry"
    )]
    HorizonReached {
        /// The time after which the caller should try again.
        retry_after: Duration,
    },
    /// The node found no record of earlier ids. It waits until the times of all ids that it may
    /// have issued earlier lie in the past.
    #[error(
        "the data directory has no record of earlier ids: minting begins in {} ms, so that no earlier id is \
         repeated", .retry_after.as_millis()
    )]
    NoRecord {
        /// The time after which minting starts.
        retry_after: Duration,
    },
    /// Earlier ids with the worker numbers of this node may have times far ahead of the clock.
    /// Minting must wait, so that no id is repeated.
    #[error(
        "earlier ids of this node's slot may reach {start}, far ahead of the clock; the node can mint in {} \
         ms", .retry_after.as_millis()
    )]
    SlotAhead {
        /// The instant from which new ids may be minted. Earlier ids may have any time before it.
        start: UnixNanos,
        /// The wait until this node can reserve time for new ids, from `start` on.
        retry_after: Duration,
    },
    /// The format starts minting at the beginning of its next whole tick, because ids of the
    /// current tick may already exist. Either the node began without a record of earlier ids or at
    /// a given floor, or the format has a `start_after`.
    #[error(
        "`{format}` begins with its next whole tick, in {} ms, because ids of the current tick may exist: this node \
         started without a record of earlier ids, at a floor or with start_after", .retry_after.as_millis()
    )]
    NotOpen {
        /// The name of the format.
        format: String,
        /// The time after which the next whole tick begins.
        retry_after: Duration,
    },
    /// Writing to disk failed, and the process is about to exit.
    #[error("the store of this node failed, so the node is restarting; see its log")]
    StorageFailed,
    /// The process is shutting down.
    #[error("this node is shutting down; send the request to another node")]
    Draining,
    /// The clock is behind the times of ids that were minted before the process started.
    #[error(
        "the clock of this node is {} behind ids that were minted before; check the clock (chronyc tracking)", format_seconds(*.behind)
    )]
    ClockBehind {
        /// The time by which the clock is behind these ids.
        behind: Duration,
    },
    /// The clock of this node is behind the clocks of the other nodes in the fleet, most of which
    /// agree with each other.
    #[error(
        "the clock of this node is at least {:.1} s behind the median clock of the fleet; check the clock \
         (chronyc tracking)", .behind.as_secs_f64()
    )]
    ClockBehindFleet {
        /// A lower bound of the time by which the clock is behind the median of the fleet.
        behind: Duration,
    },
    /// The clock of this node is ahead of the clocks of the other nodes in the fleet, most of which
    /// agree with each other.
    #[error(
        "the clock of this node is at least {:.1} s ahead of the median clock of the fleet; check the clock \
         (chronyc tracking)", .ahead.as_secs_f64()
    )]
    ClockAheadOfFleet {
        /// A lower bound of the time by which the clock is ahead of the median of the fleet.
        ahead: Duration,
    },
    /// The clock shows a time before this program was built, which cannot be right.
    #[error("the clock shows {shown}, which is before this program was built; correct the clock")]
    ClockJumped {
        /// The time that the clock shows.
        shown: UnixTime,
    },
    /// The format has too few ids left, because its time field is full or its ids have reached
    /// `mint_below`.
    #[error(
        "`{format}` has too few ids left before its end at {ended}; use a format that succeeds it"
    )]
    EpochEnded {
        /// The name of the format.
        format: String,
        /// The first instant that the format cannot represent or mint.
        ended: UnixTime,
    },
    /// This node has no worker slot now, for example because no slot was free, the slot was lost,
    /// or the coordinator was unreachable for too long.
    #[error("this node has no worker slot: {}", .lack)]
    NoWorkerSlot {
        /// The reason why this node has no slot.
        lack: SlotLack,
        /// The time after which the caller should try again.
        retry_after: Duration,
    },
    /// The current time is before the format's epoch.
    #[error("`{format}` mints nothing before its epoch, {begins}")]
    BeforeEpoch {
        /// The name of the format.
        format: String,
        /// The epoch of the format.
        begins: UnixTime,
    },
}

impl Refusal {
    /// `true` if the request was refused only because the node is starting, and the node will
    /// probably mint within `max`.
    pub fn ends_with_the_start(&self, max: Duration) -> bool {
        match self {
            Refusal::HorizonReached { retry_after } | Refusal::NoRecord { retry_after } => {
                *retry_after <= max
            }
            Refusal::NoWorkerSlot { lack, retry_after } => {
                let is_starting = matches!(
                    lack,
                    SlotLack::Asking | SlotLack::Founding | SlotLack::BeforeFloor { .. }
                );
                is_starting && *retry_after <= max
            }
            _ => false,
        }
    }
}

/// The reason why a node of a fleet has no worker slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SlotLack {
    /// The node has requested a slot, but has not received one yet.
    #[error("the node has requested a slot and waits for the response")]
    Asking,
    /// No fleet exists yet, and this node is about to create it.
    #[error("there is no fleet yet, and this node is about to found it")]
    Founding,
    /// No fleet exists yet, and the clocks of the nodes that could create it differ.
    #[error(
        "there is no fleet yet, and the clock of this node is at least {} s ahead of another node that waits to found \
         it: one of the two clocks is wrong; correct it, because the fleet would begin at this node's \
         time", .ahead.as_secs()
    )]
    AheadOfFounder {
        /// A lower bound of how far this node's clock is ahead of the clock of another node that
        /// could also create the fleet. The creator's clock determines the earliest time of ids.
        ahead: Duration,
    },
    /// The clock of this node has not reached the instant at which the fleet begins to mint.
    #[error(
        "the fleet begins at {floor}, because the node that founded or fenced it could not know earlier ids"
    )]
    BeforeFloor {
        /// The instant at which the fleet begins to mint.
        floor: UnixNanos,
    },
    /// Every slot is held by a node, or may still be in use by the last node that held it.
    #[error(
        "all slots are held by nodes, or may still be in use; stop a spare node, or wait until an unused slot \
         is free again"
    )]
    NoneFree,
    /// Another node now holds the slot that this node had.
    #[error("the node lost its slot and is requesting another one")]
    Lost,
    /// The coordinator did not renew the lease of the slot in time.
    #[error(
        "the coordinator (etcd) did not renew the lease of the slot in time, because etcd does not answer, has no \
         quorum, is full or refuses this node"
    )]
    Overdue,
    /// The coordinator was restored from a backup, was erased, or is another etcd. A slot that it
    /// considers free may be in use.
    #[error(
        "the coordinator (etcd) has lost acknowledged writes, as after a restore from a backup, or is another etcd: \
         check etcd.endpoints, then run `idmint fleet fence-restore` to mint again"
    )]
    Regressed,
    /// The node released the slot because it is shutting down.
    #[error("the node released its slot because it is shutting down")]
    Released,
}
