//! `idmint check`.

use std::sync::Arc;

use clap::Args;
use prometheus::Registry;

use crate::cli::exit::Failure;
use crate::cli::settings::Settings;
use crate::minting::Randomness;
use crate::server::{assemble, check_access, check_slot, formats_table};
use crate::service::Service;
use crate::time::Clock;

/// Check a configuration and print what it means.
#[derive(Debug, Args)]
pub(in crate::cli) struct Check {
    #[command(flatten)]
    settings: Settings,
}

impl Check {
    /// Prints the formats, workers, rates and ends that the configuration gives, and where texts can be confused.
    ///
    /// # Errors
    /// 78 with the setting that is wrong.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let config = self.settings.load(toml::Table::new())?;
        let clock = Arc::new(Clock::system());
        let service = assemble(&config, clock, &Randomness::Thread, &Registry::new());
        let service = service?;
        check_slot(&config)?;
        let callers = check_access(&config, &service)?;
        let assignment = config.worker.assignment();
        println!("listens on        {}://{}", config.http.scheme(), config.http.listen);
        println!("callers           {callers}");
        if let Some(rate) = config.http.rate {
            println!("rate              {rate} requests a second for each");
        }
        println!("slot              {} of {}", assignment.slot, assignment.slots);
        println!("ids per request   at most {}", config.mint.batch_max);
        println!("answers held      at most {:?}\n", config.mint.wait());
        print!("{}", formats_table(&service));
        for (name, others) in clashes(&service) {
            println!("\nan id of {name} may look like one of {}: decode it with ?format={name}", others.join(", "));
        }
        println!("\nthe configuration is sound");
        Ok(())
    }
}

/// Formats whose ids leave a doubt, and the formats that they may be taken for.
fn clashes(service: &Service) -> Vec<(&str, Vec<String>)> {
    let decoding = service.decoding().at(service.clock().now());
    let formats = service.decoding().formats().iter().map(|format| (format.name.as_str(), decoding.rivals(format)));
    formats.filter(|(_, rivals)| !rivals.is_empty()).collect()
}
