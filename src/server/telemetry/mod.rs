//! What the operator reads: the banner and the log.

mod output;
mod repetitions;
mod telemetry;

pub use telemetry::Telemetry;
