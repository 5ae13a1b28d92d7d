//! `idmint restore`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::backup::data_dir;
use crate::cli::exit::Failure;
use crate::cli::print::{open_input, print, print_note};
use crate::cli::settings::Settings;
use idmint_core::time::Clock;
use idmint_storage::restore;

/// Restore an archive of `idmint backup -` to an empty data folder, after the node that made it has
/// ended. Prints the floor (the earliest time for new ids) that the next start needs.
#[derive(Debug, Args)]
pub(in crate::cli) struct Restore {
    /// The archive, or `-` for standard input.
    archive: PathBuf,
    /// The data folder to fill, for storage.data_dir: empty, or new.
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

impl Restore {
    /// Fills the data folder with the content of the archive. Prints the floor that the next start
    /// needs to standard output, and the next steps to standard error.
    ///
    /// # Errors
    /// Returns exit code 65 if the archive is damaged or not a backup, 74 if a file cannot be read
    /// or written, 75 if a process uses the folder, and 78 if the folder is not empty, the clock is
    /// wrong or the configuration is invalid.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let data_dir = data_dir(self.data_dir.as_deref(), &self.settings)?;
        let config = self.settings.load_without_slot()?;
        let clock = Clock::system();
        if clock.is_before_build() {
            return Err(Failure::config(format!(
                "the clock shows {}, before this program was built: set the clock",
                clock.now()
            )));
        }
        // The node of the backup may have minted ids with times this far ahead of the clock:
        // `clock.max_ahead`, plus one reservation of `storage.window`.
        let reserved = config.storage.window() + config.clock.max_ahead;
        let floor = clock.now().after(reserved).ceil_to_second();
        let file = (self.archive != Path::new("-")).then_some(self.archive.as_path());
        let (name, mut archive) = open_input(file)?;
        restore(&data_dir, &mut archive, floor).map_err(|error| {
            Failure::from(error).and(format!("nothing was restored from {name}"))
        })?;
        print_note(format_args!(
            "restored to {dir}; if the node that this backup is of had ended before this command began, start once with\n\
             idmint: idmint serve --data-dir {dir} --floor {floor}\n\
             idmint: or with IDMINT_FLOOR={floor}; then resume each series: idmint numbers resume SERIES --from N",
            dir = data_dir.display()
        ));
        print(format_args!("{floor}\n"))
    }
}
