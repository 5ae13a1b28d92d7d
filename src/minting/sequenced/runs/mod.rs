//! Ids in a row: of one worker number, and of several as one increasing sequence.

mod lane_runs;
mod run;

pub(in crate::minting) use lane_runs::LaneRuns;
pub use run::Run;
pub(in crate::minting) use run::Shape;
#[cfg(test)]
pub(in crate::minting) use run::Steps;
