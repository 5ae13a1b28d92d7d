//! `idmint mint`.

use std::io::{self, Write};

use clap::Args;

use super::exit::Failure;
use super::running_service::{ask_once, service_url};
use crate::client::MintQuery;
use crate::wire::ReportRequest;

/// Mint ids at a running service, one a line.
#[derive(Debug, Args)]
pub(super) struct Mint {
    /// The format, such as snowflake.
    format: String,
    /// How many; 1 if absent.
    #[arg(short = 'n', long)]
    count: Option<u32>,
    /// The spelling; the canonical one if absent.
    #[arg(long)]
    encoding: Option<String>,
    /// The type, where the format has types.
    #[arg(long = "type", value_name = "TYPE")]
    of_type: Option<String>,
    /// The domain, where the format has domains.
    #[arg(long)]
    domain: Option<String>,
    #[command(flatten)]
    report: Option<ReportArgs>,
    /// Where the service listens.
    #[arg(long, default_value_t = service_url())]
    server: String,
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
    /// 1 when the service refuses, 69 when it cannot be reached.
    pub(super) fn run(self) -> Result<(), Failure> {
        let query = MintQuery {
            count: self.count,
            encoding: self.encoding.as_deref(),
            of_type: self.of_type.as_deref(),
            domain: self.domain.as_deref(),
        };
        let report = self.report.map(|ReportArgs { tca, primary, secondary }| ReportRequest {
            tca: tca.into(),
            primary,
            secondary,
        });
        let ids = ask_once(&self.server, async |client| client.mint(&self.format, query, report.as_ref()).await)?;
        // Whoever reads may have seen enough.
        let _ = io::stdout().write_all(&ids);
        Ok(())
    }
}
