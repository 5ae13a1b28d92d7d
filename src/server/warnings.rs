//! Warnings for operators about a valid configuration.

use std::time::Duration;

use tracing::warn;

use super::expiries::warn_of_expiries;
use crate::server::config::Config;
use idmint_core::id::{FieldKind, Format, FormatAlias, Rule};
use idmint_core::time::UnixTime;
use idmint_service::Service;

/// Every start warns of each format that can be minted for less than this time. The time field of a
/// format ends at some date, after which no ids of the format can be minted.
const END_WARNED: Duration = Duration::from_secs(365 * 86_400);

/// Returns warnings about a valid configuration. Some warnings are about formats that have not
/// begun, have ended, end within a year, do not sort by time, or differ from the built-in format of
/// the same name. Other warnings are about formats and series that can write equal texts, and about
/// settings that the environment overrides.
pub fn warnings(service: &Service, config: &Config) -> Vec<String> {
    let now = service.clock().now();
    let (soon, now) = (now.after(END_WARNED).into(), now.into());
    let mut warnings = config.origins.overruled.clone();
    warnings.extend(
        FormatAlias::ALL
            .iter()
            .filter_map(|alias| of_former_name(alias, config)),
    );
    for format in service.formats().iter().map(|served| served.format()) {
        warnings.extend(of_time(format, now, soon));
        if !config.formats.definitions.contains_key(&format.name) {
            continue;
        }
        if differs_from_built_in(format) {
            warnings.push(format!(
                "{} is a configured format, which replaces the built-in format of that name",
                format.name
            ));
        }
        warnings.extend(of_order(format));
    }
    warnings.extend(equal_texts(service).map(|texts| {
        format!("{texts}; with a new data directory, the service would exit with code 78")
    }));
    for rule in service.number_rules().with_equal_texts() {
        warnings.push(format!(
            "numbers.{} writes the same text for numbers of different series: put {{series}} into the text. \
             Unless the pattern already has numbers, the service exits with code 78",
            rule.name
        ));
    }
    warnings
}

/// Returns a warning for each pair of formats in which an id of one can look exactly like an id of
/// the other. The warning names the settings to change.
pub(super) fn equal_texts(service: &Service) -> impl Iterator<Item = String> {
    let formats = || service.formats().iter().map(|served| served.format());
    let of_pair = |(one, other): (&Format, &Format)| {
        let workers = |format: &Format| {
            let range = format.worker_numbers();
            range.map_or_else(String::new, |range| {
                format!(" (workers {} to {})", range.start(), range.end())
            })
        };
        format!(
            "formats {}{} and {}{} write equal texts, so one text can be two ids: set mint = false in [formats.{}] or \
             [formats.{}], which is then only decoded, or remove one of them from formats.enabled",
            one.name,
            workers(one),
            other.name,
            workers(other),
            one.name,
            other.name
        )
    };
    let pairs = formats().enumerate().flat_map(move |(at, one)| {
        let others = formats().skip(at + 1);
        others
            .filter(move |other| one.has_texts_of(other))
            .map(move |other| (one, other))
    });
    pairs.map(of_pair)
}

/// Logs the warnings about a configuration. Also warns of credentials that expire soon, and of
/// formats whose ids should contain the hash of a domain name although no domain is configured.
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

/// Returns the names of the formats whose ids should contain the hash of a domain name but do not,
/// because no domain is configured. If a domain is configured, returns no names.
fn without_domain(service: &Service) -> impl Iterator<Item = &str> {
    let has_none = service.siq().domains.is_empty();
    let formats = service
        .formats()
        .iter()
        .map(|served| served.format())
        .filter(move |format| {
            // Skip formats whose ids are made from reports. They have an object field, too, but it
            // contains no hash of a domain name.
            let has_object = format.variants[0]
                .layout
                .field_of(FieldKind::Object)
                .is_some();
            has_none && has_object && format.is_minted() && format.rule.is_counted()
        });
    formats.map(|format| format.name.as_str())
}

/// `true` if the format has the name of a built-in format, but other fields, another tick, epoch or
/// rule (for making ids), or another canonical text. The first worker number may differ.
fn differs_from_built_in(format: &Format) -> bool {
    let identity = |format: &Format| {
        let mut identity = format.identity();
        // Operators may raise the first worker number of a built-in format, to leave the lower
        // numbers to another generator.
        identity.remove("first_worker");
        (identity, format.canonical().digest())
    };
    Format::built_in(&format.name).is_some_and(|built_in| identity(&built_in) != identity(format))
}

fn of_order(format: &Format) -> Option<String> {
    let mut fields = format.variants[0].layout.fields().iter();
    let first = fields.find(|field| matches!(field.kind, FieldKind::Time | FieldKind::Worker))?;
    let is_worker = first.kind == FieldKind::Worker && format.rule == Rule::Sequenced;
    is_worker.then(|| {
        format!(
            "{}: field `{}` stands above the time, so ids of several workers do not sort by time: put the time first",
            format.name, first.name
        )
    })
}

/// Returns a warning if the configuration still uses a former name of a format.
fn of_former_name(alias: &FormatAlias, config: &Config) -> Option<String> {
    let (name, definitions) = (alias.name, &config.formats.definitions);
    let lists = [
        (
            "formats.enabled",
            config.formats.enabled.iter().flatten().collect::<Vec<_>>(),
        ),
        ("decode.order", config.decode.order.iter().collect()),
    ];
    let listed = lists
        .iter()
        .filter(|(_, names)| names.iter().any(|listed| *listed == name));
    let mut places: Vec<String> = listed.map(|(key, _)| (*key).to_owned()).collect();
    places.extend(
        definitions
            .contains_key(name)
            .then(|| format!("[formats.{name}]")),
    );
    let copies = definitions
        .iter()
        .filter(|(_, table)| table.get("like").and_then(toml::Value::as_str) == Some(name));
    places.extend(copies.map(|(copy, _)| format!("formats.{copy}.like")));
    let (format, encoding) = (alias.format, alias.encoding);
    (!places.is_empty()).then(|| {
        format!(
            "{}: {name} is deprecated, it is {format} with encoding={encoding}: write {format} instead, move the keys of \
             its table to [formats.{format}], and request POST /ids/{format}?encoding={encoding}",
            places.join(", ")
        )
    })
}

fn of_time(format: &Format, now: UnixTime, soon: UnixTime) -> Option<String> {
    let (name, is_minted) = (&format.name, format.is_minted());
    if !is_minted || format.tick.is_none() {
        return None;
    }
    let successor = "such as the same layout with a later epoch";
    match format.end() {
        _ if format.epoch > now => Some(format!(
            "{name} begins at {}, and mints no ids before",
            format.epoch
        )),
        Some(end) if end <= now => Some(format!(
            "{name} ended at {end}, and mints no more ids: configure its successor, {successor}"
        )),
        Some(end) if end < soon => Some(format!(
            "{name} ends at {end}: plan its successor, {successor}"
        )),
        _ => None,
    }
}
