//! `idmint check`.

use std::sync::Arc;

use clap::Args;
use prometheus::Registry;

use crate::cli::exit::Failure;
use crate::cli::print::print;
use crate::cli::settings::Settings;
use crate::minting::Randomness;
use crate::server::config::{AssignmentKind, Config};
use crate::server::{
    assemble, check_access, check_all_slots, check_slot, formats_table, other_generators, warnings,
};
use crate::service::Service;
use crate::storage::{EngineChoice, EtcdEndpoint};
use crate::time::Clock;

/// Check a configuration and print what it means.
#[derive(Debug, Args)]
pub(in crate::cli) struct Check {
    #[command(flatten)]
    settings: Settings,
}

impl Check {
    /// Prints the formats, workers, rates and ends that the configuration gives, where texts can be confused, and what is odd.
    ///
    /// # Errors
    /// 78 with the setting that is wrong.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let config = self.settings.load(toml::Table::new())?;
        let clock = Arc::new(Clock::system());
        let service = assemble(&config, clock, &Randomness::Thread, &Registry::new());
        let service = service?;
        check_slot(&config)?;
        check_all_slots(&config, &service)?;
        let callers = check_access(&config, &service)?;
        let mut lines = vec![
            format!(
                "listens on        {}://{}",
                config.http.scheme(),
                config.http.listen
            ),
            format!("callers           {}", callers.shown),
        ];
        lines.extend(
            callers
                .refusals
                .iter()
                .map(|refusal| format!("                  {refusal}")),
        );
        lines.extend(
            config
                .http
                .rate
                .map(|rate| format!("rate              {rate} requests a second for each")),
        );
        lines.extend([format!("slot              {}", slot_text(&config))]);
        if let EngineChoice::Etcd(etcd) = config.engine_choice() {
            let endpoints: Vec<_> = etcd.endpoints.iter().map(EtcdEndpoint::as_str).collect();
            lines.push(format!(
                "etcd              {}, namespace {}",
                endpoints.join(" "),
                etcd.namespace
            ));
        }
        lines.extend([
            format!("ids per request   at most {}", config.mint.batch_max),
            format!("answers held      at most {:?}\n", config.mint.wait()),
            formats_table(&service).trim_end().to_owned(),
        ]);
        let kept_clear_of = other_generators(&service, config.clock.max_ahead)?;
        lines.extend((!kept_clear_of.is_empty()).then(String::new));
        lines.extend(kept_clear_of);
        lines.extend(clashes(&service).into_iter().map(|(name, others)| {
            format!(
                "\nan id of {name} may look like one of {}: decode it with ?format={name}",
                others.join(", ")
            )
        }));
        let warnings = warnings(&service, &config);
        lines.extend((!warnings.is_empty()).then(String::new));
        lines.extend(warnings.iter().map(|warning| format!("warning: {warning}")));
        let verdict = match warnings.len() {
            0 => "the configuration is sound".to_owned(),
            1 => "the configuration is sound, but for 1 warning".to_owned(),
            many => format!("the configuration is sound, but for {many} warnings"),
        };
        print(format_args!("{}\n\n{verdict}\n", lines.join("\n")))
    }
}

fn slot_text(config: &Config) -> String {
    let assignment = config.worker.assignment();
    match assignment.kind {
        AssignmentKind::Leased => format!("leased from etcd, one of {}", config.slot_share()),
        AssignmentKind::Alone | AssignmentKind::Configured | AssignmentKind::Ordinal => {
            format!("{} of {}", assignment.slot, assignment.slots)
        }
    }
}

/// Formats whose ids leave a doubt, and the formats that they may be taken for.
fn clashes(service: &Service) -> Vec<(&str, Vec<String>)> {
    let decoding = service.decoding().at(service.clock().now());
    let formats = service
        .decoding()
        .formats()
        .iter()
        .map(|format| (format.name.as_str(), decoding.rivals(format)));
    formats.filter(|(_, rivals)| !rivals.is_empty()).collect()
}
