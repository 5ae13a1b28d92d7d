//! What a node was told by its coordinator, and whether what it finds there now can follow from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cluster::fleet_keys::FleetKeys;
use crate::cluster::nonce::Nonce;
use crate::cluster::stored::{FleetMeta, HorizonRecord, StoredInstant, ValueError, value};
use crate::storage::{KeyValue, Revision, Snapshot};
use crate::time::UnixNanos;

/// The highest that a node has seen of its coordinator. As text JSON with a version.
///
/// Everything in it was true of the coordinator once, and nothing of it is ever lowered there; so what lags behind, such as a
/// file that was written a while ago, is as true, and only finds less.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HighWater(Option<Known>);

/// What is known of a fleet.
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
    #[serde(rename = "floor_ms")]
    floor: StoredInstant,
    /// What the clock of the node showed when it was told something last.
    #[serde(rename = "at_ms")]
    at: StoredInstant,
    /// The highest revision that was seen.
    revision: u64,
    /// What was acknowledged to this node last of each slot that it had.
    slots: BTreeMap<u32, Acknowledged>,
}

/// What was acknowledged of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Acknowledged {
    #[serde(rename = "h_ms")]
    horizon: StoredInstant,
    /// The revision that wrote it.
    revision: u64,
}

/// What a coordinator has lost.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::cluster) enum Regression {
    #[error("there is no fleet any more, this node was part of {known}")]
    NoFleet { known: Nonce },
    #[error(
        "it has fleet {found} from {floor} on; this node was part of {known} and may have minted up to {highest}"
    )]
    OtherFleet {
        found: Nonce,
        floor: UnixNanos,
        known: Nonce,
        highest: UnixNanos,
    },
    #[error("its revision is {found}, it has told this node of {known}")]
    Revision { found: u64, known: u64 },
    #[error(
        "slot {slot} has no horizon of {horizon} or later, written by revision {revision} or later, as this node was told"
    )]
    Horizon {
        slot: u32,
        horizon: UnixNanos,
        revision: u64,
    },
}

impl HighWater {
    /// Reads what [`HighWater::to_text`] wrote.
    ///
    /// # Errors
    /// [`ValueError`].
    pub(super) fn from_text(text: &str) -> Result<HighWater, ValueError> {
        value::read(text.as_bytes()).map(Some).map(HighWater)
    }

    /// One line of JSON; `None` where nothing is known.
    pub(super) fn to_text(&self) -> Option<String> {
        let known = self.0.as_ref()?;
        Some(String::from_utf8(value::write(known)).expect("JSON is text"))
    }

    /// The fleet that the node was part of last.
    pub(in crate::cluster) fn fleet(&self) -> Option<Nonce> {
        self.0.as_ref().map(|known| known.fleet)
    }

    /// Nothing of the fleet was minted at or above this instant by this node; `None` if it was part of none.
    pub fn highest(&self) -> Option<UnixNanos> {
        self.0.as_ref().map(Known::highest)
    }

    /// Up to where each slot that the node had may have been used by it.
    pub(in crate::cluster) fn slots(&self) -> impl Iterator<Item = (u32, UnixNanos)> {
        let slots = self.0.iter().flat_map(|known| &known.slots);
        slots.map(|(slot, acknowledged)| (*slot, acknowledged.horizon.0))
    }

    /// Where the fleet began that the node was part of last.
    pub(in crate::cluster) fn floor(&self) -> Option<UnixNanos> {
        self.0.as_ref().map(|known| known.floor.0)
    }

    /// What the clock of the node showed when it was told something last.
    pub(in crate::cluster) fn at(&self) -> Option<UnixNanos> {
        self.0.as_ref().map(|known| known.at.0)
    }

