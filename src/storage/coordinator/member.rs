//! How the members of a coordinator are.

use std::fmt;

/// One member, and what it says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Where it answers.
    pub endpoint: String,
    /// What it says, or why it says nothing.
    pub state: Result<MemberState, String>,
}

/// What a member says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemberState {
    /// Its version.
    pub version: String,
    /// Whether it leads.
    pub is_leader: bool,
    /// The bytes of its database, as its quota counts them: what was deleted counts until it is defragmented.
    pub size: u64,
    /// The bytes of these that are in use, where it tells.
    pub size_in_use: Option<u64>,
    /// The bytes at which it takes no more, where it tells.
    pub quota: Option<u64>,
    /// What it says is wrong.
    pub problems: Vec<String>,
}

/// How much of what a member can take is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Space {
    /// The bytes of its database.
    pub used: u64,
    /// The bytes at which it takes no more.
    pub quota: u64,
}

impl Space {
    /// That of a member; `configured` is its quota where it does not tell.
    pub fn of(state: &MemberState, configured: u64) -> Space {
        Space {
            used: state.size,
            quota: state.quota.unwrap_or(configured),
        }
    }

    /// Whether the rest, a quarter, is left to what keeps a fleet minting: horizons, slots, and what it has agreed on.
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
