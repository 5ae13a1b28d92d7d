//! The members of a coordinator and their state.

use std::fmt;

/// One member and the state that it reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The network address of the member.
    pub endpoint: String,
    /// The state that the member reports, or the reason why the member does not respond.
    pub state: Result<MemberState, String>,
}

/// The state that a member reports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemberState {
    /// The id of the member's cluster, or 0 if the member reports none.
    pub cluster: u64,
    /// The version of the software that the member runs.
    pub version: String,
    /// `true` if the member is the leader.
    pub is_leader: bool,
    /// The size of the database in bytes. The quota applies to this size. Deleted data counts until
    /// the database is defragmented.
    pub size: u64,
    /// The bytes of the database that are in use, if reported.
    pub size_in_use: Option<u64>,
    /// The database size in bytes at which the server stops accepting writes, if reported.
    pub quota: Option<u64>,
    /// The problems that the member reports.
    pub problems: Vec<String>,
}

/// The used space of a member, and its quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Space {
    /// The size of the database in bytes.
    pub used: u64,
    /// The size in bytes at which the member stops accepting writes.
    pub quota: u64,
}

impl Space {
    /// Returns the used space and the quota of a member. If the member reports no quota,
    /// `configured` is used.
    pub fn of(state: &MemberState, configured: u64) -> Space {
        Space {
            used: state.size,
            quota: state.quota.unwrap_or(configured),
        }
    }

    /// `true` if at most a quarter of the quota is left. New records are then refused, which leaves
    /// enough space for the writes that minting needs.
    pub fn is_scarce(&self) -> bool {
        self.used >= self.quota - self.quota / 4
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MIB: u64 = 1024 * 1024;
        let percent = u128::from(self.used) * 100 / u128::from(self.quota.max(1));
        write!(
            f,
            "{} of {} MiB ({percent} %)",
            self.used.div_ceil(MIB),
            self.quota / MIB
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_scarce_from_three_quarters_of_the_quota_on() {
        let state = |size, quota| MemberState {
            size,
            quota,
            ..MemberState::default()
        };
        assert!(!Space::of(&state(74, None), 100).is_scarce());
        assert!(Space::of(&state(75, None), 100).is_scarce());
        assert!(
            !Space::of(&state(75, Some(101)), 10).is_scarce(),
            "what a member tells counts"
        );
        assert_eq!(
            Space {
                used: 3 << 29,
                quota: 2 << 30
            }
            .to_string(),
            "1536 of 2048 MiB (75 %)"
        );
    }
}
