//! Which commits of journals continue the chain of a ledger.
//!
//! ```text
//! in etcd       1 ── 2 ── 3            the head
//! in journals        2 ── 3 ── 4 ── 5       continue it: 4, 5
//!                         3'── 4'           lost: 3 stands in the place of 3'
//!                                        7  lost: nobody has 6
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::journalled_commit::JournalledCommit;
use crate::ledger::EventId;

/// What is to be done with the commits of a ledger that journals have.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ChainChoice {
    /// They continue the chain, in this order.
    pub(super) next: Vec<JournalledCommit>,
    /// They do not, and are not known to be part of it: if they are not there they are lost.
    pub(super) others: Vec<JournalledCommit>,
}

impl ChainChoice {
    /// Decides on the commits of a ledger whose last event and its place are these.
    pub(super) fn of(
        head: Option<(EventId, u64)>,
        commits: &BTreeMap<EventId, JournalledCommit>,
    ) -> ChainChoice {
        let mut chained = BTreeSet::new();
        // What an id of the chain names as the one before it is part of the chain.
        let mut back = head.and_then(|(last, _)| commits.get(&last));
        while let Some(commit) = back.filter(|commit| chained.insert(commit.last)) {
            back = commits.get(&commit.previous);
        }
        let mut by_place: BTreeMap<u64, Vec<&JournalledCommit>> = BTreeMap::new();
        commits
            .values()
            .for_each(|commit| by_place.entry(commit.first_place).or_default().push(commit));
        let (mut head, mut next) = (head, Vec::new());
        loop {
            let place = head.map_or(1, |(_, place)| place.saturating_add(1));
            let candidates = by_place
                .get(&place)
                .into_iter()
                .flatten()
                .filter(|commit| commit.continues(head));
            // Where a restore had lost one before and the ledger went on with another, that one was there last.
            let Some(commit) =
                candidates.max_by_key(|commit| (commit.era, commit.recorded, commit.last))
            else {
                break;
            };
            head = Some((commit.last, commit.last_place));
            chained.insert(commit.last);
            next.push(**commit);
        }
        let others = commits
            .values()
            .filter(|commit| !chained.contains(&commit.last))
            .copied()
            .collect();
        ChainChoice { next, others }
    }
}
