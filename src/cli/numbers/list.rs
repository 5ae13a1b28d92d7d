//! `idmint numbers list`.

use clap::Args;
use indicatif::ProgressBar;

use super::pages::write_pages;
use crate::cli::exit::Failure;
use crate::cli::print::Lines;
use crate::cli::running_service::{RetryArgs, block_on};
use crate::ledger::SeriesName;
use crate::wire::{NumberInfo, SeriesInfo};

/// List the series that there are, or the numbers of one, for people; programs read what `export` prints.
#[derive(Debug, Args)]
pub(super) struct List {
    /// The series whose numbers are listed; without one the series are.
    #[arg(value_parser = SeriesName::from_text)]
    series: Option<SeriesName>,
    #[command(flatten)]
    service: RetryArgs,
}

impl List {
    /// Prints a line for each.
    ///
    /// # Errors
    /// 1 when the service refuses, 65, 69, 74, 75.
    pub(super) fn run(self) -> Result<(), Failure> {
        let client = self.service.client(&ProgressBar::hidden())?;
        let mut lines = Lines::begin();
        let listing = async {
            match &self.series {
                Some(series) => {
                    let page = async |after: Option<String>| {
                        let page = client.numbers(series, after.as_deref()).await?;
                        Ok((page.numbers, page.next))
                    };
                    write_pages(&mut lines, page, line_of_number).await
                }
                None => {
                    let page = async |after: Option<String>| {
                        let page = client.series(after.as_deref()).await?;
                        Ok((page.series, page.next))
                    };
                    write_pages(&mut lines, page, line_of_series).await
                }
            }
        };
        block_on(listing)?;
        lines.end()
    }
}

fn line_of_series(info: &SeriesInfo) -> String {
    let SeriesInfo {
        series,
        first,
        last,
        updated,
    } = info;
    format!("{series}  {first} to {last}  {updated}")
}

fn line_of_number(info: &NumberInfo) -> String {
    let NumberInfo {
        number,
        text,
        time,
        by,
        void,
        ..
    } = info;
    let by = by.iter().map(|by| format!("  by {by}"));
    let void = void.iter().map(|void| format!("  void: {}", void.reason));
    format!(
        "{number}  {text}  {time}{}",
        by.chain(void).collect::<String>()
    )
}
