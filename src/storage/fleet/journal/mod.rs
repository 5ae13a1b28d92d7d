//! What a coordinator has committed for a node, kept by the node: what a restored coordinator forgot comes back from there.
//!
//! ```text
//! journal_record     records as bytes: an era of the fleet, or a row as it was committed
//! segments           the files of a journal: their order, and how much they may be
//! append_journal     written by a node, after a commit and before the answer
//! journalled_commit  a commit as a journal has it
//! journal_copies     read again, those of all nodes together
//! chain_choice       which commits continue a chain, and which are lost
//! journal_import     written to a coordinator, as far as they continue what is there
//! number_copies      of numbers what journals have
//! number_import      numbers, written to a coordinator
//! reimported         what came back, and what is lost
//! ```
//!
//! Whatever an answer of a node rests on is in its journal: what it committed itself; what another one committed and it told a
//! caller. What it appends behind is there before it appends, so of each ledger only the last commit can be in no journal, where
//! its node was killed before it wrote it down; and that is in one as soon as anybody has been told of it. Only what is known to
//! be committed is ever written.

mod append_journal;
mod chain_choice;
mod journal_copies;
mod journal_import;
mod journal_record;
mod journalled_commit;
mod number_copies;
mod number_import;
mod reimported;
mod segments;

#[cfg(test)]
mod journal_tests;
#[cfg(test)]
mod random_restore_tests;
#[cfg(test)]
mod sample_nodes;

pub use append_journal::AppendJournal;
pub use journal_copies::{JournalCopies, JournalError};
pub use journal_import::{ImportError, JournalImport};
pub use reimported::{LostAppend, LostConjunction, LostNumbers, Reimported};
