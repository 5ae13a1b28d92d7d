//! The journal of a node: a local copy of rows that the coordinator has committed. After a restore
//! of the coordinator, an import writes the lost rows back.
//!
//! ```text
//! journal_record     records as bytes: an era of the fleet, or a row as it was committed
//! segments           the files of a journal: their order, and their size limits
//! append_journal     the writer: journals a row after its commit and before the response
//! journalled_commit  a commit in a journal, without the content of its events
//! journal_copies     the reader of the journals of all nodes
//! chain_choice       divides commits into those that continue a ledger, and lost ones
//! journal_import     writes ledgers and conjunctions back, where they continue the stored data
//! number_copies      the journalled numbers of each series
//! number_import      writes numbers back to a coordinator
//! reimported         the result of an import: the recovered rows and the lost ones
//! ```
//!
//! A node's journal contains every row that the node's responses rely on. These are the node's own
//! commits, and commits of other nodes that the node has returned to a caller. Before an append is
//! committed, its predecessor is journalled. So at most the last commit of a ledger can be missing
//! from all journals, if its node was killed before journalling it. A node that returns such a
//! commit to a caller journals it first. Only rows that are known to be committed are journalled.

#[cfg_attr(
    not(test),
    expect(
        clippy::disallowed_methods,
        reason = "the journal is files of the node"
    )
)]
mod append_journal;
mod chain_choice;
mod journal_copies;
mod journal_import;
mod journal_record;
mod journalled_commit;
mod number_copies;
mod number_import;
mod reimported;
#[cfg_attr(
    not(test),
    expect(
        clippy::disallowed_methods,
        reason = "the journal is files of the node"
    )
)]
mod segments;

#[cfg(test)]
mod journal_tests;
#[cfg(test)]
mod random_restore_tests;
#[cfg(test)]
mod sample_nodes;

pub use append_journal::AppendJournal;
pub use journal_copies::{DamagedPart, JournalCopies, JournalError, JournalledFleet};
pub use journal_import::{ImportError, JournalImport};
pub use reimported::{LostAppend, LostConjunction, LostNumbers, Reimported};
