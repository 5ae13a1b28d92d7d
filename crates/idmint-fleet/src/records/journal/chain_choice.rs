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

/// The journalled commits of one ledger, divided into those that continue its chain and the others.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ChainChoice {
    /// The commits that continue the chain, in order.
    pub(super) next: Vec<JournalledCommit>,
    /// Commits that neither continue the chain nor are known to be part of it. If etcd does not
    /// have such a commit, the commit is lost.
    pub(super) others: Vec<JournalledCommit>,
}

impl ChainChoice {
    /// Finds the commits that continue a ledger after its last event. `head` is that event with its
    /// position. If two commits have the same predecessor, the one of the later era (the time
    /// between two fences) continues the ledger.
    pub(super) fn of(
        head: Option<(EventId, u64)>,
        commits: &BTreeMap<EventId, JournalledCommit>,
    ) -> ChainChoice {
        let mut chained = BTreeSet::new();
        // The commit of the head and all commits before it are part of the chain.
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
            // Two journalled commits can follow the same event: one that an earlier restore lost,
            // and one that was appended after that restore. Choose the second one, whose era is
            // later.
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
