//! The same happening gets the same id: a report names an instant and two objects, and these make the id.

mod minter;
mod report;

pub use minter::{GroupedMinter, PairOrder};
pub use report::{Report, ReportError, Role};
