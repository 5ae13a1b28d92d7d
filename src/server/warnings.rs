//! What an operator should know although everything works.

use std::time::Duration;

use tracing::warn;

use crate::id::{FieldKind, Format, PRESETS};
use crate::server::config::Config;
use crate::service::Service;
use crate::time::UnixTime;

/// A format that ends sooner than this is warned of at every start.
const END_WARNED: Duration = Duration::from_secs(365 * 86_400);

/// What is odd about a configuration that is sound: formats that mint nothing yet, or any more, or end within a year, or are not
/// what their name says elsewhere; settings of the file that the environment goes over.
pub fn warnings(service: &Service, config: &Config) -> Vec<String> {
    let now = service.clock().now();
    let (soon, now) = (now.after(END_WARNED).into(), now.into());
    let mut warnings = config.origins.overruled.clone();
    for format in service.formats().iter().map(|served| served.format()) {
        warnings.extend(of_time(format, now, soon));
        let is_built_in = PRESETS.iter().any(|preset| preset.name == format.name);
        let has_other_fields = config
            .formats
            .definitions
            .get(&format.name)
            .is_some_and(|table| table.contains_key("fields"));
        if is_built_in && has_other_fields {
            warnings.push(format!(
                "{} is not the built-in format of that name, but the one configured",
                format.name
            ));
        }
    }
    warnings
}

/// Logs what is odd about the configuration, and which ids will belong to no domain.
pub(super) fn warn_of(service: &Service, config: &Config) {
    warnings(service, config)
        .iter()
        .for_each(|text| warn!("{text}"));
    for format in without_domain(service) {
        warn!(
            format,
            "no domain is configured (siq.domains): ids of {format} are for development"
        );
    }
}

/// Formats whose ids belong to no domain, since none is configured.
fn without_domain(service: &Service) -> impl Iterator<Item = &str> {
    let has_none = service.siq().domains.is_empty();
    let formats = service
        .formats()
        .iter()
        .map(|served| served.format())
        .filter(move |format| {
            // The objects of other rules are no domains.
            let has_object = format.variants[0]
                .layout
                .field_of(FieldKind::Object)
                .is_some();
            has_none && has_object && format.rule.is_counted()
        });
    formats.map(|format| format.name.as_str())
}

fn of_time(format: &Format, now: UnixTime, soon: UnixTime) -> Option<String> {
    let (name, is_minted) = (&format.name, format.rule.is_minted());
    if !is_minted || format.tick.is_none() {
        return None;
    }
    let successor = "such as the same layout with a later epoch";
    match format.end() {
        _ if format.epoch > now => Some(format!(
            "{name} begins at {}, and mints nothing before",
            format.epoch
        )),
        Some(end) if end <= now => Some(format!(
            "{name} ended at {end}, and mints nothing: configure its successor, {successor}"
        )),
        Some(end) if end < soon => Some(format!(
            "{name} ends at {end}: plan its successor, {successor}"
        )),
        _ => None,
    }
}
