//! The command `idmint numbers export`, which prints every number of every series as a line of
//! JSON.

use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;

use crate::cli::exit::{Exit, Failure};
use crate::cli::print::{Lines, json, write_pages};
use crate::cli::running_service::{RetryArgs, block_on};
use idmint_client::Client;
use idmint_records::ledger::SeriesName;
use idmint_wire::{NumberInfo, SeriesInfo};

/// Print every number as a line of JSON, series by series, each in its order.
///
/// A reserved range of blocks is one line: `number` is its first number, and `last` its last one.
///
/// Numbers given during the export may be missing. The numbers of each series are complete up to the last one printed.
#[derive(Debug, Args)]
pub(super) struct Export {
    /// The series to print. Default: all series that the caller may read.
    #[arg(value_parser = SeriesName::from_text)]
    series: Vec<SeriesName>,
    #[command(flatten)]
    service: RetryArgs,
}

/// A line of the export. It contains the name of a series and one of the series' numbers.
#[derive(Serialize)]
struct Exported<'a> {
    series: &'a str,
    #[serde(flatten)]
    number: &'a NumberInfo,
}

impl Export {
    /// Prints the stored numbers of the selected series.
    ///
    /// # Errors
    /// Returns exit code 1 if the service refuses the request, 65 if a credential file is invalid,
    /// 69 if the service is unreachable, 74 if input or output fails, and 75 if the service stays
    /// busy.
    pub(super) fn run(self) -> Result<(), Failure> {
        let client = self.service.client(&ProgressBar::hidden())?;
        let mut lines = Lines::begin();
        block_on(export(&client, self.series, &mut lines))?;
        lines.end()
    }
}

async fn export(
    client: &Client,
    mut series: Vec<SeriesName>,
    lines: &mut Lines,
) -> Result<(), Failure> {
    let is_all = series.is_empty();
    let mut after: Option<String> = None;
    loop {
        if is_all {
            let page = client.series(after.as_deref()).await?;
            let name = |info: &SeriesInfo| {
                SeriesName::from_text(&info.series)
                    .map_err(|error| Failure::of(Exit::Unavailable, &error))
            };
            series = page.series.iter().map(name).collect::<Result<_, _>>()?;
            after = page.next;
        }
        for name in &series {
            let page = async |after: Option<String>| {
                let page = client.numbers(name, after.as_deref()).await?;
                Ok((page.numbers, page.next))
            };
            let line = |number: &NumberInfo| {
                let exported = Exported {
                    series: name.as_str(),
                    number,
                };
                json(&exported)
            };
            write_pages(lines, page, line).await?;
        }
        if after.is_none() || !lines.are_read() {
            return Ok(());
        }
    }
}
