//! How an id comes to be. Decides, and does no I/O: whatever must outlast a crash leaves here as a plan and comes back
//! as [`Durable`].

mod batch;
mod chained;
mod durable;
mod grouped;
mod horizon;
mod lanes;
mod mint;
mod order;
mod pace;
mod random;
mod records;
mod refusal;
mod run;
mod sequenced;
mod sequencer;
mod stamps;
mod stats;
mod sync;
mod tenure;

pub use batch::Batch;
pub use chained::{
    AHEAD_MAX, AppendPlan, AppendRefusal, ChainChecker, ChainError, ChainLines, ChainVerdict, Entry, Event, EventError,
    EventId, EventTime, Head, KeyHash, LedgerId, LedgerOrder, LineTooLong, Link, PlaceError, RequestMark,
    canonical_json, digest_of,
};
pub use durable::Durable;
pub use grouped::{
    Anchor, AnchorPlan, GroupError, GroupOrder, GroupRefusal, Grouped, GroupedMinter, NewAnchors, Pair, PairOrder,
    Report, ReportError, Role, Sighting, Tca,
};
pub use horizon::{HorizonPlan, Reservation};
pub use lanes::{LaneCount, LaneError, LaneRule, Lanes};
pub use mint::{Denied, Granted, Mint, MintSettings};
pub use order::{Order, OrderError};
pub use pace::{Moment, Pace};
pub use random::{RandomIds, RandomMinter, Randomness};
pub use records::RecordPlan;
pub use refusal::Refusal;
pub use run::Run;
pub use sequenced::SequencedMinter;
pub use sequencer::{Grant, Sequencer, Shortage};
pub use stamps::StampLine;
pub use stats::MintStats;
pub use tenure::Tenure;
