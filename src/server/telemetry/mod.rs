//! What the operator reads: the banner and the log.

mod audit;
mod output;
mod repetitions;
mod telemetry;
mod whole_lines;

pub use audit::AuditError;
pub(in crate::server) use audit::{Act, Audit};
pub use telemetry::Telemetry;
