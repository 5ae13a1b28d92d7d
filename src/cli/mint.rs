//! `idmint mint`.

use std::io::{self, Write};

use clap::Args;

use super::conjunction::GroupedOffline;
use super::exit::{Exit, Failure};
use super::running_service::{AccessArgs, ask_once, service_url};
use super::settings::Settings;
use crate::client::MintQuery;
use crate::conjunction::{Report, ReportError};
use crate::server::config::ConjunctionMode;
use crate::wire::ReportRequest;

/// Mint ids at a running service, one a line.
///
/// With conjunction.mode = "pure" the id of a report is made of the report alone, and without --server no service is asked.
#[derive(Debug, Args)]
pub(super) struct Mint {
    /// The format, such as snowflake.
    format: String,
    /// How many; 1 if absent.
    #[arg(short = 'n', long)]
    count: Option<u32>,
    /// The encoding; the canonical one if absent.
    #[arg(long)]
    encoding: Option<String>,
    /// What stands before each id, where the format has prefixes.
    #[arg(long)]
    prefix: Option<String>,
    /// The type, where the format has types.
    #[arg(long = "type", value_name = "TYPE")]
    of_type: Option<String>,
    /// The domain, where the format has domains.
    #[arg(long)]
    domain: Option<String>,
    #[command(flatten)]
    report: Option<ReportArgs>,
    /// Where the service listens; on this machine if absent.
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    server: Option<String>,
    #[command(flatten)]
    access: AccessArgs,
    #[command(flatten)]
    settings: Settings,
}

/// What a conjunction id is made of: all three, for a format that is minted from reports.
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
    /// 1 when the service refuses, 69 when it cannot be reached; without a service 64 for a format or an encoding that there
    /// is not, 65 for a report that makes no id, and 78.
    pub(super) fn run(self) -> Result<(), Failure> {
        if let (None, Some(report)) = (&self.server, &self.report)
            && let Some(id) = self.mint_offline(report)?
        {
            // Whoever reads may have seen enough.
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
        // Whoever reads may have seen enough.
        let _ = io::stdout().write_all(&ids);
        Ok(())
    }

    /// The id of a report where conjunctions are not stored; `None` where only a service knows it.
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
