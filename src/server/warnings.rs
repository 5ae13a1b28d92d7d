//! What an operator should know although everything works.

use std::time::Duration;

use tracing::warn;

use crate::id::FieldKind;
use crate::service::Service;
use crate::time::UnixTime;

/// A format that ends sooner than this is warned of at every start.
const END_WARNED: Duration = Duration::from_secs(365 * 86_400);

/// Warns of formats that end within a year, and of ids that will belong to no domain.
pub(super) fn warn_of(service: &Service) {
    let horizon: UnixTime = service.clock().now().after(END_WARNED).into();
    for format in service.formats().iter().map(|served| served.format()) {
        if let Some(end) = format.end().filter(|end| *end < horizon) {
            warn!(
                format = format.name,
                "{} ends at {end}: plan its successor, such as the same layout with a later epoch", format.name
            );
        }
        // The objects of other rules are no domains.
        let has_object = format.variants[0].layout.field_of(FieldKind::Object).is_some();
        let has_domain = has_object && format.rule.is_counted();
        if has_domain && service.siq().domains.is_empty() {
            warn!(
                format = format.name,
                "no domain is configured (siq.domains): ids of {} are for development", format.name
            );
        }
    }
}
