//! Warnings for operators about a valid configuration.

use std::time::Duration;

use tracing::warn;

use super::expiries::warn_of_expiries;
use crate::server::config::Config;
use idmint_core::id::{FieldKind, Format, PRESETS};
use idmint_core::time::UnixTime;
use idmint_service::Service;

/// Every start warns of the formats that end within this time. After its end, a format mints no
/// more ids.
const END_WARNED: Duration = Duration::from_secs(365 * 86_400);

/// Returns warnings about a valid configuration. They concern formats that have not begun, have
/// ended, end within a year, or have other fields than the built-in format of the same name. They
/// also concern series whose numbers can have equal texts, and settings that the environment
/// overrides.
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
                "{} is not the built-in format of that name, but a configured one",
                format.name
            ));
        }
    }
    for rule in service.number_rules().with_equal_texts() {
        warnings.push(format!(
            "numbers.{} writes the same text for different series, because its text does not name the series: put {{series}} \
             into the text; a start ends with 78 unless the pattern has numbers already",
            rule.name
        ));
    }
    warnings
}

/// Logs the warnings about a configuration, the credentials that expire soon, and the formats whose
/// ids will contain no domain.
pub(super) fn warn_of(service: &Service, config: &Config) {
    warnings(service, config)
        .iter()
        .for_each(|text| warn!("{text}"));
    warn_of_expiries(service);
    for format in without_domain(service) {
        warn!(
            format,
            "no domain is configured (siq.domains): ids of {format} are for development"
        );
    }
}

/// Returns the formats whose ids contain no domain, because no domain is configured.
fn without_domain(service: &Service) -> impl Iterator<Item = &str> {
    let has_none = service.siq().domains.is_empty();
    let formats = service
        .formats()
        .iter()
        .map(|served| served.format())
        .filter(move |format| {
            // Formats that are minted from reports are left out, because their object field
            // contains no domain.
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
