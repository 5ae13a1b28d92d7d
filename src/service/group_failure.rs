//! Why reports get no ids.

use super::error::ServiceError;
use crate::conjunction::GroupRefusal;

/// Why reports get no ids; then none of them does.
#[derive(Debug)]
pub enum GroupFailure {
    /// One of the reports is at fault.
    Report(GroupRefusal),
    /// None of them is.
    Service(ServiceError),
}
