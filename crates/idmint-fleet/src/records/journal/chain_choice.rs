//! Chooses the journalled commits that continue the chain of a ledger.
//!
//! ```text
//! in etcd       1 ── 2 ── 3            the head
//! in journals        2 ── 3 ── 4 ── 5       continue the chain: 4, 5
//!                         3'── 4'           lost: 3 has replaced 3'
//!                                        7  lost: no journal has 6
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::journalled_commit::JournalledCommit;
use idmint_records::ledger::EventId;

/// The journalled commits of one ledger, divided into those that continue the ledger's chain of
/// events and all others.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ChainChoice {
    /// The commits that continue the chain, in order.
    pub(super) next: Vec<JournalledCommit>,
    /// The commits that neither continue the chain nor are part of it. Each of them is lost, unless
    /// etcd has it.
    pub(super) others: Vec<JournalledCommit>,
}

impl ChainChoice {
    /// Finds the commits that continue a ledger after its last event. `head` is that event and its
    /// position. If two commits follow the same event, a restore has lost one of them. The commit
    /// of the later era is chosen, because it was made after that restore.
    pub(super) fn of(
        head: Option<(EventId, u64)>,
        commits: &BTreeMap<EventId, JournalledCommit>,
    ) -> ChainChoice {
        let mut chained = BTreeSet::new();
        // The commit with the ledger's last event, and all commits before it, are already part of
        // the chain.
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
            // Two commits follow the same event if a restore lost the first one, and the second one
            // was then made in its place. Choose the second one, which has the later era.
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
