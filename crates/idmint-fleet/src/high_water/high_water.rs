//! The high water of a node: the highest values that the coordinator has acknowledged or returned.
//! A lower value in a later response shows that the coordinator has lost data.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::fleet_keys::FleetKeys;
use crate::nonce::Nonce;
use crate::records::SharedRecords;
use crate::stored::{FleetMeta, HorizonRecord, StoredInstant, ValueError, value};
use crate::{FleetEra, Key, KeyValue, Revision, Snapshot, Term};
use idmint_core::time::UnixNanos;

/// The version of the text form once the fleet has adopted a single node.
const VERSION_WITH_ADOPTED: u32 = 2;

/// The highest values that a node's coordinator has acknowledged or returned. The text form is
/// versioned JSON.
///
/// The coordinator never lowers any of these values, so a lower value in a response shows a loss of
/// data. An outdated file is still valid, but detects fewer losses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HighWater(Option<Known>);

/// The highest values that the coordinator has acknowledged or returned for one fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    #[serde(
        rename = "v",
        skip_serializing,
        deserialize_with = "value::skip_version"
    )]
    version: (),
    fleet: Nonce,
    /// The fleet's first name. `None` if no fence has replaced that name yet, or if an earlier
    /// version of this program wrote these values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<Nonce>,
    /// The number of times that an operator has fenced the fleet with `fence-restore`.
    #[serde(default, skip_serializing_if = "value::is_zero")]
    fences: u32,
    #[serde(rename = "floor_ms")]
    floor: StoredInstant,
    /// The time up to which adopted single nodes may have minted ids. Copied from `least` in the
    /// fleet's agreement.
    #[serde(rename = "least_ms", default, skip_serializing_if = "Option::is_none")]
    least: Option<StoredInstant>,
    /// The ids of the adoptions that the fleet has completed, according to the fleet's settings.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    adoptions: BTreeSet<String>,
    /// The node's clock reading at the coordinator's last response.
    #[serde(rename = "at_ms")]
    at: StoredInstant,
    /// The highest revision that the coordinator has returned.
    revision: u64,
    /// The key that this process rewrites while it has no slot, and the revision of its last
    /// acknowledged write. A lower revision in a response shows a loss of data.
    #[serde(skip)]
    waiting: Option<(Key, Revision)>,
    /// The etcd cluster that responds to this process, and the highest election term in its
    /// responses.
    #[serde(skip)]
    term: Term,
    /// The last acknowledged horizon of each slot that this node has held.
    slots: BTreeMap<u32, Acknowledged>,
}

/// The last horizon that the coordinator acknowledged for one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Acknowledged {
    #[serde(rename = "h_ms")]
    horizon: StoredInstant,
    /// The store revision that wrote the horizon.
    revision: u64,
}

/// Evidence that a coordinator has lost data that it had acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Regression {
    #[error("etcd has no fleet any more, but this node was part of {known}")]
    NoFleet { known: Nonce },
    #[error(
        "etcd has fleet {found} from {floor} on, but this node was part of {known} and may have minted up to {highest}"
    )]
    OtherFleet {
        found: Nonce,
        floor: UnixNanos,
        known: Nonce,
        highest: UnixNanos,
    },
    #[error("etcd is at revision {found}, but this node has already read revision {known}")]
    Revision { found: u64, known: u64 },
    #[error("cluster {found:?} of etcd answers, but earlier answers came from {known:?}")]
    Cluster { found: Term, known: Term },
    #[error("etcd key {key} has lost what this node wrote there at revision {revision}")]
    Waiting { key: Key, revision: u64 },
    #[error(
        "the horizon of slot {slot} in etcd is missing, or older than {horizon} of revision {revision}, which this \
         node has read"
    )]
    Horizon {
        slot: u32,
        horizon: UnixNanos,
        revision: u64,
    },
}

