//! Whether the coordinator has room for records, as it was a moment ago.

use std::sync::atomic::{AtomicBool, Ordering};

use tracing::{info, warn};

use crate::storage::coordinator::{Member, Space};

/// Whether records are written. What keeps a fleet minting needs the rest of the room, so they stop before it is used up.
#[derive(Debug, Default)]
pub struct Room {
    /// Written by the thread that asks the members, read by every write. Relaxed: it stands for itself, and is late anyhow.
    is_scarce: AtomicBool,
}

impl Room {
    /// Whether there is none for records.
    pub fn is_scarce(&self) -> bool {
        self.is_scarce.load(Ordering::Relaxed)
    }

    /// Takes in what the members say of themselves, and returns how the fullest of them is; `None` where none says anything,
    /// and things are taken to be as they were.
    pub fn see(&self, members: &[Member], configured: u64) -> Option<Space> {
        let spaces = members
            .iter()
            .filter_map(|member| member.state.as_ref().ok());
        let fullest = spaces
            .map(|state| Space::of(state, configured))
            .max_by_key(|space| {
                // Of equal quotas the larger one; quotas differ only while they are being raised.
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
                    "the database of etcd is {fullest}: appends, numbers and new conjunctions are taken again"
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
    use crate::storage::coordinator::MemberState;

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
