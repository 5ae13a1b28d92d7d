//! Mints conjunction ids from reports of close approaches, without a service.

use std::sync::Arc;

use crate::cli::exit::{Exit, Failure};
use crate::cli::mint::encoding_index;
use crate::server::Catalog;
use crate::server::config::Config;
use idmint_core::id::{Format, Rule};
use idmint_records::conjunction::GroupedMinter;

/// A format whose ids are minted from reports of close approaches, its minter, and one encoding.
pub(in crate::cli) struct GroupedOffline {
    /// The minter.
    pub(in crate::cli) minter: Arc<GroupedMinter>,
    /// The format.
    pub(in crate::cli) format: Arc<Format>,
    /// The index of the encoding in the format.
    pub(in crate::cli) encoding: usize,
}

impl GroupedOffline {
    /// Returns the format with this name. Its ids will be written in `encoding`, or in the
    /// canonical encoding of the format if `encoding` is `None`.
    ///
    /// # Errors
    /// Returns exit code 64 if the format or encoding is unknown, and 78 if the formats are
    /// invalid.
    pub(in crate::cli) fn of(
        config: &Config,
        name: &str,
        encoding: Option<&str>,
    ) -> Result<GroupedOffline, Failure> {
        let catalog = Catalog::of(config)?;
        let grouped: Vec<_> = catalog
            .formats
            .iter()
            .filter(|format| format.is_minted() && format.rule == Rule::Grouped)
            .collect();
        let Some(format) = grouped.iter().find(|format| format.name == name) else {
            let names: Vec<_> = grouped.iter().map(|format| format.name.as_str()).collect();
            let message = format!(
                "format {name} is not minted from reports; choose from {}",
                names.join(", ")
            );
            return Err(Failure::new(Exit::Usage, message));
        };
        let encoding = encoding_index(format, encoding)?;
        let minter = GroupedMinter::new(Arc::clone(format), config.conjunction.pair_order);
        Ok(GroupedOffline {
            minter: Arc::new(minter),
            format: Arc::clone(format),
            encoding,
        })
    }
}
