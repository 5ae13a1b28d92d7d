//! Why nothing is minted now, and what the caller can do about it.

use std::time::Duration;

use crate::time::{UnixNanos, UnixTime};

/// No id was minted and none is lost.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Every lane has used up its sequence for as long as the caller may wait.
    #[error("every sequence of `{format}` is used up for the next {} ms", .retry_after.as_millis())]
    SequenceExhausted {
        /// The format.
        format: String,
        /// When as many ids can be had at once.
        retry_after: Duration,
    },
    /// More ids than this node can ever mint at once.
    #[error("`{format}` mints at most {most} ids at once here, {count} were asked for")]
    TooMany {
        /// The format.
        format: String,
        /// How many were asked for.
        count: u64,
        /// How many can be had, at any time.
        most: u64,
    },
    /// The next id would be above the horizon, and it could not be raised in time.
    #[error("the horizon that this node has reserved could not be raised in time")]
    HorizonReached {
        /// When to try again.
        retry_after: Duration,
    },
    /// The node found no record of earlier ids, and mints once all that can have been issued without one is past.
    #[error(
        "no record of earlier ids was found, as at a first start: ids are minted in {} ms, when any that were issued before \
         are of the past", .retry_after.as_millis()
    )]
    NoRecord {
        /// When.
        retry_after: Duration,
    },
    /// The slot of this node was used further ahead of the clock than time in it may be reserved yet.
    #[error(
        "the slot of this node was used up to {start}, and time there can be reserved in {} ms", .retry_after.as_millis()
    )]
    SlotAhead {
        /// Nothing below is minted.
        start: UnixNanos,
        /// When it can be.
        retry_after: Duration,
    },
    /// The node began without a record, at a stated floor, or with a `start_after` of the format, which begins later: with its first
    /// whole tick.
    #[error(
        "`{format}` begins with its next whole tick, in {} ms: ids of the present one may have been issued before this \
         node began without a record, at a stated floor, or with a start_after", .retry_after.as_millis()
    )]
    NotOpen {
        /// The format.
        format: String,
        /// When its tick begins.
        retry_after: Duration,
    },
    /// The disk failed, and the process is about to end.
    #[error("the store of this node failed, it is restarting")]
    StorageFailed,
    /// The process is about to end.
    #[error("this node is shutting down")]
    Draining,
    /// The clock is behind what was minted before the start.
    #[error("the clock is {} s behind ids that were minted before", .behind.as_secs_f64())]
    ClockBehind {
        /// By how much.
        behind: Duration,
    },
    /// The clock is behind those of the other nodes of a fleet, and most of them agree.
    #[error("the clock is at least {:.1} s behind the median of the clocks of the fleet", .behind.as_secs_f64())]
    ClockBehindFleet {
        /// By how much, for certain.
        behind: Duration,
    },
    /// The clock is ahead of those of the other nodes of a fleet, and most of them agree.
    #[error("the clock is at least {:.1} s ahead of the median of the clocks of the fleet", .ahead.as_secs_f64())]
    ClockAheadOfFleet {
        /// By how much, for certain.
        ahead: Duration,
    },
    /// The clock shows a time that cannot be true.
    #[error("the clock shows {shown}, a time before this program was built")]
    ClockJumped {
        /// What it shows.
        shown: UnixTime,
    },
    /// The format has no ids left: its time field is full.
    #[error("`{format}` ended at {ended}")]
    EpochEnded {
        /// The format.
        format: String,
        /// The first instant it cannot express, or cannot mint.
        ended: UnixTime,
    },
    /// This node has no worker slot now: none was free, or it was lost, or the coordinator was not reached for too long.
    #[error("this node has no worker slot: {}", .lack)]
    NoWorkerSlot {
        /// What is lacking.
        lack: SlotLack,
        /// When to try again.
        retry_after: Duration,
    },
    /// The format begins later than now.
    #[error("`{format}` begins at {begins}")]
    BeforeEpoch {
        /// The format.
        format: String,
        /// Its epoch.
        begins: UnixTime,
    },
}

/// Why a node of a fleet has no worker slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SlotLack {
    /// It has not asked for one long enough.
    #[error("it is asking for one")]
    Asking,
    /// There is no fleet yet.
    #[error("there is no fleet yet, and this node is about to found it")]
    Founding,
    /// There is no fleet yet, and the clocks of those who would found it differ.
    #[error(
        "there is no fleet yet, and the clock of this node is at least {} s ahead of another founder's: one of them is wrong, and \
         the fleet would begin where this one stands", .ahead.as_secs()
    )]
    AheadOfFounder {
        /// By how much, for certain.
        ahead: Duration,
    },
    /// The clock has not passed the instant at which the fleet begins.
    #[error(
        "the fleet begins at {floor}: whoever founded it, or began it anew, could not know of ids that were minted before"
    )]
    BeforeFloor {
        /// That instant.
        floor: UnixNanos,
    },
    /// Every slot is held, or was until a moment ago.
    #[error("each one is held by a node, or may still be in use")]
    NoneFree,
    /// Another node has it.
    #[error("it lost its slot and is asking for another one")]
    Lost,
    /// It was not renewed in time.
    #[error("the coordinator has not answered for so long that the slot may not be used any more")]
    Overdue,
    /// The coordinator was restored from a backup, or wiped: slots that it takes for free may be in use.
    #[error(
        "its coordinator (etcd) has lost what it had acknowledged, as after a restore from a backup: nothing is minted until \
         `idmint fleet fence-restore` was run"
    )]
    Regressed,
    /// It was given back.
    #[error("it was given back, this node is shutting down")]
    Released,
}
