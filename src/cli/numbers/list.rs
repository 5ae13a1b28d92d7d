//! The command `idmint numbers list`, which lists all series, or the numbers of one series.

use clap::Args;
use indicatif::ProgressBar;

use crate::cli::exit::Failure;
use crate::cli::print::{Lines, write_pages};
use crate::cli::running_service::{RetryArgs, block_on};
use idmint_records::ledger::SeriesName;
use idmint_wire::{NumberInfo, SeriesInfo};

/// List all series, or the numbers of one series. Programs should read the output of `export` instead.
#[derive(Debug, Args)]
pub(super) struct List {
    /// The series whose numbers are listed. Default: all series are listed.
    #[arg(value_parser = SeriesName::from_text)]
    series: Option<SeriesName>,
    #[command(flatten)]
    service: RetryArgs,
}

impl List {
    /// Prints a line for each series, or a line for each number of the given series. In a series of
    /// the kind `blocks`, each reserved range of numbers is one line.
    ///
    /// # Errors
    /// Returns exit code 1 if the service refuses the request, 65 if a credential file is invalid,
    /// 69 if the service is unreachable, 74 if input or output fails, and 75 if the service stays
    /// busy.
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
        closed,
    } = info;
    let closed = match closed {
        Some(closed) => format!("  closed since {}", closed.time),
        None => String::new(),
    };
    let numbers = match last.as_str() {
        "0" => "no numbers".to_owned(),
        last => format!("{first} to {last}"),
    };
    format!("{series}  {numbers}  {updated}{closed}")
}

fn line_of_number(info: &NumberInfo) -> String {
    let NumberInfo {
        number,
        last,
        text,
        time,
        by,
        void,
        ..
    } = info;
    let by = by.iter().map(|by| format!("  by {by}"));
    let void = void.iter().map(|void| format!("  void: {}", void.reason));
    let written = match last {
        Some(last) => format!("{number} to {last}"),
        None => format!("{number}  {text}"),
    };
    format!("{written}  {time}{}", by.chain(void).collect::<String>())
}