    /// This node has read at `revision` that this is the fleet, and has found nothing that was lost.
    pub(in crate::cluster) fn meet(
        &mut self,
        fleet: Nonce,
        floor: UnixNanos,
        revision: Revision,
        now: UnixNanos,
    ) {
        match &mut self.0 {
            Some(known) if known.fleet == fleet => {
                known.floor = known.floor.max(StoredInstant(floor));
                known.told(revision, now);
            }
            // What was acknowledged in a former fleet is below the floor of this one, or kept there, by whatever revision.
            known => {
                let (floor, at) = (StoredInstant(floor), StoredInstant::ceil(now));
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
                    floor,
                    at,
                    revision: revision.0,
                    slots,
                });
            }
        }
    }

    /// The coordinator has answered this node at this revision, asked about something else than slots.
    pub(in crate::cluster) fn see(&mut self, revision: Revision) {
        if let Some(known) = &mut self.0 {
            known.revision = known.revision.max(revision.0);
        }
    }

    /// The highest revision that was seen.
    pub(in crate::cluster) fn revision(&self) -> Revision {
        Revision(self.0.as_ref().map_or(0, |known| known.revision))
    }

    /// The coordinator has acknowledged by `revision`, asked at `now`, that this node may use a slot below `horizon`.
    pub(in crate::cluster) fn acknowledge(
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

    /// Whether something was written by a revision that there was before.
    ///
    /// # Errors
    /// [`Regression`].
    pub(in crate::cluster) fn check_written(&self, revision: Revision) -> Result<(), Regression> {
        match &self.0 {
            Some(known) if revision.0 <= known.revision => Err(Regression::Revision {
                found: revision.0,
                known: known.revision,
            }),
            _ => Ok(()),
        }
    }

    /// Whether something was lost. `snapshot` answers [`FleetKeys::all_slots`].
    ///
    /// # Errors
    /// [`Regression`].
    pub(in crate::cluster) fn check_all(
        &self,
        keys: &FleetKeys,
        snapshot: &Snapshot,
    ) -> Result<(), Regression> {
        self.check(keys, snapshot, |_| true)
    }

    /// The same of one slot. `snapshot` answers [`FleetKeys::of_slot`].
    ///
    /// # Errors
    /// [`Regression`].
    pub(in crate::cluster) fn check_slot(
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
        let [meta, horizons, _] = found.ranges.as_slice() else {
            panic!("meta, horizons and holders were asked for")
        };
        let meta = meta
            .first()
            .ok_or(Regression::NoFleet { known: known.fleet })?;
        // What cannot be read is damage, and said by whoever needs more of it.
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
            // What is not fenced was founded by somebody who knew of nothing that was there before.
            let follows =
                meta.former.contains(&known.fleet) || meta.is_fenced() && floor > known.floor.0;
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
    /// Whether the slot has a horizon there that is as high, whoever wrote it.
    fn is_reached(&self, horizons: &[KeyValue], key: &str) -> bool {
        let entry = horizons.iter().find(|entry| entry.key == key);
        entry.is_some_and(|entry| {
            HorizonRecord::from_bytes(&entry.value)
                .is_ok_and(|record| record.horizon >= self.horizon.0)
        })
    }

    /// Whether it is there, or what was written later. What cannot be read is left alone by everybody, so it is no danger.
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
    use crate::cluster::slot_share::SlotShare;

    const FLEET: Nonce = Nonce::new(1);

    fn at(seconds: u64) -> UnixNanos {
        UnixNanos::from_seconds(seconds)
    }

    fn keys() -> FleetKeys {
        FleetKeys::below("/idmint/v1/test/")
    }

    /// A coordinator at this revision, with a fleet that begins at an instant, and slot 7 with this horizon.
    fn found(revision: u64, fleet: Nonce, floor: u64, horizon: Option<u64>) -> Snapshot {
        found_meta(revision, FleetMeta::new(fleet, share(), at(floor)), horizon)
    }

    /// The same where it was fenced, by an operator who was told of no fleet that it was.
    fn fenced(revision: u64, fleet: Nonce, floor: u64, horizon: Option<u64>) -> Snapshot {
        let mut meta = FleetMeta::new(fleet, share(), at(0));
        meta.fence(fleet, at(floor), &[]);
        found_meta(revision, meta, horizon)
    }

    fn share() -> SlotShare {
        SlotShare::all(NonZeroU32::new(8).expect("not zero"))
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
        }
    }

    /// Part of a fleet that began at 100 s, with revision 9, and up to 200 s in slot 7.
    fn known() -> HighWater {
        let mut known = HighWater::default();
        known.meet(FLEET, at(100), Revision(8), at(120));
        known.acknowledge(7, at(200), Revision(9), at(140));
        known
    }

    #[test]
    fn what_goes_on_from_what_is_known_is_no_loss() {
        for fine in [
            found(9, FLEET, 100, Some(200)),
            found(10, FLEET, 100, Some(201)),
            // Fenced: of another fleet, which begins above all that was minted, whatever else it has.
            fenced(3, Nonce::new(5), 201, None),
            // What was minted above that is kept by its slot.
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
        };
        let horizon = Regression::Horizon {
            slot: 7,
            horizon: at(200),
            revision: 9,
        };
        // Others have written since, so that the revision of the store says nothing.
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
            // Wiped, and founded by somebody who knew of nothing: above all that was minted, but with none of the records.
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
    fn a_new_fleet_begins_above_the_former_one_and_what_it_had_counts_no_more() {
        let mut known = known();
        known.meet(Nonce::new(5), at(300), Revision(2), at(150));
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
        known.meet(other, at(150), Revision(2), at(150));
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
        assert_eq!(
            HighWater::from_text(&text).expect("as it was written"),
            known()
        );
        assert_eq!(HighWater::default().to_text(), None);
        for wrong in [
            "",
            "{}",
            &text.replace("\"v\":1", "\"v\":2"),
            &text.replace("200000", "-1"),
        ] {
            assert!(HighWater::from_text(wrong).is_err(), "{wrong}");
        }
    }
}
