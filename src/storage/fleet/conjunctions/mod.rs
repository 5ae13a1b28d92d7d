//! Anchors of conjunctions, and what stands beside them.

mod anchors;
mod externals;

pub(super) use anchors::anchors_of;
