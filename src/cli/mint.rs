//! `idmint mint`.

use std::io::{self, Write};

use clap::Args;

use super::exit::Failure;
use super::health::{ask, service_url, text_of_success};
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
        let count = self.count.map(|count| count.to_string());
        let given = [("count", count), ("encoding", self.encoding), ("type", self.of_type), ("domain", self.domain)];
        let query: Vec<_> = given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let report = self.report.map(|ReportArgs { tca, primary, secondary }| ReportRequest {
            tca: tca.into(),
            primary,
            secondary,
        });
        let ids = ask(async |client| {
            let url = format!("{}/ids/{}", self.server, self.format);
            let request = client.post(url).query(&query).header("accept", "text/plain");
            let request = if let Some(report) = &report { request.json(report) } else { request };
            text_of_success(request.send().await?).await
        })?;
        // Whoever reads may have seen enough.
        let _ = io::stdout().write_all(ids.as_bytes());
        Ok(())
    }
}
