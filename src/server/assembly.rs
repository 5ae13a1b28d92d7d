//! Assembles a service from a configuration. The assembled service is ready to start.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::iter;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use prometheus::Registry;

use super::catalog::{Catalog, CatalogError};
use crate::server::config::{AssignmentKind, Config, ConjunctionMode, Engine};
use idmint_core::id::{Decoder, DomainHash, Format, OwnNumbers, Rule};
use idmint_core::minting::{
    LaneCount, LaneError, LaneRule, Lanes, Mint, MintSettings, Randomness, Refusal, SlotLanes,
};
use idmint_core::time::{Clock, Tick, format_duration};
use idmint_records::conjunction::GroupedMinter;
use idmint_service::{
    Conjunctions, Decoding, Formats, IdSource, Load, RequestLimits, ServedFormat, Service,
    ServiceCounters, ServiceParts, SiqDefaults,
};
use idmint_storage::KeptFormat;
use idmint_wire::KnownDomains;

/// A request for a large batch may wait at least this long for a permit to start, even if
/// `mint.wait_max` is shorter.
const TURN_WAIT_MIN: Duration = Duration::from_millis(250);

/// The maximum number of lanes (worker numbers of one node) per format, unless `worker.lanes` or
/// the node's slot is configured. A format with room for only 4 lanes gets 4.
const LANES_MAX: u32 = 8;

/// The longest permitted tick (time unit of an id) in formats for close approaches of two objects.
/// Close approaches of the same objects that are more than a second apart are stored separately.
/// With a longer tick, two of them could get the same id.
const GROUPED_TICK_MAX: Duration = Duration::from_secs(1);

