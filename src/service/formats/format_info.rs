//! What this node says of a format that it serves.

use std::sync::Arc;

use super::served_format::{IdSource, ServedFormat, ToldFormat};
use crate::service::Service;
use crate::wire::FormatInfo;

impl Service {
    /// A format as this node serves it: with its worker numbers here, and the greatest count of one request.
    pub fn format_info(&self, served: &ServedFormat) -> FormatInfo {
        FormatInfo::new(served.format(), &served.workers(), self.count_max(served))
    }

    /// The same in JSON, written once for as long as it stays the same.
    pub fn format_json(&self, served: &ServedFormat) -> Arc<str> {
        let (workers, count_max) = (served.workers(), self.count_max(served));
        let mut told = served.told();
        if let Some(told) = told
            .as_ref()
            .filter(|told| told.workers == workers && told.count_max == count_max)
        {
            return Arc::clone(&told.json);
        }
        let info = FormatInfo::new(served.format(), &workers, count_max);
        let json: Arc<str> = serde_json::to_string(&info)
            .expect("texts, numbers and lists of them")
            .into();
        *told = Some(ToldFormat {
            workers,
            count_max,
            json: Arc::clone(&json),
        });
        json
    }

    /// The greatest count of one request.
    fn count_max(&self, served: &ServedFormat) -> Option<u64> {
        let configured = u64::from(self.limits().batch_max);
        match served.source() {
            IdSource::Count(minter) => Some(
                minter
                    .count_max(0)
                    .map_or(configured, |most| most.min(configured)),
            ),
            IdSource::Reports(_) => Some(configured),
            // Events are limited by the length of the body.
            IdSource::Events | IdSource::DecodeOnly => None,
        }
    }
}
