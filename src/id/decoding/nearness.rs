//! Which of several reasons against a text helps most.

use super::encoding_groups::Member;
use crate::id::rejection::Rejection;

/// How near a text came to being one of an encoding. Another length says no less than other letters: where a letter is missing, the
/// canonical encoding says so, and the decimal one that there are letters at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Nearness {
    of_reason: u8,
    is_canonical: bool,
}

impl Nearness {
    pub(super) fn of(why: Rejection, member: Member) -> Nearness {
        let of_reason = if why == Rejection::WrongLength {
            Rejection::BadAlphabet
        } else {
            why
        }
        .nearness();
        Nearness {
            of_reason,
            is_canonical: member.encoding == 0,
        }
    }
}
