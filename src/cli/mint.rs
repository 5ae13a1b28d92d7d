//! The command `idmint mint`, which mints ids.

use std::io::{self, BufWriter, Write};
use std::num::NonZeroU32;
use std::sync::Arc;

use clap::Args;
use prometheus::Registry;

use super::conjunction::GroupedOffline;
use super::exit::{Exit, Failure};
use super::print::{is_read, print, print_bytes};
use super::running_service::{AccessArgs, ask_once, service_url};
use super::settings::Settings;
use crate::server::assemble;
use crate::server::config::ConjunctionMode;
use idmint_client::MintQuery;
use idmint_core::id::{Encoding, Format, PrefixError, Rule};
use idmint_core::minting::{Denied, Randomness};
use idmint_core::time::Clock;
use idmint_records::conjunction::Report;
use idmint_service::ServedFormat;
use idmint_wire::ReportRequest;

/// The number of ids per write to standard output.
const BLOCK_LEN: usize = 1_024;

/// Mint ids at a running service, one per line.
///
/// Ids of random formats, such as flax, need no service (--offline). With conjunction.mode =
/// "pure", conjunction ids depend on the report alone, so a service is used only with --server.
#[derive(Debug, Args)]
pub(super) struct Mint {
    /// The format, such as snowflake.
    format: String,
    /// The number of ids. Default: 1.
    #[arg(short = 'n', long)]
    count: Option<u32>,
    /// The encoding; the canonical one if absent.
    #[arg(long)]
    encoding: Option<String>,
    /// The prefix of each id, if the format has prefixes.
    #[arg(long)]
    prefix: Option<String>,
    /// The type, if the format has types.
    #[arg(long = "type", value_name = "TYPE")]
    of_type: Option<String>,
    /// The domain, if the format has domains.
    #[arg(long)]
    domain: Option<String>,
    #[command(flatten)]
    report: Option<ReportArgs>,
    /// Mint ids of a random format without a service.
    #[arg(long, conflicts_with_all = ["server", "tca", "domain"])]
    offline: bool,
    /// The address of the service; on this machine if absent.
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    server: Option<String>,
    #[command(flatten)]
    access: AccessArgs,
    #[command(flatten)]
    settings: Settings,
}

/// The report of a close approach from which a conjunction id is minted. Its three options must be
/// given together, and only for formats whose ids are made from such reports.
#[derive(Debug, Args)]
#[group(requires_all = ["tca", "primary", "secondary"])]
struct ReportArgs {
    /// The time of closest approach, such as 2024-02-01T00:00:00.250Z.
    #[arg(long, required = false, conflicts_with = "count")]
    tca: String,
    /// The catalogue number of the first object.
    #[arg(long, required = false)]
    primary: u64,
    /// The catalogue number of the second object.
    #[arg(long, required = false)]
    secondary: u64,
}

impl Mint {
    /// Mints the requested ids, at a service or without one, and prints them.
    ///
    /// # Errors
    /// Returns exit code 1 if the service refuses the request, 69 if it is unreachable, and 75 if
    /// it is busy. Without a service, returns 64 if the format or encoding is unknown or an option
    /// does not apply, 65 if the report has no id, and 69 if the format cannot express the time of
    /// the clock. In both cases, returns 74 if the output fails, and 78 if the configuration is
    /// invalid.
    pub(super) fn run(self) -> Result<(), Failure> {
        if self.offline {
            return self.mint_random();
        }
        if let (None, Some(report)) = (&self.server, &self.report)
            && let Some(id) = self.mint_offline(report)?
        {
            return print(format_args!("{id}\n"));
        }
        let server = self.server.clone().map_or_else(service_url, Ok)?;
        let query = MintQuery {
            count: self.count,
            encoding: self.encoding.as_deref(),
            prefix: self.prefix.as_deref(),
            of_type: self.of_type.as_deref(),
            domain: self.domain.as_deref(),
        };
        let report = self.report.map(|report| ReportRequest {
            tca: report.tca.into(),
            primary: report.primary,
            secondary: report.secondary,
            noted: None,
        });
        let ids = ask_once(self.access.client(&server)?, async |client| {
            client.mint(&self.format, query, report.as_ref()).await
        })?;
        print_bytes(&ids)
    }

