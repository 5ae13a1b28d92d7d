//! Detects problems of a fleet's slots and clocks, and advises the operator.

use std::collections::BTreeSet;
use std::time::Duration;

use super::fleet_slots::{AgreedFleet, Holder, Slot, SlotState};
use super::renewals::ClockBounds;
use crate::coordinator::Member;

/// A clock error above this limit is reported as a problem. A node stops minting only at a far
/// larger error.
const SKEW_MAX: Duration = Duration::from_millis(500);

/// The renewals of a node are reported as late if all observed ones are delayed by more than this.
/// Either the node's clock is behind, or its connection to etcd is slow.
const LATE_MAX: Duration = Duration::from_secs(2);

/// A problem of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetProblem {
    /// A description of the problem.
    pub what: String,
    /// The remedy, as advice for the operator.
    pub advice: String,
}

impl FleetProblem {
    /// Creates a problem with its advice.
    pub fn new(what: impl Into<String>, advice: impl Into<String>) -> FleetProblem {
        FleetProblem {
            what: what.into(),
            advice: advice.into(),
        }
    }
}

/// Returns a problem if the endpoints belong to more than one etcd cluster. All slots and records
/// of a fleet must be in one cluster. The other clusters may belong to other regions.
pub fn problem_of_members(members: &[Member]) -> Option<FleetProblem> {
    let states = members
        .iter()
        .filter_map(|member| member.state.as_ref().ok());
    let clusters: BTreeSet<u64> = states.map(|state| state.cluster).collect();
    (clusters.len() > 1).then(|| {
        FleetProblem::new(
            format!(
                "etcd.endpoints names members of {} etcd clusters, but a fleet uses one",
                clusters.len()
            ),
            "leave only the members of one etcd in etcd.endpoints, and restart the nodes that had others",
        )
    })
}

/// Returns a problem if two regions with separate etcd clusters may mint the same ids. A slot and
/// `worker.slots` determine a node's worker numbers. So the regions must be different fleets with
/// the same `worker.slots` and no slot in common. `peer` names the other region.
pub fn problem_of_shares(
    here: &AgreedFleet,
    peer: &str,
    there: &AgreedFleet,
) -> Option<FleetProblem> {
    if here.fleet == there.fleet {
        let what = format!(
            "{peer} belongs to the same fleet as this etcd namespace: {}",
            here.fleet
        );
        return Some(FleetProblem::new(
            what,
            "name the etcd of another region, and restore none from a copy of this one",
        ));
    }
    let (here, there) = (here.share, there.share);
    if here.slots() != there.slots() {
        let what = format!(
            "worker.slots differs between the regions: {} slots here, but {} at {peer}",
            here.slots(),
            there.slots()
        );
        let advice = "stop the nodes of one region at once: worker numbers follow from worker.slots, which must be the same in both";
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

/// Returns a problem if the slots together suggest that etcd was restored from a backup. The
/// content of etcd cannot prove a restore.
///
/// A node that detects a restore no longer renews its slot. The slot stays held for about another
/// minute, until its lease expires. After that no node holds a slot.
pub(super) fn problem_of_all(slots: &[&Slot]) -> Option<FleetProblem> {
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
            "no node has a slot, so no sequenced id is minted",
            "if nodes run, read the reason in /health/ready of each; if etcd was restored from a backup, run idmint \
             fleet fence-restore before you start another node; else start nodes",
        )),
        (renewing, silent) if silent > 1 || (silent, renewing) == (1, 0) => {
            Some(FleetProblem::new(
                format!(
                    "{silent} of the {} nodes that hold a slot do not renew it",
                    renewing + silent
                ),
                "if /health/ready of a running node says that etcd was restored from a backup, run idmint fleet \
             fence-restore before you start another node; else check that they run and reach etcd",
            ))
        }
        _ => None,
    }
}

/// Returns the problem of one slot, or `None` if there is none. `has_lost` is `true` if etcd has
/// certainly lost acknowledged data.
pub(super) fn problem_of(slot: &Slot, has_lost: bool) -> Option<FleetProblem> {
    let number = slot.slot;
    match &slot.state {
        SlotState::Unreadable => Some(FleetProblem::new(
            format!("the entry of slot {number} cannot be read, so the slot is not used"),
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
                "the node renews nothing until you run idmint fleet fence-restore; if it still does not renew then, \
                 check that the node runs"
            } else {
                "check that the node runs and reaches etcd; another node can take the slot when the lease has run out: \
                 after a minute, or later if etcd changed its leader"
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
            "compare both clocks (chronyc tracking), and correct the wrong one",
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
                "renewals of {node} at {addr} reach etcd {late:.1} s late, or its clock is behind"
            );
            Some(FleetProblem::new(
                what,
                "compare its clock with this machine's (chronyc tracking); check its connection to etcd",
            ))
        }
        ClockBounds { .. } => None,
    }
}

/// `true` if the node's clock may be behind by more than [`SKEW_MAX`]. The clock may also be right,
/// if the renewal took long to arrive. Only the next renewal can show which is true.
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
    use crate::coordinator::MemberState;
    use crate::nonce::Nonce;
    use crate::operation::samples::NOON;
    use idmint_storage::{SlotRange, SlotShare};

    fn share(slots: u32, range: &str) -> SlotShare {
        let slots = NonZeroU32::new(slots).expect("not zero");
        SlotShare::part(slots, SlotRange::parse(range).expect("a range")).expect("within")
    }

    #[test]
    fn endpoints_of_two_etcds_are_a_problem_and_silent_ones_are_not() {
        let of = |clusters: &[Option<u64>]| {
            let member = |cluster: &Option<u64>| Member {
                endpoint: String::new(),
                state: cluster.ok_or_else(String::new).map(|cluster| MemberState {
                    cluster,
                    ..MemberState::default()
                }),
            };
            problem_of_members(&clusters.iter().map(member).collect::<Vec<_>>())
        };
        assert_eq!(of(&[Some(7), None, Some(7)]), None);
        let problem = of(&[Some(7), None, Some(8)]).expect("two etcds");
        assert!(problem.what.contains("2 etcd clusters"), "{problem:?}");
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
        assert!(
            smaller.what.contains("16 slots here, but 32"),
            "{smaller:?}"
        );
        let same = problem_of_shares(
            &region(1, share(32, "0-15")),
            peer,
            &region(1, share(32, "16-31")),
        );
        assert!(same.is_some_and(|problem| problem.what.contains("same fleet")));
    }
}
