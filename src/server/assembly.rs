//! From a configuration to a service that is ready to begin.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::iter;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use prometheus::Registry;

use super::formats::{Catalog, CatalogError};
use crate::conjunction::GroupedMinter;
use crate::id::{Decoder, DomainHash, Format, OwnNumbers, Rejection, Rule};
use crate::minting::{
    LaneCount, LaneError, LaneRule, Lanes, Mint, MintSettings, Randomness, SlotLanes,
};
use crate::server::config::{
    AssignmentKind, Config, ConjunctionMode, Engine, Lanes as ConfiguredLanes,
};
use crate::service::{
    Conjunctions, Decoding, Formats, IdSource, Load, RequestLimits, ServedFormat, Service,
    ServiceCounters, ServiceParts, SiqDefaults,
};
use crate::storage::KeptFormat;
use crate::time::{Clock, Tick, format_duration};
use crate::wire::KnownDomains;

/// A long request may always wait this long for its turn, whatever callers are willing to wait for their ids.
const TURN_WAIT_MIN: Duration = Duration::from_millis(250);

/// Lanes that a node has in each format, where they fit and nobody chose its slot.
const LANES_MAX: u32 = 8;

/// The longest tick that tells two stored conjunctions of a pair apart.
const GROUPED_TICK_MAX: Duration = Duration::from_secs(1);

/// The configuration makes no service.
#[derive(Debug, thiserror::Error)]
pub enum AssemblyError {
    /// The formats are wrong.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The worker numbers do not fit.
    #[error(transparent)]
    Lanes(#[from] LaneError),
    /// Two conjunctions of one pair, more than a second apart, would have one id.
    #[error(
        "format `{format}` has a tick of {tick}: with conjunction.mode = \"grouped\" a grouped format has ticks of at most \
         1s; use \"pure\", or a finer tick"
    )]
    CoarseTick {
        /// The format.
        format: String,
        /// Its tick.
        tick: Tick,
    },
    /// A start could find its horizon further ahead of the clock than it may be, and hold back every format.
    #[error(
        "{what} is above clock.max_ahead = {}: after a kill every format would wait until the clock has caught up; set \
         clock.max_ahead = \"{needed}\" at least, or {advice}", format_duration(*.max_ahead)
    )]
    BeyondMaxAhead {
        /// The setting, with its value.
        what: String,
        /// What is configured.
        max_ahead: Duration,
        /// The least that would do.
        needed: String,
        /// What else to change.
        advice: &'static str,
    },
    /// A node of the last slot would have no worker number in some formats.
    #[error(
        "worker.slots = {slots}: slot {} has no worker number in {}; lower worker.slots, which cannot be changed once ids were \
         minted, or turn these off: formats.enabled lists those that are on", .slots - 1, .formats.join(", ")
    )]
    Slots {
        /// As configured.
        slots: u32,
        /// The formats that have fewer slots, each with how many.
        formats: Vec<String>,
    },
    /// A domain cannot be hashed.
    #[error("siq.domains: `{domain}` is no domain ({cause}): write it in ASCII, in its xn-- form")]
    Domain {
        /// As written.
        domain: String,
        /// Why not.
        cause: Rejection,
    },
    /// The default type is none of a SIQ.
    #[error("siq.type = `{given}` is not a type of SIQ; there is {}", .known.join(", "))]
    Type {
        /// As written.
        given: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// Two metrics of one name: a bug in this build.
    #[error("the metrics cannot be registered")]
    Metrics(#[from] prometheus::Error),
}

/// Puts the service together. Nothing sequenced is minted before [`begin`](super::start::begin).
///
/// # Errors
/// [`AssemblyError`] names the setting, the value and the bound.
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
    Ok(Arc::new(service))
}

/// Every format, with what mints it.
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

/// What reads ids with this configuration; it knows the numbers that are minted with.
///
/// # Errors
/// [`AssemblyError`] names the setting that is wrong.
pub fn decoding(config: &Config) -> Result<Decoding, AssemblyError> {
    let catalog = Catalog::of(config)?;
    let own = own_numbers(config, &catalog)?;
    let decoder = Decoder::with_own_numbers(catalog.formats, &own);
    Ok(Decoding::new(
        decoder,
        known_domains(config)?,
        config.number_rules(),
    ))
}