impl HighWater {
    /// Parses a text that [`HighWater::to_text`] wrote. The election term and the key of a waiting
    /// node are not part of the text, because they concern only the process that wrote it.
    ///
    /// # Errors
    /// Returns [`ValueError`] if the text is empty, damaged or of a later version.
    pub(super) fn from_text(text: &str) -> Result<HighWater, ValueError> {
        value::read_up_to(VERSION_WITH_ADOPTED, text.as_bytes())
            .map(Some)
            .map(HighWater)
    }

    /// Returns the high water as one line of JSON, or `None` if the node was never part of a fleet.
    pub(super) fn to_text(&self) -> Option<String> {
        let known = self.0.as_ref()?;
        let bytes = match known.adoptions.is_empty() {
            true => value::write(known),
            false => value::write_as(VERSION_WITH_ADOPTED, known),
        };
        Some(String::from_utf8(bytes).expect("JSON is text"))
    }

    /// Returns the current name of the fleet that the node was last part of, or `None` if it was
    /// never part of one.
    pub(crate) fn fleet(&self) -> Option<Nonce> {
        self.0.as_ref().map(|known| known.fleet)
    }

    /// Returns an exclusive upper bound on the times of all ids that this node may have minted.
    /// Returns `None` if the node was never part of a fleet.
    pub fn highest(&self) -> Option<UnixNanos> {
        self.0.as_ref().map(Known::highest)
    }

