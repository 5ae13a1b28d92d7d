//! What a restored etcd has forgotten, brought back from the journals of nodes.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use crate::cli::exit::{Exit, Failure};
use crate::cluster::Nonce;
use crate::ledger::GivenNumbers;
use crate::storage::{
    Coordinator, EtcdSettings, ImportError, JournalCopies, JournalError, JournalImport, LostAppend,
    LostConjunction, LostNumbers, Reimported, Revision,
};

/// Reads the journals at these paths as those of the fleet that began as `here`; where there is none any more, of the one they
/// are of. Returns which one that is, too.
///
/// # Errors
/// 74 when one cannot be read, 78 when one is of another fleet.
pub(super) fn read(
    paths: &[PathBuf],
    etcd: &EtcdSettings,
    here: Option<Nonce>,
) -> Result<(JournalCopies, Option<Nonce>), Failure> {
    let copies =
        JournalCopies::read(paths, &etcd.namespace).map_err(|error| failure_of_journal(&error))?;
    let origin = copies
        .origin(here.map(Nonce::bits))
        .map_err(|error| failure_of_journal(&error))?;
    let copies = match origin {
        Some(origin) => copies.of_origin(origin),
        None => copies,
    };
    Ok((copies, origin.map(Nonce::new)))
}

/// Writes what journals have to a fleet that agrees on what this revision wrote.
///
/// # Errors
/// 74, 75: what was written is whole; run again it goes on.
pub(super) fn import(
    coordinator: Arc<dyn Coordinator>,
    etcd: &EtcdSettings,
    agreed: Revision,
    copies: &JournalCopies,
) -> Result<Reimported, Failure> {
    JournalImport::new(coordinator, &etcd.namespace, agreed, copies)
        .run()
        .map_err(|error| match error {
            ImportError::Journal(error) => failure_of_journal(&error),
            ImportError::Store(error) => error.into(),
        })
}

/// What came back, and what is lost, in lines.
pub(super) fn report(copies: &JournalCopies, done: &Reimported) -> String {
    let mut text = String::new();
    let mut line = |line: String| writeln!(text, "{line}").expect("text can be written");
    for (path, bytes) in copies.unreadable() {
        line(format!(
            "{}: the last {bytes} bytes are torn, or damaged, and are left out",
            path.display()
        ));
    }
    let Reimported {
        ledgers,
        events,
        requests,
        conjunctions,
        series,
        numbers,
        voids,
        lost,
        ..
    } = done;
    line(format!(
        "from {} files of journals {events} events of {ledgers} ledgers came back with {requests} keys, \
         {conjunctions} conjunctions, and {numbers} numbers of {series} series with {voids} voids",
        copies.file_count()
    ));
    lost.iter().for_each(|lost| line(line_of(lost)));
    done.lost_numbers
        .iter()
        .for_each(|lost| line(line_of_numbers(lost)));
    for LostConjunction {
        format,
        pair,
        anchor,
    } in &done.lost_conjunctions
    {
        let (primary, secondary, tca) = (pair.primary, pair.secondary, anchor.tca.0);
        line(format!(
            "lost: the conjunction of {primary} and {secondary} in {format} at {tca} microseconds since 1970: \
             another one is within a second of it"
        ));
    }
    text
}

/// Says by the exit code that something is lost.
///
/// # Errors
/// 65.
pub(super) fn judge(
    Reimported {
        lost,
        lost_conjunctions,
        lost_numbers,
        ..
    }: &Reimported,
) -> Result<(), Failure> {
    if lost.is_empty() && lost_conjunctions.is_empty() && lost_numbers.is_empty() {
        return Ok(());
    }
    let events: usize = lost.iter().map(|lost| lost.events.len()).sum();
    let conjunctions = lost_conjunctions.len();
    let numbers: u64 = lost_numbers.iter().map(|lost| lost.given.count()).sum();
    let text = format!(
        "the fence is done; {events} events, {conjunctions} conjunctions and {numbers} numbers are lost, as printed"
    );
    Err(Failure::new(Exit::Damaged, text))
}

fn line_of(
    LostAppend {
        first_place,
        events,
        is_replaced,
    }: &LostAppend,
) -> String {
    let ledger = events
        .first()
        .map_or(String::new(), |event| event.ledger().to_string());
    let why = match is_replaced {
        true => "the ledger has others in their places",
        false => "no journal has what stands before them",
    };
    let ids: Vec<String> = events.iter().map(ToString::to_string).collect();
    format!(
        "lost: {} events of ledger {ledger} from place {first_place} on, {why}: {}",
        events.len(),
        ids.join(" ")
    )
}

fn line_of_numbers(LostNumbers { given, is_replaced }: &LostNumbers) -> String {
    let GivenNumbers {
        series,
        first,
        last,
        mark,
        ..
    } = given;
    let why = match is_replaced {
        true => "other keys were given them since",
        false => "no journal has what stands before them",
    };
    format!(
        "lost: numbers {first} to {last} of {series}, given to the key {:032x}: {why}",
        mark.key.0
    )
}

fn failure_of_journal(error: &JournalError) -> Failure {
    match error {
        JournalError::Unreadable { .. } => Failure::of(Exit::Io, error),
        JournalError::OtherFleet { .. } => Failure::of(Exit::Config, error),
    }
}
