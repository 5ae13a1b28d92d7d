//! `idmint check`.

use std::sync::Arc;

use clap::Args;
use prometheus::Registry;

use super::exit::{Exit, Failure};
use super::settings::Settings;
use crate::id::Format;
use crate::minting::Randomness;
use crate::server::{assemble, formats_table};
use crate::time::Clock;

/// Check a configuration and print what it means.
#[derive(Debug, Args)]
pub(super) struct Check {
    #[command(flatten)]
    settings: Settings,
}

impl Check {
    /// Prints the formats, workers, rates and ends that the configuration gives, and where texts can be confused.
    ///
    /// # Errors
    /// 78 with the setting that is wrong.
    pub(super) fn run(self) -> Result<(), Failure> {
        let config = self.settings.load(toml::Table::new())?;
        let clock = Arc::new(Clock::system());
        let service = assemble(&config, clock, &Randomness::Thread, &Registry::new());
        let service = service.map_err(|error| Failure::of(Exit::Config, &error))?;
        let assignment = config.worker.assignment();
        println!("listens on        {}", config.http.listen);
        println!("slot              {} of {}", assignment.slot, assignment.slots);
        println!("ids per request   at most {}", config.mint.batch_max);
        println!("answers held      at most {:?}\n", config.mint.wait());
        print!("{}", formats_table(&service));
        for (one, other) in clashes(service.decoder.formats()) {
            println!("\nids of {one} and {other} look alike: decode both with ?format=");
        }
        println!("\nthe configuration is sound");
        Ok(())
    }
}

/// Formats whose canonical texts cannot be told apart by their form.
fn clashes(formats: &[Arc<Format>]) -> Vec<(&str, &str)> {
    let pairs =
        formats.iter().enumerate().flat_map(|(at, one)| formats[at + 1..].iter().map(move |other| (one, other)));
    pairs
        .filter(|(one, other)| one.canonical().pattern() == other.canonical().pattern())
        .map(|(one, other)| (one.name.as_str(), other.name.as_str()))
        .collect()
}
