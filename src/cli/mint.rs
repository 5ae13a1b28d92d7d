//! `idmint mint`.

use std::io::{self, Write};

use clap::Args;

use super::exit::Failure;
use super::health::{ask, service_url, text_of_success};

/// Mint ids at a running service, one a line.
#[derive(Debug, Args)]
pub(super) struct Mint {
    /// The format, such as snowflake.
    format: String,
    /// How many.
    #[arg(short = 'n', long, default_value_t = 1)]
    count: u32,
    /// The spelling; the canonical one if absent.
    #[arg(long)]
    encoding: Option<String>,
    /// The type, where the format has types.
    #[arg(long = "type", value_name = "TYPE")]
    of_type: Option<String>,
    /// The domain, where the format has domains.
    #[arg(long)]
    domain: Option<String>,
    /// Where the service listens.
    #[arg(long, default_value_t = service_url())]
    server: String,
}

impl Mint {
    /// Prints the ids.
    ///
    /// # Errors
    /// 1 when the service refuses, 69 when it cannot be reached.
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut query = vec![("count", self.count.to_string())];
        let given = [("encoding", self.encoding), ("type", self.of_type), ("domain", self.domain)];
        query.extend(given.into_iter().filter_map(|(name, value)| Some((name, value?))));
        let ids = ask(async |client| {
            let url = format!("{}/ids/{}", self.server, self.format);
            text_of_success(client.post(url).query(&query).header("accept", "text/plain").send().await?).await
        })?;
        // Whoever reads may have seen enough.
        let _ = io::stdout().write_all(ids.as_bytes());
        Ok(())
    }
}
