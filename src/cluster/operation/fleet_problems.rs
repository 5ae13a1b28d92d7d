//! What is wrong with a fleet, as far as its slots and clocks tell, and what to do about it.

use std::time::Duration;

use super::fleet_slots::{AgreedFleet, Holder, Slot, SlotState};
use super::renewals::ClockBounds;

/// A clock that is further off than this is said to be wrong, long before it stops its node.
const SKEW_MAX: Duration = Duration::from_millis(500);

/// Renewals that are later than this, one after the other, are said to be: by a clock that is behind, or on their way.
const LATE_MAX: Duration = Duration::from_secs(2);

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetProblem {
    /// What.
    pub what: String,
    /// What to do about it.
    pub advice: String,
}

impl FleetProblem {
    /// Something that is wrong, and what to do about it.
    pub fn new(what: impl Into<String>, advice: impl Into<String>) -> FleetProblem {
        FleetProblem {
            what: what.into(),
            advice: advice.into(),
        }
    }
}

/// Two regions that mint in one namespace from an etcd each, where a slot belongs to both.
pub fn problem_of_shares(
    here: &AgreedFleet,
    peer: &str,
    there: &AgreedFleet,
) -> Option<FleetProblem> {
    if here.fleet == there.fleet {
        let what = format!("{peer} has the same fleet, {}", here.fleet);
        return Some(FleetProblem::new(
            what,
            "name the etcd of another region, or restore none from a copy of this one",
        ));
    }
    let (here, there) = (here.share, there.share);
    if here.slots() != there.slots() {
        let what = format!(
            "this namespace has {} slots here and {} at {peer}",
            here.slots(),
            there.slots()
        );
        let advice = "stop the nodes of one region at once: worker numbers are dealt out by worker.slots, the same in both";
        return Some(FleetProblem::new(what, advice));
    }
    here.common_with(there).map(|common| {
        let what = format!("slots {common} belong to two regions: {here} here and {there} at {peer}");
        FleetProblem::new(
            what,
            "stop the nodes of one region at once: both mint the same ids; then give each a share of its own",
        )
    })
}

/// What all slots together say: that etcd was restored from a backup, as far as etcd can tell that itself. A node that finds that
/// out renews nothing more. In a restored etcd its slot stays for a minute, and then nobody has one.
pub(super) fn problem_of_all(slots: &[Slot]) -> Option<FleetProblem> {
    let (mut renewing, mut silent) = (0, 0);
    for slot in slots {
        match &slot.state {
            SlotState::Held(Holder { clock: Some(_), .. }) => renewing += 1,
            SlotState::Held(Holder { clock: None, .. }) => silent += 1,
            SlotState::Resting | SlotState::Free | SlotState::Unreadable => {}
        }
    }
    match (renewing, silent) {
        (0, 0) if slots.iter().any(|slot| slot.horizon.is_some()) => Some(FleetProblem::new(
            "no node has a slot, so no id is minted by number",
            "if nodes run, /health/ready of each says why it has none: where etcd was restored from a backup, idmint fleet \
             fence-restore, before another node is started; else start nodes",
        )),
        (renewing, silent) if silent > 1 || (silent, renewing) == (1, 0) => {
            Some(FleetProblem::new(
                format!(
                    "of {} nodes that hold a slot {silent} do not renew it",
                    renewing + silent
                ),
                "as after a restore of etcd from a backup, which /health/ready of each that runs says then: idmint fleet \
             fence-restore, before another node is started; else look whether they run and reach etcd",
            ))
        }
        _ => None,
    }
}

