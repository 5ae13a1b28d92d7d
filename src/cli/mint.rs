//! The command `idmint mint`, which mints ids.

use std::io::{self, Write};

use clap::Args;

use super::conjunction::GroupedOffline;
use super::exit::{Exit, Failure};
use super::running_service::{AccessArgs, ask_once, service_url};
use super::settings::Settings;
use crate::server::config::ConjunctionMode;
use idmint_client::MintQuery;
use idmint_records::conjunction::{Report, ReportError};
use idmint_wire::ReportRequest;

/// Mint ids at a running service, one per line.
///
/// With conjunction.mode = "pure" the id follows from the report alone, and without --server no service is used.
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
    /// The address of the service; on this machine if absent.
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    server: Option<String>,
    #[command(flatten)]
    access: AccessArgs,
    #[command(flatten)]
    settings: Settings,
}

/// The report from which a conjunction id is minted. Its three options must be given together, and
/// only for formats that are minted from reports.
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
    /// Prints the ids.
    ///
    /// # Errors
    /// Returns exit code 1 if the service refuses the request, and 69 if it is unreachable. Without
    /// a service, returns 64 if the format or encoding is unknown, 65 if the report has no id, and
    /// 78 if the configuration is invalid.
    pub(super) fn run(self) -> Result<(), Failure> {
        if let (None, Some(report)) = (&self.server, &self.report)
            && let Some(id) = self.mint_offline(report)?
        {
            // The reader of the output may have closed the pipe, which is not an error.
            let _ = writeln!(io::stdout(), "{id}");
            return Ok(());
        }
        let server = self.server.clone().unwrap_or_else(service_url);
        let query = MintQuery {
            count: self.count,
            encoding: self.encoding.as_deref(),
            prefix: self.prefix.as_deref(),
            of_type: self.of_type.as_deref(),
            domain: self.domain.as_deref(),
        };
        let report = self.report.map(
            |ReportArgs {
                 tca,
                 primary,
                 secondary,
             }| ReportRequest {
                tca: tca.into(),
                primary,
                secondary,
                noted: None,
            },
        );
        let ids = ask_once(self.access.client(&server)?, async |client| {
            client.mint(&self.format, query, report.as_ref()).await
        })?;
        // The reader of the output may have closed the pipe, which is not an error.
        let _ = io::stdout().write_all(&ids);
        Ok(())
    }

    /// Mints the id of a report without a service. Returns `None` if the service stores
    /// conjunctions, so that only the service knows the id.
    fn mint_offline(&self, report: &ReportArgs) -> Result<Option<String>, Failure> {
        let config = self.settings.load(toml::Table::new())?;
        if config.conjunction.mode != ConjunctionMode::Pure {
            return Ok(None);
        }
        let offline = GroupedOffline::of(&config, &self.format, self.encoding.as_deref())?;
        let damaged = |error: ReportError| Failure::new(Exit::Damaged, error);
        let report =
            Report::from_text(&report.tca, report.primary, report.secondary).map_err(damaged)?;
        let id = offline.minter.id_of(&report).map_err(damaged)?;
        Ok(Some(offline.format.encodings[offline.encoding].to_text(id)))
    }
}
