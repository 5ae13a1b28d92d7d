//! What this node says of a format that it serves.

use super::served_format::{IdSource, ServedFormat};
use crate::service::Service;
use crate::wire::FormatInfo;

impl Service {
    /// A format as this node serves it: with its worker numbers here, and the greatest count of one request.
    pub fn format_info(&self, served: &ServedFormat) -> FormatInfo {
        let configured = u64::from(self.limits().batch_max);
        let batch_max = match served.source() {
            IdSource::Count(minter) => Some(minter.count_max(0).map_or(configured, |most| most.min(configured))),
            IdSource::Reports(_) => Some(configured),
            // Events are limited by the length of the body.
            IdSource::Events | IdSource::DecodeOnly => None,
        };
        FormatInfo::new(served.format(), &served.workers(), batch_max)
    }
}