/// What is wrong with one slot of an etcd that has lost something, or has not as far as is known.
pub(super) fn problem_of(slot: &Slot, has_lost: bool) -> Option<FleetProblem> {
    let number = slot.slot;
    match &slot.state {
        SlotState::Unreadable => Some(FleetProblem::new(
            format!("what is stored about slot {number} cannot be read, so it is not used"),
            "a newer idmint may have written it; do not delete it: it is the only record of what was minted in the slot",
        )),
        SlotState::Held(Holder {
            node,
            addr,
            renewed_at,
            clock: None,
            ..
        }) => {
            let last = renewed_at.map_or(String::new(), |at| format!(", since {at} by its clock"));
            let advice = if has_lost {
                "it renews nothing before idmint fleet fence-restore was run; if it does not then, look whether it runs"
            } else {
                "look whether it runs and reaches etcd; another node can have the slot a minute after its last renewal"
            };
            let what = format!("{node} at {addr} holds slot {number} and does not renew it{last}");
            Some(FleetProblem::new(what, advice))
        }
        SlotState::Held(Holder {
            node,
            addr,
            clock: Some(clock),
            ..
        }) => problem_of_clock(node, addr, *clock),
        SlotState::Resting | SlotState::Free => None,
    }
}

fn problem_of_clock(node: &str, addr: &str, clock: ClockBounds) -> Option<FleetProblem> {
    let seconds = |nanos: i64| Duration::from_nanos(nanos.unsigned_abs()).as_secs_f64();
    let wrong = |by: i64, side: &str| {
        let what = format!(
            "the clock of {node} at {addr} is at least {:.1} s {side} this machine's",
            seconds(by)
        );
        FleetProblem::new(
            what,
            "look at both (chronyc tracking) and mend the wrong one",
        )
    };
    match clock {
        ClockBounds { least_nanos, .. } if least_nanos > nanos(SKEW_MAX) => {
            Some(wrong(least_nanos, "ahead of"))
        }
        ClockBounds {
            most_nanos: Some(most),
            ..
        } if most < -nanos(SKEW_MAX) => Some(wrong(most, "behind")),
        ClockBounds {
            least_nanos,
            most_nanos: Some(_),
        } if least_nanos < -nanos(LATE_MAX) => {
            let late = seconds(least_nanos);
            let what = format!(
                "what {node} at {addr} renews is {late:.1} s old when it is in etcd, or its clock is behind"
            );
            Some(FleetProblem::new(
                what,
                "compare its clock with this machine's (chronyc tracking); look at its way to etcd",
            ))
        }
        ClockBounds { .. } => None,
    }
}

/// Whether one more renewal is needed to tell a clock that is behind from a renewal that came late.
pub(super) fn may_be_behind(clock: ClockBounds) -> bool {
    clock.least_nanos < -nanos(SKEW_MAX)
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::cluster::nonce::Nonce;
    use crate::cluster::operation::samples::NOON;
    use crate::cluster::slot_share::{SlotRange, SlotShare};

    fn share(slots: u32, range: &str) -> SlotShare {
        let slots = NonZeroU32::new(slots).expect("not zero");
        SlotShare::part(slots, SlotRange::parse(range).expect("a range")).expect("within")
    }

    #[test]
    fn a_slot_that_belongs_to_two_regions_is_found() {
        let region = |fleet, share| AgreedFleet {
            fleet: Nonce::new(fleet),
            floor: NOON,
            share,
            formats: Vec::new(),
        };
        let (peer, west) = ("http://west:2379", region(2, share(32, "16-31")));
        assert_eq!(
            problem_of_shares(&region(1, share(32, "0-15")), peer, &west),
            None
        );
        let problem = problem_of_shares(&region(1, share(32, "0-16")), peer, &west)
            .expect("slot 16 is of both");
        assert!(
            problem.what.contains("slots 16-16 belong") && problem.what.contains(peer),
            "{problem:?}"
        );
        let smaller = problem_of_shares(&region(1, share(16, "0-15")), peer, &west)
            .expect("other worker numbers");
        assert!(smaller.what.contains("16 slots here and 32"), "{smaller:?}");
        let same = problem_of_shares(
            &region(1, share(32, "0-15")),
            peer,
            &region(1, share(32, "16-31")),
        );
        assert!(same.is_some_and(|problem| problem.what.contains("same fleet")));
    }
}
