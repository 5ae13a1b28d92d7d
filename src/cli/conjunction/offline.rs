//! What makes ids of reports without a service.

use std::sync::Arc;

use crate::cli::exit::{Exit, Failure};
use crate::conjunction::GroupedMinter;
use crate::id::{Format, Rule};
use crate::server::Catalog;
use crate::server::config::Config;

/// A grouped format, one of its encodings, and its minter.
pub(in crate::cli) struct GroupedOffline {
    /// The minter.
    pub(in crate::cli) minter: Arc<GroupedMinter>,
    /// The format.
    pub(in crate::cli) format: Arc<Format>,
    /// The position of the encoding in it.
    pub(in crate::cli) encoding: usize,
}

impl GroupedOffline {
    /// The format of that name, with the encoding of that name or its canonical one.
    ///
    /// # Errors
    /// 64 for a format or an encoding that there is not; 78.
    pub(in crate::cli) fn of(
        config: &Config,
        name: &str,
        encoding: Option<&str>,
    ) -> Result<GroupedOffline, Failure> {
        let catalog = Catalog::of(config)?;
        let grouped: Vec<_> = catalog
            .formats
            .iter()
            .filter(|format| format.rule == Rule::Grouped)
            .collect();
        let Some(format) = grouped.iter().find(|format| format.name == name) else {
            let names: Vec<_> = grouped.iter().map(|format| format.name.as_str()).collect();
            let message = format!(
                "format {name}: of formats minted from reports there is {}",
                names.join(", ")
            );
            return Err(Failure::new(Exit::Usage, message));
        };
        let names: Vec<_> = format
            .encodings
            .iter()
            .map(|encoding| encoding.name())
            .collect();
        let encoding = match encoding {
            None => 0,
            Some(name) => names
                .iter()
                .position(|known| *known == name)
                .ok_or_else(|| {
                    Failure::new(
                        Exit::Usage,
                        format!("--encoding {name}: there is {}", names.join(", ")),
                    )
                })?,
        };
        let minter = GroupedMinter::new(Arc::clone(format), config.conjunction.pair_order);
        Ok(GroupedOffline {
            minter: Arc::new(minter),
            format: Arc::clone(format),
            encoding,
        })
    }
}
