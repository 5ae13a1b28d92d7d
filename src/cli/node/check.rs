//! The command `idmint check`, which checks a configuration and prints what it means for a node.

use std::sync::Arc;

use clap::Args;
use prometheus::Registry;

use super::serve::{insecure_public, restore_floor};
use crate::cli::exit::Failure;
use crate::cli::print::print;
use crate::cli::settings::Settings;
use crate::server::config::{AssignmentKind, Config, EngineChoice};
use crate::server::{
    RunError, assemble, check_access, check_addresses, check_all_slots, check_callers,
    check_data_dir, check_slot, formats_table, other_generators, read_etcd_expiries, warnings,
};
use idmint_core::minting::Randomness;
use idmint_core::time::Clock;
use idmint_service::Service;
use idmint_storage::EtcdEndpoint;

/// Check a configuration and print its effect.
#[derive(Debug, Args)]
pub(in crate::cli) struct Check {
    #[command(flatten)]
    settings: Settings,
    /// Accept a configuration that `serve` accepts only with this flag.
    #[arg(long)]
    insecure_public: bool,
}

impl Check {
    /// Prints the formats with their worker numbers, rates and last days. Also prints which formats
    /// are easily confused with each other, and the warnings about the configuration. The data
    /// directory is compared with the configuration, but is not changed.
    ///
    /// # Errors
    /// Returns the exit code with which `idmint serve` would fail with this configuration. The code
    /// is 78, with a message about the invalid setting, the expired certificate or the difference
    /// to the data directory. If the data directory is damaged, the code is 65.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let config = self.settings.load(toml::Table::new())?;
        let clock = Arc::new(Clock::system());
        let service = assemble(&config, clock, &Randomness::Thread, &Registry::new());
        let service = service?;
        check_callers(&config, insecure_public(self.insecure_public)?)?;
        check_slot(&config)?;
        check_addresses(&config)?;
        check_all_slots(&config, &service)?;
        let access = check_access(&config, &service)?;
        let data_dir =
            check_data_dir(&config, &service, restore_floor()?).map_err(RunError::from)?;
        let mut lines = vec![
            format!(
                "listens on        {}://{}",
                config.http.scheme(),
                config.http.listen
            ),
            format!("callers           {}", access.credentials),
        ];
        lines.extend(
            access
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
        if let Some((compared, changes)) = data_dir {
            lines.push(format!("data directory    {compared}"));
            let changes = changes
                .iter()
                .zip(std::iter::once("numbers").chain(std::iter::repeat("")));
            lines.extend(changes.map(|(change, label)| format!("{label:<18}{change}")));
        }
        if let EngineChoice::Etcd(etcd) = config.engine_choice() {
            let endpoints: Vec<_> = etcd.endpoints.iter().map(EtcdEndpoint::as_str).collect();
            lines.push(format!(
                "etcd              {}, namespace {}",
                endpoints.join(" "),
                etcd.namespace
            ));
            read_etcd_expiries(&service, etcd.tls.as_ref());
        }
        let (expiries, now) = (service.expiries(), service.clock().now());
        let next = expiries.iter().filter(|expiry| !expiry.has_passed(now));
        lines.extend(next.min_by_key(|expiry| expiry.at).map(|next| {
            format!(
                "next to expire    {} {}, at {}",
                next.kind.label(),
                next.name,
                next.end_text()
            )
        }));
        lines.extend([
            format!("ids per request   at most {}", config.mint.batch_max),
            format!("responses held    at most {:?}\n", config.mint.wait()),
            formats_table(&service).trim_end().to_owned(),
        ]);
        let kept_clear_of = other_generators(&service, config.clock.max_ahead)?;
        lines.extend((!kept_clear_of.is_empty()).then(String::new));
        lines.extend(kept_clear_of);
        let (named, others): (Vec<_>, Vec<_>) = clashes(&service)
            .into_iter()
            .partition(|(name, _)| config.formats.names(name));
        lines.extend(named.iter().map(|(name, rivals)| {
            format!(
                "\nan id of {name} may look like one of {}: decode it with ?format={name}",
                rivals.join(", ")
            )
        }));
        let others: Vec<_> = others.iter().map(|(name, _)| *name).collect();
        lines.extend((!others.is_empty()).then(|| {
            format!(
                "\nids of these formats may look like ids of others: {}; decode them with ?format=NAME",
                others.join(", ")
            )
        }));
        let mut warnings = warnings(&service, &config);
        let (expired, others): (Vec<_>, Vec<_>) = expiries
            .iter()
            .partition(|expiry| expiry.is_expired_certificate(now));
        warnings.extend(others.iter().filter_map(|expiry| expiry.warning(now)));
        lines.extend((!warnings.is_empty()).then(String::new));
        lines.extend(warnings.iter().map(|warning| format!("warning: {warning}")));
        let verdict = match warnings.len() {
            0 => "the configuration is valid".to_owned(),
            1 => "the configuration is valid, with 1 warning".to_owned(),
            many => format!("the configuration is valid, with {many} warnings"),
        };
        let lines = lines.join("\n");
        if expired.is_empty() {
            return print(format_args!("{lines}\n\n{verdict}\n"));
        }
        print(format_args!("{lines}\n"))?;
        let expired: Vec<_> = expired
            .iter()
            .filter_map(|expiry| expiry.warning(now))
            .collect();
        Err(Failure::config(expired.join("; ")))
    }
}

fn slot_text(config: &Config) -> String {
    let assignment = config.worker.assignment();
    match assignment.kind {
        AssignmentKind::Leased => {
            format!("any free slot of {}, leased from etcd", config.slot_share())
        }
        AssignmentKind::Alone | AssignmentKind::Configured | AssignmentKind::Ordinal => {
            format!("{} of {}", assignment.slot, assignment.slots)
        }
    }
}

/// Returns the name of each format whose ids can be mistaken for ids of other formats, together
/// with the names of those other formats.
fn clashes(service: &Service) -> Vec<(&str, Vec<String>)> {
    let decoding = service.decoding().at(service.clock().now());
    let formats = service
        .decoding()
        .formats()
        .iter()
        .map(|format| (format.name.as_str(), decoding.rivals(format)));
    formats.filter(|(_, rivals)| !rivals.is_empty()).collect()
}