    /// Returns the slots that the node has held, each with its last acknowledged horizon.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (u32, UnixNanos)> {
        let slots = self.0.iter().flat_map(|known| &known.slots);
        slots.map(|(slot, acknowledged)| (*slot, acknowledged.horizon.0))
    }

    /// Returns the first name of the fleet that the node was last part of, or `None` if the node
    /// was never part of one. A fence changes the current name, but not the first one.
    pub(crate) fn origin(&self) -> Option<Nonce> {
        self.0
            .as_ref()
            .map(|known| known.origin.unwrap_or(known.fleet))
    }

    /// Returns the number of times that an operator has fenced the fleet that the node was last
    /// part of.
    pub(crate) fn fences(&self) -> u32 {
        self.0.as_ref().map_or(0, |known| known.fences)
    }

    /// Returns the floor of the fleet that the node was last part of, or `None` if the node was
    /// never part of one.
    pub(crate) fn floor(&self) -> Option<UnixNanos> {
        self.0.as_ref().map(|known| known.floor.0)
    }

    /// Returns the node's clock reading at the coordinator's last response.
    pub(crate) fn at(&self) -> Option<UnixNanos> {
        self.0.as_ref().map(|known| known.at.0)
    }

    /// Records two values from the fleet's agreement: the ids of its adoptions, and `least`, the
    /// time up to which adopted single nodes may have minted ids. If the last fence found that
    /// records are missing ([`SharedRecords::Missing`]), later times and other ids that are already
    /// known stay, so that the next fence also finds that the store has lost an adoption.
    pub(crate) fn adopted(
        &mut self,
        least: Option<StoredInstant>,
        adoptions: &BTreeSet<String>,
        records: SharedRecords,
    ) {
        if let Some(known) = &mut self.0 {
            (known.least, known.adoptions) = match records {
                SharedRecords::Missing => (known.least.max(least), &known.adoptions | adoptions),
                SharedRecords::Complete | SharedRecords::Adopting => (least, adoptions.clone()),
            };
        }
    }

    /// Returns the ids of the adoptions that the fleet had completed.
    pub(crate) fn adoptions(&self) -> impl Iterator<Item = &String> {
        self.0.iter().flat_map(|known| &known.adoptions)
    }

    /// Returns the time up to which nodes without a fleet had minted ids before the fleet took over
    /// (adopted) their folders, as this node last recorded it from `least` in the fleet's settings.
    /// Each adoption raises `least`, so a lower value in the store shows that an adoption is lost.
    pub(crate) fn least(&self) -> Option<StoredInstant> {
        self.0.as_ref().and_then(|known| known.least)
    }

    /// Records the fleet's name, and its era, which lasts from one fence to the next. This node has
    /// read both at `revision`, and has found no loss of data.
    pub(crate) fn meet(&mut self, fleet: Nonce, era: FleetEra, revision: Revision, now: UnixNanos) {
        let FleetEra { fences, floor, .. } = era;
        let origin = Some(Nonce::new(era.origin)).filter(|origin| *origin != fleet);
        match &mut self.0 {
            Some(known) if known.fleet == fleet => {
                known.floor = known.floor.max(StoredInstant(floor));
                (known.origin, known.fences) = (origin, fences);
                known.told(revision, now);
            }
            // The fleet is new to this node, or was fenced. Forget acknowledged horizons below the
            // floor, because no slot is used there any more. Keep the others with revision 0,
            // because their rows may have any revision now.
            known => {
                let (floor, at) = (StoredInstant(floor), StoredInstant::ceil(now));
                let least = known.as_ref().and_then(|known| known.least);
                let adoptions = known.as_ref().map(|known| known.adoptions.clone());
                let slots = known
                    .as_ref()
                    .map(|known| known.slots.clone())
                    .unwrap_or_default();
                let far = slots
                    .into_iter()
                    .filter(|(_, acknowledged)| acknowledged.horizon >= floor);
                let slots = far
                    .map(|(slot, far)| (slot, Acknowledged { revision: 0, ..far }))
                    .collect();
                *known = Some(Known {
                    version: (),
                    fleet,
                    origin,
                    fences,
                    floor,
                    least,
                    adoptions: adoptions.unwrap_or_default(),
                    at,
                    revision: revision.0,
                    waiting: None,
                    term: Term::default(),
                    slots,
                });
            }
        }
    }

    /// Records the store's revision from a response that did not concern slots, such as a read of
    /// records.
    pub(crate) fn see(&mut self, revision: Revision) {
        if let Some(known) = &mut self.0 {
            known.revision = known.revision.max(revision.0);
        }
    }

    /// Records the cluster and the election term of a response.
    pub(crate) fn see_term(&mut self, term: Term) {
        if let Some(known) = &mut self.0 {
            known.term = known.term.max(term);
        }
    }

    /// Records the waiting key, which this node rewrites while it has no slot, and the key's last
    /// revision. `None` means that the node no longer needs the key.
    pub(crate) fn wait_by(&mut self, written: Option<(Key, Revision)>) {
        if let Some(known) = &mut self.0 {
            known.revision = written
                .iter()
                .map(|(_, at)| at.0)
                .fold(known.revision, u64::max);
            known.waiting = written;
        }
    }

    /// Returns the key that this node rewrites while it has no slot, and the key's last revision.
    /// Returns `None` if the node has a slot or has not written the key yet.
    pub(crate) fn waiting(&self) -> Option<&(Key, Revision)> {
        self.0.as_ref().and_then(|known| known.waiting.as_ref())
    }

    /// Checks that a response came from the same cluster as earlier responses, and that the
    /// election term has not decreased.
    ///
    /// # Errors
    /// Returns [`Regression`] if the response came from another cluster or an earlier term.
    pub(crate) fn check_term(&self, found: Term) -> Result<(), Regression> {
        match &self.0 {
            Some(Known { term: known, .. }) if !found.follows(*known) => Err(Regression::Cluster {
                found,
                known: *known,
            }),
            _ => Ok(()),
        }
    }

    /// Returns the highest revision that the coordinator has returned.
    pub(crate) fn revision(&self) -> Revision {
        Revision(self.0.as_ref().map_or(0, |known| known.revision))
    }

    /// Records that the coordinator has stored `horizon` for `slot` at the store revision
    /// `revision`. The request was sent at `now`.
    pub(crate) fn acknowledge(
        &mut self,
        slot: u32,
        horizon: UnixNanos,
        revision: Revision,
        now: UnixNanos,
    ) {
        let Some(known) = &mut self.0 else { return };
        known.told(revision, now);
        known.slots.insert(
            slot,
            Acknowledged {
                horizon: StoredInstant(horizon),
                revision: revision.0,
            },
        );
    }

    /// Checks that the revision of a write is higher than every revision that was seen before.
    ///
    /// # Errors
    /// Returns [`Regression`] if the revision is at or below one that was seen before.
    pub(crate) fn check_written(&self, revision: Revision) -> Result<(), Regression> {
        match &self.0 {
            Some(known) if revision.0 <= known.revision => Err(Regression::Revision {
                found: revision.0,
                known: known.revision,
            }),
            _ => Ok(()),
        }
    }

    /// Checks that the coordinator has not lost any write that it acknowledged. `snapshot` has the
    /// key ranges [`FleetKeys::all_slots`].
    ///
    /// # Errors
    /// Returns [`Regression`] if data was lost.
    pub(crate) fn check_all(
        &self,
        keys: &FleetKeys,
        snapshot: &Snapshot,
    ) -> Result<(), Regression> {
        self.check(keys, snapshot, |_| true)
    }

    /// Checks that the coordinator has not lost any acknowledged write of one slot. `snapshot` has
    /// the key ranges [`FleetKeys::of_slot`].
    ///
    /// # Errors
    /// Returns [`Regression`] if data was lost.
    pub(crate) fn check_slot(
        &self,
        keys: &FleetKeys,
        slot: u32,
        snapshot: &Snapshot,
    ) -> Result<(), Regression> {
        self.check(keys, snapshot, |other| other == slot)
    }

    fn check(
        &self,
        keys: &FleetKeys,
        found: &Snapshot,
        was_read: impl Fn(u32) -> bool,
    ) -> Result<(), Regression> {
        let Some(known) = &self.0 else { return Ok(()) };
        let [meta, horizons, ..] = found.ranges.as_slice() else {
            panic!("meta, horizons and holders were asked for")
        };
        let meta = meta
            .first()
            .ok_or(Regression::NoFleet { known: known.fleet })?;
        // A damaged value does not prove that the store went back to an older state, which is what
        // this function detects. Callers that need the value report the damage.
        let Ok(meta) = FleetMeta::from_bytes(&meta.value) else {
            return Ok(());
        };
        if meta.fleet != known.fleet {
            let (highest, floor) = (known.highest(), meta.floor);
            let lost = Regression::OtherFleet {
                found: meta.fleet,
                floor,
                known: known.fleet,
                highest,
            };
            // A higher floor shows that an operator has recovered the fleet, but only if a later
            // fence has set it. An agreement without fences was created by a node that did not know
            // the earlier fleet. An agreement with fewer fences is an older state. For example, a
            // later fence may have lowered a floor that a clock far ahead had set.
            let is_later_fence =
                meta.is_fenced() && meta.fences >= known.fences && floor > known.floor.0;
            let follows = meta.former.contains(&known.fleet) || is_later_fence;
            let mut slots = known.slots.iter().filter(|(slot, _)| was_read(**slot));
            let is_above = |(slot, acknowledged): (&u32, &Acknowledged)| {
                acknowledged.horizon.0 < floor
                    || acknowledged.is_reached(horizons, &keys.horizon(*slot))
            };
            return if follows && slots.all(is_above) {
                Ok(())
            } else {
                Err(lost)
            };
        }
        if found.revision.0 < known.revision {
            return Err(Regression::Revision {
                found: found.revision.0,
                known: known.revision,
            });
        }
        self.check_term(found.term)?;
        if let (Some((key, revision)), Some(waiting)) = (&known.waiting, found.ranges.get(3)) {
            let there = waiting.iter().find(|entry| entry.key == *key);
            if there.is_none_or(|entry| entry.modified < *revision) {
                return Err(Regression::Waiting {
                    key: key.clone(),
                    revision: revision.0,
                });
            }
        }
        let lost = known.slots.iter().find(|(slot, acknowledged)| {
            was_read(**slot) && !acknowledged.is_kept(horizons, &keys.horizon(**slot))
        });
        match lost {
            Some((slot, Acknowledged { horizon, revision })) => Err(Regression::Horizon {
                slot: *slot,
                horizon: horizon.0,
                revision: *revision,
            }),
            None => Ok(()),
        }
    }
}