    /// Mints ids of a random format without a service. Random ids need no worker number and no
    /// reserved time.
    fn mint_random(&self) -> Result<(), Failure> {
        let config = self.settings.load_without_slot()?;
        let clock = Arc::new(Clock::system());
        let service = assemble(&config, clock, &Randomness::Thread, &Registry::new())?;
        let is_random = |served: &&Arc<ServedFormat>| {
            served.format().rule == Rule::Random && served.minter().is_some()
        };
        let random: Vec<_> = service.formats().iter().filter(is_random).collect();
        let named = random
            .iter()
            .find(|served| served.format().name == self.format);
        let served = named.ok_or_else(|| {
            let names = random.iter().map(|served| served.format().name.as_str());
            let (given, names) = (&self.format, names.collect::<Vec<_>>().join(", "));
            Failure::usage(format!(
                "--offline mints only random formats, and {given} is not one; choose from {names}"
            ))
        })?;
        let (format, minter) = (served.format(), served.minter().expect("seen above"));
        let encoding = encoding_index(format, self.encoding.as_deref())?;
        let encoding = &format.encodings[encoding];
        let prefix = self.prefix_of(format, encoding).map_err(Failure::usage)?;
        let count = self.count.unwrap_or(1);
        let count = NonZeroU32::new(count)
            .ok_or_else(|| Failure::usage("--count is 0, but must be 1 or more"))?;
        let of_type = self
            .of_type
            .as_deref()
            .filter(|_| !format.prefixes.are_types());
        let request = minter.request(count, of_type).map_err(Failure::usage)?;
        let mut batch = match minter.reserve(&request) {
            Ok(granted) => granted.batch,
            Err(Denied::Refused(refusal)) => return Err(Failure::new(Exit::Unavailable, refusal)),
            Err(Denied::Horizon { .. }) => unreachable!("a random format has no horizon"),
        };
        let mut out = BufWriter::new(io::stdout().lock());
        let mut room = [0; BLOCK_LEN];
        let mut lines = Vec::new();
        loop {
            let block = batch.next_block(&mut room);
            if block.is_empty() {
                break;
            }
            lines.clear();
            encoding.write_block_behind(&prefix, block, *b"\n", &mut lines);
            if !is_read(out.write_all(&lines))? {
                return Ok(());
            }
        }
        is_read(out.flush()).map(drop)
    }

    /// Returns the prefix that a service writes before each id in this encoding.
    fn prefix_of(&self, format: &Format, encoding: &Encoding) -> Result<String, PrefixError> {
        let is_canonical = encoding.name() == format.canonical().name();
        let prefix = match &self.prefix {
            Some(prefix) => {
                let written = (!is_canonical).then(|| encoding.name());
                format.prefix(prefix, written)?
            }
            None if format.prefixes.are_types() => {
                format.prefix_of_type(self.of_type.as_deref().unwrap_or_default())?
            }
            None => return Ok(String::new()),
        };
        // The prefix (such as `user_`) was checked above, but only canonical texts contain it.
        Ok(if is_canonical {
            prefix.as_str().to_owned()
        } else {
            String::new()
        })
    }

    /// Computes the id of a report without a service. Returns `None` unless `conjunction.mode` is
    /// `pure`. In mode `grouped`, the id depends on the close approaches that the service stores.
    fn mint_offline(&self, report: &ReportArgs) -> Result<Option<String>, Failure> {
        let config = self.settings.load_without_slot()?;
        if config.conjunction.mode != ConjunctionMode::Pure {
            return Ok(None);
        }
        let offline = GroupedOffline::of(&config, &self.format, self.encoding.as_deref())?;
        let given = [
            ("--prefix", &self.prefix),
            ("--type", &self.of_type),
            ("--domain", &self.domain),
        ];
        if let Some((option, _)) = given.iter().find(|(_, value)| value.is_some()) {
            return Err(Failure::usage(format!(
                "ids of {} have no prefix, type or domain: remove {option}",
                self.format
            )));
        }
        let report = Report::from_text(&report.tca, report.primary, report.secondary)
            .map_err(Failure::damaged)?;
        let id = offline.minter.id_of(&report).map_err(Failure::damaged)?;
        Ok(Some(offline.format.encodings[offline.encoding].to_text(id)))
    }
}

/// Returns the index of the encoding `name`, or of the canonical encoding if `name` is `None`.
pub(super) fn encoding_index(format: &Format, name: Option<&str>) -> Result<usize, Failure> {
    let Some(name) = name else { return Ok(0) };
    format.encoding_index(name).ok_or_else(|| {
        let names = format.encoding_names();
        Failure::usage(format!("--encoding {name} is unknown; choose from {names}"))
    })
}
