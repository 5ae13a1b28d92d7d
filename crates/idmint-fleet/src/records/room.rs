//! Tracks whether the coordinator has space for more records.

use std::sync::atomic::{AtomicBool, Ordering};

use tracing::{info, warn};

use crate::coordinator::{Member, Space};

/// A flag that says whether the coordinator has space for more records. Records are refused before
/// the space is used up, because nodes need the rest to renew their slots. Without slots they
/// cannot mint ids.
#[derive(Debug, Default)]
pub struct Room {
    /// `true` if no space is left for records. The thread that checks etcd's members writes this
    /// flag, and every write of records reads it. Relaxed accesses suffice, because no other data
    /// depends on the flag, and it is never fully up to date.
    is_scarce: AtomicBool,
}

impl Room {
    /// `true` if no space is left for records.
    pub fn is_scarce(&self) -> bool {
        self.is_scarce.load(Ordering::Relaxed)
    }

    /// Updates the flag from the state of etcd's members. Returns the used space and the quota of
    /// the fullest member. `configured` is the quota of members that report none. If no member
    /// responded, returns `None` and keeps the flag.
    pub fn see(&self, members: &[Member], configured: u64) -> Option<Space> {
        let spaces = members
            .iter()
            .filter_map(|member| member.state.as_ref().ok());
        let fullest = spaces
            .map(|state| Space::of(state, configured))
            .max_by_key(|space| {
                // A member with scarce space counts as fuller than one without. Otherwise compare
                // only the used space, because quotas differ only while an operator is raising
                // them.
                (space.is_scarce(), space.used)
            })?;
        let was_scarce = self.is_scarce.swap(fullest.is_scarce(), Ordering::Relaxed);
        match (was_scarce, fullest.is_scarce()) {
            (false, true) => warn!(
                "the database of etcd is {fullest}: appends, numbers and new conjunctions are refused, so that slots can be renewed; \
                 compact and defragment it, or raise its quota and etcd.quota"
            ),
            (true, false) => {
                info!(
                    "the database of etcd is {fullest}: appends, numbers and new conjunctions are accepted again"
                )
            }
            (true, true) | (false, false) => {}
        }
        Some(fullest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::MemberState;

    fn member(size: u64) -> Member {
        Member {
            endpoint: String::new(),
            state: Ok(MemberState {
                size,
                ..MemberState::default()
            }),
        }
    }

    #[test]
    fn the_fullest_member_counts_and_silence_changes_nothing() {
        let room = Room::default();
        let silent = Member {
            state: Err(String::new()),
            ..member(0)
        };
        for (members, scarce) in [
            (vec![member(74), member(10)], false),
            (vec![member(10), member(75), silent.clone()], true),
            (vec![silent.clone()], true),
            (Vec::new(), true),
            (vec![member(74), silent], false),
        ] {
            let seen = room.see(&members, 100);
            assert_eq!(room.is_scarce(), scarce, "{members:?}");
            assert_eq!(
                seen.is_some(),
                members.iter().any(|member| member.state.is_ok())
            );
        }
    }
}