/// An error in the configuration that prevents assembly.
#[derive(Debug, thiserror::Error)]
pub enum AssemblyError {
    /// The format definitions are invalid.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The configured worker numbers do not fit into a format.
    #[error(transparent)]
    Lanes(#[from] LaneError),
    /// A setting is invalid. The message names the setting, its value and the remedy.
    #[error("{0}")]
    Setting(String),
    /// Two metrics have the same name, which is a bug in this build.
    #[error("the metrics cannot be registered")]
    Metrics(#[from] prometheus::Error),
}

/// Assembles the service from a configuration. Ids made of a time and a sequence number are minted
/// only after [`begin`](super::start::begin) is called.
///
/// # Errors
/// Returns [`AssemblyError`], which names the setting, the value and the bound.
pub fn assemble(
    config: &Config,
    clock: Arc<Clock>,
    randomness: &Randomness,
    registry: &Registry,
) -> Result<Arc<Service>, AssemblyError> {
    let catalog = Catalog::of(config)?;
    if config.conjunction.mode == ConjunctionMode::Grouped {
        check_ticks(&catalog)?;
    }
    check_ahead(config, &catalog)?;
    let settings = MintSettings {
        wait_max: config.mint.wait(),
        lead_max: config.mint.lead_max,
        window: config.storage.window(),
        shard: config.worker.shard,
    };
    let mut mint = Mint::new(clock, settings);
    let formats = serve_formats(config, &catalog, &mut mint, randomness)?;
    let service = Service::new(ServiceParts {
        load: Load::new(config.http.memory_max, config.http.in_flight_max),
        mint: Arc::new(mint),
        formats,
        decoding: decoding(config)?,
        conjunctions: match config.conjunction.mode {
            ConjunctionMode::Pure => Conjunctions::Pure,
            ConjunctionMode::Grouped => Conjunctions::Stored {
                retention: config.conjunction.retention,
                analysis_reach: config.conjunction.analysis_reach,
            },
        },
        note: config.conjunction.note,
        limits: RequestLimits {
            batch_max: config.mint.batch_max,
            body_timeout: config.http.body_timeout,
            wait_max: config.mint.wait_max.max(TURN_WAIT_MIN),
        },
        siq: siq_defaults(config, &catalog)?,
        slot: (!is_leased(config)).then_some(config.worker.assignment().slot),
        counters: ServiceCounters::register(registry)?,
    });
    service.replace_object_rules(config.conjunction.object_rules());
    // Ids with random bits can be minted before the start has ended, but only with a plausible
    // clock.
    if service.clock().is_before_build() {
        let shown = service.clock().now().into();
        service.wait_for(Refusal::ClockJumped { shown });
    }
    Ok(Arc::new(service))
}

/// Returns the formats that the service serves, with their minters, if any. Adds to `mint` the
/// minters of formats whose ids are random or have sequence numbers.
fn serve_formats(
    config: &Config,
    catalog: &Catalog,
    mint: &mut Mint,
    randomness: &Randomness,
) -> Result<Formats, LaneError> {
    let rule = lane_rule(config);
    let mut serve = |format: &Arc<Format>| {
        let format = Arc::clone(format);
        Ok(match format.rule {
            Rule::Sequenced | Rule::Random if !format.is_minted() => {
                ServedFormat::decode_only(format)
            }
            Rule::Sequenced => {
                let minter = if is_leased(config) {
                    let lanes = SlotLanes::of(&format, slots_of(config), rule.lanes, rule.shard)?;
                    mint.add_leased(format, lanes)
                } else {
                    let lanes = Lanes::of(&format, &rule)?;
                    mint.add_sequenced(format, lanes)
                };
                ServedFormat::of_count(minter)
            }
            Rule::Random => ServedFormat::of_count(mint.add_random(format, randomness.clone())),
            Rule::Chained => ServedFormat::of_events(format),
            Rule::Grouped => {
                let minter = GroupedMinter::new(Arc::clone(&format), config.conjunction.pair_order);
                ServedFormat::of_reports(format, minter)
            }
            Rule::DecodeOnly => ServedFormat::decode_only(format),
        })
    };
    let served = catalog
        .formats
        .iter()
        .map(|format| serve(format).map(Arc::new));
    Ok(Formats::new(
        served.collect::<Result<_, LaneError>>()?,
        catalog.off.clone(),
    ))
}

/// Returns a decoder for a configuration. The decoder knows which worker numbers, shard and domains
/// the ids of this deployment contain, so that it can recognize them.
///
/// # Errors
/// Returns [`AssemblyError`], which names the invalid setting.
pub fn decoding(config: &Config) -> Result<Decoding, AssemblyError> {
    let catalog = Catalog::of(config)?;
    let own = own_numbers(config, &catalog)?;
    let decoder = Decoder::with_own_numbers(catalog.formats, &own);
    Ok(Decoding::new(
        decoder,
        known_domains(config)?,
        config.number_rules(),
        catalog.off,
    ))
}

/// Checks that neither a tick nor `storage.window` is longer than `clock.max_ahead`. Otherwise, a
/// start after a crash would usually wait until the clock has caught up with the horizon.
///
/// The horizon is the end of the reserved time. A tick is reserved to its end as soon as it begins,
/// and on a busy node, a whole `storage.window` is reserved after that. After a crash under such a
/// load, or while requests wait for ids (up to `mint.wait_max`), a start can still have to wait.
fn check_ahead(config: &Config, catalog: &Catalog) -> Result<(), AssemblyError> {
    let (window, max_ahead) = (config.storage.window(), config.clock.max_ahead);
    let beyond = |what: &str, needed: &str, advice: &str| {
        AssemblyError::Setting(format!(
            "{what} is above clock.max_ahead = {}, so after a crash every format would wait until the clock has \
             caught up; set clock.max_ahead to at least \"{needed}\", or {advice}",
            format_duration(max_ahead)
        ))
    };
    // Fleets are exempt from this check, because a starting node of a fleet takes a slot whose
    // reserved time has already passed.
    if window > max_ahead && config.storage.engine != Engine::Etcd {
        let needed = format_duration(window);
        let what = format!("storage.window = {needed}");
        return Err(beyond(&what, &needed, "set a shorter storage.window"));
    }
    match coarse_format(catalog, Rule::Sequenced, max_ahead) {
        Some((format, tick)) => {
            let what = format!("format `{}`: tick = {tick}", format.name);
            let needed = tick.to_string();
            Err(beyond(&what, &needed, "give the format a shorter tick"))
        }
        None => Ok(()),
    }
}

/// Returns the first minted format with the given rule (the way its ids are made) and a tick (time
/// unit) longer than `most`, together with the tick.
fn coarse_format(catalog: &Catalog, rule: Rule, most: Duration) -> Option<(&Format, Tick)> {
    let formats = catalog.formats.iter();
    let minted = formats.filter(|format| format.is_minted() && format.rule == rule);
    minted
        .filter_map(|format| Some((&**format, format.tick?)))
        .find(|(_, tick)| tick.duration() > most)
}

/// Checks that the ticks of grouped formats, whose ids are assigned to conjunctions, are at most
/// one second long. No two conjunctions of the same pair of objects then share an id.
///
/// Two stored conjunctions of a pair are more than a second apart, so they lie in different ticks.
/// The only exception is a conjunction whose first report already contained an id, which the
/// service then kept. That id has a different tick from the ids of the pair's other conjunctions.
fn check_ticks(catalog: &Catalog) -> Result<(), AssemblyError> {
    match coarse_format(catalog, Rule::Grouped, GROUPED_TICK_MAX) {
        Some((format, tick)) => Err(AssemblyError::Setting(format!(
            "format `{}` has a tick of {tick}, but with conjunction.mode = \"grouped\" a grouped format may have \
             ticks of at most 1s; use \"pure\", or a finer tick",
            format.name
        ))),
        None => Ok(()),
    }
}

/// Returns `true` if the slot is leased from the fleet's coordinator.
fn is_leased(config: &Config) -> bool {
    config.worker.assignment().kind == AssignmentKind::Leased
}

/// Returns `worker.slots`, the number of slots that nodes can have.
fn slots_of(config: &Config) -> NonZeroU32 {
    NonZeroU32::new(config.worker.assignment().slots)
        .expect("at least 1, checked when the configuration was loaded")
}

/// Returns the rule that determines this node's worker numbers in each format. A node of a fleet
/// leases its slot later, so its rule contains slot 0 as a placeholder.
pub fn lane_rule(config: &Config) -> LaneRule {
    let assignment = config.worker.assignment();
    let lanes = match (config.worker.lanes, assignment.kind) {
        (Some(lanes), _) => LaneCount::Exactly(lanes.get()),
        (None, AssignmentKind::Alone | AssignmentKind::Leased) => LaneCount::UpTo(LANES_MAX),
        // Each process gets one lane, with the worker number `first_worker + slot`. So different
        // slots have different worker numbers, even if the setting `slots` differs.
        (None, AssignmentKind::Configured | AssignmentKind::Ordinal) => LaneCount::UpTo(1),
    };
    LaneRule {
        slot: assignment.slot,
        slots: assignment.slots,
        lanes,
        shard: config.worker.shard,
    }
}

/// Checks that each minted format with worker numbers has enough of them for `worker.slots` nodes.
/// Call this function before the first mint, because `worker.slots` cannot change afterwards.
///
/// # Errors
/// Returns [`AssemblyError::Setting`] if a format has too few worker numbers.
pub fn check_all_slots(config: &Config, service: &Service) -> Result<(), AssemblyError> {
    let rule = lane_rule(config);
    let last_slot = LaneRule {
        slot: rule.slots - 1,
        ..rule
    };
    let sequenced = service
        .formats()
        .iter()
        .map(|served| served.format())
        .filter(|format| format.is_minted() && format.rule == Rule::Sequenced);
    let lanes = |format: &Format| match (format.lanes, rule.lanes) {
        (Some(lanes), _) | (None, LaneCount::Exactly(lanes)) => lanes.max(1),
        (None, LaneCount::UpTo(_)) => 1,
    };
    let too_few = sequenced.filter_map(|format| match Lanes::of(format, &last_slot) {
        Err(LaneError::WorkerTooHigh { last, .. }) => {
            let workers = (last + 1).saturating_sub(format.first_worker.into());
            Some(format!(
                "{} (room for {})",
                format.name,
                workers / u128::from(lanes(format))
            ))
        }
        Ok(_) | Err(LaneError::NoWorkerField { .. } | LaneError::ShardTooHigh { .. }) => None,
    });
    let formats: Vec<String> = too_few.collect();
    if formats.is_empty() {
        Ok(())
    } else {
        Err(AssemblyError::Setting(format!(
            "worker.slots = {}: slot {} has no worker number in {}; lower worker.slots, which cannot be changed once \
             ids were minted, or disable these formats in formats.enabled",
            rule.slots,
            last_slot.slot,
            formats.join(", ")
        )))
    }
}

/// Returns the field values that this deployment puts into its ids: the worker numbers of all its
/// nodes, its shard number and the hashes of its domain names. A text that decodes to these values
/// is more likely to be an id of this deployment.
fn own_numbers(config: &Config, catalog: &Catalog) -> Result<OwnNumbers, AssemblyError> {
    let (rule, slots) = (lane_rule(config), config.worker.assignment().slots);
    let mut workers = BTreeMap::new();
    for format in catalog
        .formats
        .iter()
        .filter(|format| format.rule == Rule::Sequenced)
    {
        let lanes = match Lanes::of(format, &rule) {
            Err(_) if !format.is_minted() => continue,
            lanes => lanes?,
        };
        let count = u32::try_from(lanes.workers().len())
            .ok()
            .and_then(|lanes| lanes.checked_mul(slots));
        let last = count.and_then(|count| format.first_worker.checked_add(count.checked_sub(1)?));
        workers.extend(last.map(|last| (format.name.clone(), format.first_worker..=last)));
    }
    let known = known_domains(config)?;
    Ok(OwnNumbers {
        workers,
        shard: Some(config.worker.shard),
        domains: if known.is_empty() {
            BTreeSet::from([DomainHash::DEVELOPMENT.get()])
        } else {
            known.into_keys().collect()
        },
    })
}

/// Returns a description of each format and each encoding. The store keeps these descriptions. A
/// later start fails if a description differs from the stored description of the same name, because
/// the difference could have one of these effects:
///
/// - in a sequenced format, an id could be minted twice
/// - in a grouped format, a stored conjunction could get a second id
/// - in an encoding, two ids could be written as the same text
pub fn kept_formats(service: &Service) -> Vec<KeptFormat> {
    let kept = |served: &ServedFormat| {
        let mut description = served.format().identity();
        if let IdSource::Reports(minter) = served.source() {
            description.insert(
                "pair_order".to_owned(),
                minter.pair_order().name().to_owned(),
            );
        }
        let name = served.format().name.clone();
        let format = KeptFormat {
            name,
            description,
            is_minted: served.format().is_minted(),
        };
        let encodings = served.format().encodings.iter();
        let encodings: Vec<KeptFormat> = encodings
            .map(|encoding| KeptFormat::of_encoding(&format, encoding.name(), encoding.digest()))
            .collect();
        iter::once(format).chain(encodings)
    };
    service
        .formats()
        .iter()
        .flat_map(|served| kept(served))
        .collect()
}

fn siq_defaults(config: &Config, catalog: &Catalog) -> Result<SiqDefaults, AssemblyError> {
    if let Some(given) = &config.siq.default_type {
        let siq = || catalog.formats.iter().filter(|format| format.has_types());
        let known: Vec<_> = siq()
            .flat_map(|format| &format.variants)
            .filter_map(|variant| variant.name.clone())
            .collect();
        if !known.is_empty() && siq().all(|format| format.type_named(given).is_err()) {
            return Err(AssemblyError::Setting(format!(
                "siq.type = `{given}` is not a type of SIQ; choose from {}",
                known.join(", ")
            )));
        }
    }
    let hashes = domain_hashes(config)?;
    Ok(SiqDefaults {
        default_type: config.siq.default_type.clone(),
        default_domain: hashes.first().map(|(_, hash)| *hash),
        domains: hashes.into_iter().collect::<HashMap<_, _>>(),
    })
}

/// Returns the configured domain names by their hash. An id contains only the hash, so the decoder
/// needs this map to find the name.
///
/// # Errors
/// Returns [`AssemblyError::Setting`] if a domain cannot be hashed.
pub fn known_domains(config: &Config) -> Result<KnownDomains, AssemblyError> {
    Ok(domain_hashes(config)?
        .into_iter()
        .map(|(domain, hash)| (hash.get(), domain))
        .collect())
}

fn domain_hashes(config: &Config) -> Result<Vec<(String, DomainHash)>, AssemblyError> {
    let hash = |domain: &String| match DomainHash::of(domain, config.siq.local_id) {
        Ok(hash) => Ok((domain.clone(), hash)),
        Err(cause) => Err(AssemblyError::Setting(format!(
            "siq.domains: `{domain}` is not a domain ({cause}): write it in ASCII, in its xn-- form"
        ))),
    };
    config.siq.domains.iter().map(hash).collect()
}
