//! `idmint completions` and `idmint man`: shell completions and manual pages.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;

use super::exit::Failure;
use super::print::print;
use idmint_core::time::built_at;

/// Print the shell completions of the commands.
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell: bash, elvish, fish, powershell or zsh.
    #[arg(hide_possible_values = true)]
    shell: Shell,
}

impl Completions {
    /// Prints the script with which a shell completes these commands.
    ///
    /// # Errors
    /// Returns exit code 74 if the output fails.
    pub(super) fn run(self, mut commands: Command) -> Result<(), Failure> {
        let (name, mut script) = (commands.get_name().to_owned(), Vec::new());
        clap_complete::generate(self.shell, &mut commands, name, &mut script);
        print(format_args!("{}", String::from_utf8_lossy(&script)))
    }
}

/// Write the manual, a page for each command.
#[derive(Debug, Args)]
pub(super) struct Man {
    /// The folder, such as /usr/local/share/man/man1; created if it does not exist.
    folder: PathBuf,
}

impl Man {
    /// Writes the manual pages of these commands.
    ///
    /// # Errors
    /// Returns exit code 74 if a page cannot be written.
    pub(super) fn run(self, commands: Command) -> Result<(), Failure> {
        let mut commands = commands.disable_help_subcommand(true);
        commands.build();
        let written = make_folder(&self.folder).and_then(|()| write_pages(&commands, &self.folder));
        written.map_err(|error| Failure::io(self.folder.display(), error))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the command says that it writes this folder"
)]
fn make_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Writes the manual page of a command, and the manual pages of all its subcommands.
#[expect(
    clippy::disallowed_methods,
    reason = "the command says that it writes these files"
)]
fn write_pages(command: &Command, folder: &Path) -> io::Result<()> {
    let built = built_at().to_string();
    let date = built.split('T').next().unwrap_or_default();
    let page = clap_mangen::Man::new(command.clone())
        .date(date)
        .manual("idmint");
    let mut text = Vec::new();
    page.render(&mut text)?;
    fs::write(folder.join(page.get_filename()), text)?;
    let mut below = command
        .get_subcommands()
        .filter(|command| command.get_name() != "help");
    below.try_for_each(|command| write_pages(command, folder))
}
