//! The same happening gets the same id: a report names an instant and two objects, and these make the id.

mod anchor;
pub mod cdm;
mod group;
mod minter;
mod report;

pub use anchor::{Anchor, AnchorPlan, Pair, Tca};
pub use cdm::{CdmError, CdmForm, Document, Message, Noted, without_bom};
pub use group::{GroupError, GroupOrder, GroupRefusal, Grouped, NewAnchors, Sighting};
pub use minter::{GroupedMinter, PairOrder};
pub use report::{Report, ReportError, Role};