/// Ids are minted to the end of a tick as soon as it has begun, and a busy node reserves a window: after a kill the horizon
/// may be as far ahead as that.
fn check_ahead(config: &Config, catalog: &Catalog) -> Result<(), AssemblyError> {
    let (window, max_ahead) = (config.storage.window(), config.clock.max_ahead);
    // In a fleet a node that starts takes a slot whose horizon has passed.
    if window > max_ahead && config.storage.engine != Engine::Etcd {
        let (what, needed) = (
            format!("storage.window = {}", format_duration(window)),
            format_duration(window),
        );
        return Err(AssemblyError::BeyondMaxAhead {
            what,
            max_ahead,
            needed,
            advice: "set a shorter storage.window",
        });
    }
    let sequenced = catalog
        .formats
        .iter()
        .filter(|format| format.rule == Rule::Sequenced);
    let mut ticks = sequenced.filter_map(|format| Some((format, format.tick?)));
    match ticks.find(|(_, tick)| tick.duration() > max_ahead) {
        Some((format, tick)) => {
            let (what, needed) = (
                format!("format `{}`: tick = {tick}", format.name),
                tick.to_string(),
            );
            Err(AssemblyError::BeyondMaxAhead {
                what,
                max_ahead,
                needed,
                advice: "give the format a shorter tick",
            })
        }
        None => Ok(()),
    }
}

/// Stored conjunctions of a pair are more than a second apart, or an id that was kept is of another tick than the others.
fn check_ticks(catalog: &Catalog) -> Result<(), AssemblyError> {
    let grouped = catalog
        .formats
        .iter()
        .filter(|format| format.rule == Rule::Grouped);
    let coarse = grouped.filter_map(|format| {
        Some((
            format,
            format
                .tick
                .filter(|tick| tick.duration() > GROUPED_TICK_MAX)?,
        ))
    });
    match coarse.into_iter().next() {
        Some((format, tick)) => Err(AssemblyError::CoarseTick {
            format: format.name.clone(),
            tick,
        }),
        None => Ok(()),
    }
}

/// Whether the slot comes from the coordinator of a fleet.
fn is_leased(config: &Config) -> bool {
    config.worker.assignment().kind == AssignmentKind::Leased
}

/// How many slots there are.
fn slots_of(config: &Config) -> NonZeroU32 {
    NonZeroU32::new(config.worker.assignment().slots)
        .expect("at least 1, checked when the configuration was loaded")
}

/// Which worker numbers this node has in each format; in a fleet, those of the first slot.
pub fn lane_rule(config: &Config) -> LaneRule {
    let assignment = config.worker.assignment();
    let lanes = match (config.worker.lanes, assignment.kind) {
        (ConfiguredLanes::Count(lanes), _) => LaneCount::Exactly(lanes.get()),
        (ConfiguredLanes::Auto, AssignmentKind::Alone | AssignmentKind::Leased) => {
            LaneCount::UpTo(LANES_MAX)
        }
        // One lane: the worker is then first_worker + slot, whatever `slots` says.
        (ConfiguredLanes::Auto, AssignmentKind::Configured | AssignmentKind::Ordinal) => {
            LaneCount::UpTo(1)
        }
    };
    LaneRule {
        slot: assignment.slot,
        slots: assignment.slots,
        lanes,
        shard: config.worker.shard,
    }
}

/// That a node of every slot could mint every format: for whoever has not minted yet, and can still choose.
///
/// # Errors
/// [`AssemblyError::Slots`].
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
        .filter(|format| format.rule == Rule::Sequenced);
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
        Err(AssemblyError::Slots {
            slots: rule.slots,
            formats,
        })
    }
}

/// The numbers that all nodes of this deployment together mint with.
fn own_numbers(config: &Config, catalog: &Catalog) -> Result<OwnNumbers, AssemblyError> {
    let (rule, slots) = (lane_rule(config), config.worker.assignment().slots);
    let mut workers = BTreeMap::new();
    for format in catalog
        .formats
        .iter()
        .filter(|format| format.rule == Rule::Sequenced)
    {
        let lanes = Lanes::of(format, &rule)?;
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

/// What the store keeps of each format and of each of its encodings, so that under one name nothing else is ever minted. Two
/// programs that differ in a sequenced format could mint one id twice; in a grouped one, mint a second id for a conjunction that is
/// stored; in an encoding, give two ids one text.
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
            is_minted: served.format().rule.is_minted(),
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
            return Err(AssemblyError::Type {
                given: given.clone(),
                known,
            });
        }
    }
    let hashes = domain_hashes(config)?;
    Ok(SiqDefaults {
        default_type: config.siq.default_type.clone(),
        default_domain: hashes.first().map(|(_, hash)| *hash),
        domains: hashes.into_iter().collect::<HashMap<_, _>>(),
    })
}

/// The configured domains by their hashes, to name them in ids that are read.
///
/// # Errors
/// [`AssemblyError::Domain`].
pub fn known_domains(config: &Config) -> Result<KnownDomains, AssemblyError> {
    Ok(domain_hashes(config)?
        .into_iter()
        .map(|(domain, hash)| (hash.get(), domain))
        .collect())
}

fn domain_hashes(config: &Config) -> Result<Vec<(String, DomainHash)>, AssemblyError> {
    let hash = |domain: &String| match DomainHash::of(domain, config.siq.local_id) {
        Ok(hash) => Ok((domain.clone(), hash)),
        Err(cause) => Err(AssemblyError::Domain {
            domain: domain.clone(),
            cause,
        }),
    };
    config.siq.domains.iter().map(hash).collect()
}
