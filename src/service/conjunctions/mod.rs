//! Conjunctions: reports become ids, and what is stored of them is listed.

mod group;
mod register;

pub use group::GroupedReports;
pub use register::{CONJUNCTIONS_MAX, ConjunctionList, ListQuery, ListedConjunction};