impl Known {
    fn told(&mut self, revision: Revision, now: UnixNanos) {
        self.revision = self.revision.max(revision.0);
        self.at = self.at.max(StoredInstant::ceil(now));
    }

    fn highest(&self) -> UnixNanos {
        self.slots
            .values()
            .map(|acknowledged| acknowledged.horizon)
            .fold(self.floor, StoredInstant::max)
            .0
    }
}

impl Acknowledged {
    /// `true` if the slot's stored horizon, written by any process, is at least as high as the one
    /// that the coordinator acknowledged to this node.
    fn is_reached(&self, horizons: &[KeyValue], key: &str) -> bool {
        let entry = horizons.iter().find(|entry| entry.key == key);
        entry.is_some_and(|entry| {
            HorizonRecord::from_bytes(&entry.value)
                .is_ok_and(|record| record.horizon >= self.horizon.0)
        })
    }

    /// `true` if the store still has the acknowledged horizon of the slot, or a later one. An
    /// unreadable value counts as kept, because no node uses such a slot.
    fn is_kept(&self, horizons: &[KeyValue], key: &str) -> bool {
        let entry = horizons.iter().find(|entry| entry.key == key);
        entry.is_some_and(|entry| {
            let is_as_high = |record: HorizonRecord| record.horizon >= self.horizon.0;
            entry.modified.0 >= self.revision
                && HorizonRecord::from_bytes(&entry.value).map_or(true, is_as_high)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use idmint_storage::SlotShare;

    const FLEET: Nonce = Nonce::new(1);

    fn at(seconds: u64) -> UnixNanos {
        UnixNanos::from_seconds(seconds)
    }

    fn keys() -> FleetKeys {
        FleetKeys::below("/idmint/v1/test/")
    }

    /// Returns a snapshot at `revision` of a fleet with this floor. The horizon of slot 7 is
    /// `horizon`, or the slot was never used if it is `None`. Both times are in seconds.
    fn found(revision: u64, fleet: Nonce, floor: u64, horizon: Option<u64>) -> Snapshot {
        found_meta(revision, FleetMeta::new(fleet, share(), at(floor)), horizon)
    }

    /// Returns a snapshot like [`found`], but of a fleet that was fenced. The fence did not know
    /// the fleet's former name.
    fn fenced(revision: u64, fleet: Nonce, floor: u64, horizon: Option<u64>) -> Snapshot {
        let mut meta = FleetMeta::new(fleet, share(), at(0));
        meta.fence(fleet, at(floor), &[]);
        found_meta(revision, meta, horizon)
    }

    fn share() -> SlotShare {
        SlotShare::all(NonZeroU32::new(8).expect("not zero"))
    }

    #[test]
    fn ids_of_adoptions_are_written_as_a_later_version_and_read_again() {
        let mut known = HighWater::default();
        known.meet(FLEET, FleetEra::first(FLEET, at(1)), Revision(1), at(1));
        for (v, ids) in [(1, vec![]), (2, vec!["a".to_owned(), "b".to_owned()])] {
            known.adopted(None, &ids.into_iter().collect(), SharedRecords::Complete);
            let text = known.to_text().expect("a fleet");
            assert!(text.starts_with(&format!("{{\"v\":{v},")), "{text}");
            assert_eq!(HighWater::from_text(&text).expect("readable"), known);
        }
    }

    fn found_meta(revision: u64, meta: FleetMeta, horizon: Option<u64>) -> Snapshot {
        let entry = |key, value| {
            let modified = Revision(revision);
            vec![KeyValue {
                key,
                value,
                created: modified,
                modified,
            }]
        };
        let meta = entry(keys().meta(), meta.to_bytes());
        let record = |horizon| HorizonRecord::new(at(horizon), Nonce::new(2), Nonce::new(3), at(0));
        let horizons = horizon.map(|horizon| entry(keys().horizon(7), record(horizon).to_bytes()));
        Snapshot {
            revision: Revision(revision),
            ranges: vec![meta, horizons.unwrap_or_default(), Vec::new()],
            term: Term::default(),
        }
    }

    /// Returns the high water of a node. The fleet's floor is 100 s, the store's revision is 9, and
    /// the horizon of slot 7 is 200 s.
    fn known() -> HighWater {
        let mut known = HighWater::default();
        known.meet(FLEET, FleetEra::first(FLEET, at(100)), Revision(8), at(120));
        known.acknowledge(7, at(200), Revision(9), at(140));
        known
    }

    #[test]
    fn what_goes_on_from_what_is_known_is_no_loss() {
        for fine in [
            found(9, FLEET, 100, Some(200)),
            found(10, FLEET, 100, Some(201)),
            // A fence has given the fleet another name, and a floor above all earlier ids. So the
            // missing horizon of slot 7 does not matter.
            fenced(3, Nonce::new(5), 201, None),
            // The floor is 101 s, below the node's horizon of 200 s in slot 7. But the store still
            // has that horizon.
            fenced(3, Nonce::new(5), 101, Some(200)),
        ] {
            assert_eq!(known().check_all(&keys(), &fine), Ok(()), "{fine:?}");
            assert_eq!(HighWater::default().check_all(&keys(), &fine), Ok(()));
        }
        assert_eq!(
            known().check_slot(&keys(), 3, &found(9, FLEET, 100, None)),
            Ok(()),
            "slot 7 was not read"
        );
        assert_eq!(known().check_written(Revision(10)), Ok(()));
    }

    #[test]
    fn each_loss_is_found() {
        let other = Nonce::new(5);
        let none = Snapshot {
            revision: Revision(1),
            ranges: vec![Vec::new(); 3],
            term: Term::default(),
        };
        let horizon = Regression::Horizon {
            slot: 7,
            horizon: at(200),
            revision: 9,
        };
        // The store has lost a write of slot 7's horizon. Other nodes have written since then, so
        // the store's revision alone does not show the loss.
        let mut rewritten = found(99, FLEET, 100, Some(200));
        rewritten.ranges[1][0].modified = Revision(8);
        for (loss, snapshot) in [
            (Regression::NoFleet { known: FLEET }, none),
            (
                Regression::OtherFleet {
                    found: other,
                    floor: at(200),
                    known: FLEET,
                    highest: at(200),
                },
                fenced(99, other, 200, Some(199)),
            ),
            // A node that did not know the old fleet founded a new one in the wiped store. The new
            // floor of 300 s is above all earlier ids, but the old records are lost.
            (
                Regression::OtherFleet {
                    found: other,
                    floor: at(300),
                    known: FLEET,
                    highest: at(200),
                },
                found(99, other, 300, Some(300)),
            ),
            (
                Regression::Revision { found: 8, known: 9 },
                found(8, FLEET, 100, Some(200)),
            ),
            (horizon.clone(), found(99, FLEET, 100, Some(199))),
            (horizon.clone(), found(99, FLEET, 100, None)),
            (horizon, rewritten),
        ] {
            assert_eq!(known().check_all(&keys(), &snapshot), Err(loss.clone()));
            assert_eq!(known().check_slot(&keys(), 7, &snapshot), Err(loss));
        }
        assert_eq!(
            known().check_written(Revision(9)),
            Err(Regression::Revision { found: 9, known: 9 })
        );
    }

    #[test]
    fn the_own_key_of_a_node_without_a_slot_and_the_term_show_a_loss_until_a_fence() {
        let (key, of) = ("waiting/node".to_owned(), |cluster, term| Term {
            cluster,
            term,
        });
        let mut known = known();
        known.wait_by(Some((key.clone(), Revision(12))));
        known.see_term(of(7, 3));
        let found = |revision, written: Option<u64>, term| {
            let mut found = found(revision, FLEET, 100, Some(200));
            let entry = |modified| KeyValue {
                key: key.clone(),
                value: Vec::new(),
                created: Revision(1),
                modified: Revision(modified),
            };
            found.ranges.push(written.map(entry).into_iter().collect());
            Snapshot { term, ..found }
        };
        for (written, term, is_fine) in [
            (Some(12), of(7, 3), true),
            (Some(40), of(7, 4), true),
            (Some(11), of(7, 3), false),
            (None, of(7, 3), false),
            (Some(12), of(7, 2), false),
            (Some(12), of(8, 3), false),
        ] {
            let checked = known.check_all(&keys(), &found(99, written, term));
            assert_eq!(checked.is_ok(), is_fine, "{checked:?}");
        }
        known.meet(
            Nonce::new(5),
            FleetEra::first(FLEET, at(300)),
            Revision(2),
            at(150),
        );
        assert_eq!(known.waiting(), None);
        assert_eq!(known.check_term(of(8, 1)), Ok(()), "fenced");
    }

    #[test]
    fn a_new_fleet_begins_above_the_former_one_and_what_it_had_counts_no_more() {
        let mut known = known();
        known.meet(
            Nonce::new(5),
            FleetEra::first(Nonce::new(5), at(300)),
            Revision(2),
            at(150),
        );
        assert_eq!(known.highest(), Some(at(300)));
        assert_eq!(
            known.check_all(&keys(), &found(2, Nonce::new(5), 300, None)),
            Ok(())
        );
        let back = known.check_all(&keys(), &found(99, FLEET, 100, Some(200)));
        assert!(
            matches!(back, Err(Regression::OtherFleet { .. })),
            "restored to before the fence: {back:?}"
        );
    }

    #[test]
    fn a_slot_that_a_fence_has_left_far_ahead_stays_known() {
        let mut known = known();
        let other = Nonce::new(5);
        known.meet(other, FleetEra::first(other, at(150)), Revision(2), at(150));
        assert_eq!(known.highest(), Some(at(200)));
        assert_eq!(
            known.check_all(&keys(), &fenced(2, other, 150, Some(200))),
            Ok(())
        );
        let lost = known.check_all(&keys(), &fenced(3, other, 150, Some(160)));
        assert!(
            matches!(lost, Err(Regression::Horizon { slot: 7, .. })),
            "{lost:?}"
        );
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let text = known().to_text().expect("something is known");
        let expected = "{\"v\":1,\"fleet\":\"00000000000000000000000000000001\",\"floor_ms\":100000,\"at_ms\":140000,\
                        \"revision\":9,\"slots\":{\"7\":{\"h_ms\":200000,\"revision\":9}}}";
        assert_eq!(text, expected);
        let mut fenced = known();
        let era = FleetEra {
            fences: 2,
            ..FleetEra::first(FLEET, at(300))
        };
        fenced.meet(Nonce::new(5), era, Revision(2), at(150));
        assert_eq!((fenced.origin(), fenced.fences()), (Some(FLEET), 2));
        assert_eq!((known().origin(), known().fences()), (Some(FLEET), 0));
        let fenced_text = fenced.to_text().expect("something is known");
        assert_eq!(
            HighWater::from_text(&fenced_text).expect("as it was written"),
            fenced
        );
        assert_eq!(
            HighWater::from_text(&text).expect("as it was written"),
            known()
        );
        assert_eq!(HighWater::default().to_text(), None);
        for wrong in [
            "",
            "{}",
            &text.replace("\"v\":1", "\"v\":3"),
            &text.replace("200000", "-1"),
        ] {
            assert!(HighWater::from_text(wrong).is_err(), "{wrong}");
        }
    }
}
