//! Restores records from the journals of nodes after the etcd of the fleet has lost these records.

use std::fmt::Write as _;

use crate::cli::exit::Failure;
use idmint_fleet::{
    DamagedPart, JournalCopies, LostAppend, LostConjunction, LostNumbers, Reimported,
};
use idmint_records::ledger::GivenNumbers;

/// Returns a text for the operator that lists the restored records, the lost records and the
/// damaged parts of journals (the nodes' own copies of written records).
pub(super) fn report(copies: &JournalCopies, done: &Reimported) -> String {
    let mut text = String::new();
    let mut line = |line: String| writeln!(text, "{line}").expect("text can be written");
    for (path, bytes) in copies.torn() {
        line(format!(
            "{}: the last {bytes} bytes are cut off or damaged, and are skipped",
            path.display()
        ));
    }
    for DamagedPart {
        path,
        at,
        len,
        rows_before,
        rows_after,
    } in &done.damaged
    {
        line(format!(
            "{}: {len} bytes from byte {at} on are damaged and are skipped; {rows_before} rows before them and {rows_after} \
             after them are whole",
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
        "restored from {} journal files: {events} events in {ledgers} ledgers, {requests} idempotency keys, \
         {conjunctions} conjunctions, {numbers} numbers in {series} series, {voids} voids",
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
            "lost: the conjunction of {primary} and {secondary} in {format} at {tca} microseconds since 1970, because \
             another conjunction is within a second of it"
        ));
    }
    text
}

/// Returns an error if records could not be restored, or may have been lost in a damaged journal.
///
/// # Errors
/// Returns exit code 65 if records are lost, or if a journal is damaged.
pub(super) fn judge(
    Reimported {
        lost,
        lost_conjunctions,
        lost_numbers,
        damaged,
        ..
    }: &Reimported,
) -> Result<(), Failure> {
    let is_nothing_lost =
        lost.is_empty() && lost_conjunctions.is_empty() && lost_numbers.is_empty();
    if is_nothing_lost && damaged.is_empty() {
        return Ok(());
    }
    if is_nothing_lost {
        return Err(Failure::damaged(
            "the fleet is fenced, but the journals listed above are damaged, and records that are in no other journal \
             are lost; if you have a good copy of such a file, stop all nodes and fence again with it",
        ));
    }
    let events: usize = lost.iter().map(|lost| lost.events.len()).sum();
    let conjunctions = lost_conjunctions.len();
    let numbers: u64 = lost_numbers.iter().map(|lost| lost.given.count()).sum();
    let text = format!(
        "the fleet is fenced, but {events} events, {conjunctions} conjunctions and {numbers} numbers are lost; the \
         lines above list them"
    );
    Err(Failure::damaged(text))
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
        true => "because the ledger has other events at these positions",
        false => "because no journal has the events before them",
    };
    let ids: Vec<String> = events.iter().map(ToString::to_string).collect();
    format!(
        "lost: {} events of ledger {ledger} from position {first_place} on, {why}: {}",
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
        true => "they were given to other requests since",
        false => "no journal has the entries before them",
    };
    format!(
        "lost: numbers {first} to {last} of {series}, given to the request with key {:032x}: {why}",
        mark.key.0
    )
}
