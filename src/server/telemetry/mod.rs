//! What the operator reads: the banner, the log, the audit trail and the metrics.

mod audit;
mod output;
mod registry;
mod repetitions;
mod telemetry;
mod whole_lines;

pub use audit::AuditError;
pub(in crate::server) use audit::{Act, Audit};
pub(in crate::server) use registry::registry;
pub use telemetry::Telemetry;
