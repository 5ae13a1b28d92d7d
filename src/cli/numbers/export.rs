//! `idmint numbers export`.

use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;

use super::pages::write_pages;
use crate::cli::exit::{Exit, Failure};
use crate::cli::print::Lines;
use crate::cli::running_service::{RetryArgs, block_on};
use crate::client::Client;
use crate::ledger::SeriesName;
use crate::wire::{NumberInfo, SeriesInfo};

/// Print every number as a line of JSON, series by series, each in its order.
///
/// Numbers that are given meanwhile may be there or not; of one series those up to some number are, and no others.
#[derive(Debug, Args)]
pub(super) struct Export {
    /// The series; without one, all that the caller may read.
    #[arg(value_parser = SeriesName::from_text)]
    series: Vec<SeriesName>,
    #[command(flatten)]
    service: RetryArgs,
}

/// A number that can do without its place in an answer.
#[derive(Serialize)]
struct Exported<'a> {
    series: &'a str,
    #[serde(flatten)]
    number: &'a NumberInfo,
}

impl Export {
    /// Prints them.
    ///
    /// # Errors
    /// 1 when the service refuses, 65, 69, 74, 75.
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
                serde_json::to_string(&exported).expect("texts and numbers always serialize")
            };
            write_pages(lines, page, line).await?;
        }
        if after.is_none() || !lines.are_read() {
            return Ok(());
        }
    }
}
