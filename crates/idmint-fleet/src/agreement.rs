//! Compares this node's configuration with the fleet's agreement. The agreement is a stored record
//! that all nodes share. It contains the slots, the id formats, and the floor, the time below which
//! no node mints ids.

use std::collections::BTreeSet;

use super::fleet_keys::FleetKeys;
use super::nonce::Nonce;
use super::records::SharedRecords;
use super::stored::{Adopting, FleetMeta, StoredInstant};
use crate::{AgreedMeta, Compare, FleetEra, KeyValue, Range, Revision, Transaction, Write};
use idmint_core::time::UnixNanos;
use idmint_storage::{FormatsError, KeptFormat, StoreError};
use idmint_storage::{SlotRange, SlotShare};

/// The slots and formats in this node's configuration.
#[derive(Debug, Clone)]
pub(super) struct OwnLayout {
    /// The number of slots in the fleet, and the slots that this coordinator hands out.
    pub(super) share: SlotShare,
    /// The formats in this node's configuration. Formats that the node does not mint are not added
    /// to the fleet's agreement.
    pub(super) formats: Vec<KeptFormat>,
}

/// The parts of the fleet's agreement that this node relies on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Agreed {
    /// The store revision that last wrote the agreement. Every write of a node's slot compares this
    /// revision, so the write fails if the agreement has changed.
    pub(super) revision: Revision,
    /// The fleet's current name, a random number. The fleet gets a new name each time an operator
    /// fences it. An operator must fence the fleet after the store was restored from a backup.
    pub(super) fleet: Nonce,
    /// The fleet's first name. It never changes.
    pub(super) origin: Nonce,
    /// The number of times that the fleet has been fenced.
    pub(super) fences: u32,
    /// The floor: no node of the fleet mints an id for a time before this instant.
    pub(super) floor: UnixNanos,
    /// The latest time for which an adopted single node may have minted ids. A later fence sets the
    /// floor to this instant or higher. `None` if no adoption has set this bound.
    pub(super) least: Option<StoredInstant>,
    /// The ids of all adoptions that the fleet has completed, even if it has lost some.
    pub(super) adoptions: BTreeSet<String>,
    /// The state of the records that nodes share.
    pub(super) records: SharedRecords,
}

impl Agreed {
    /// Returns the part of the agreement that the record store needs.
    pub(super) fn meta(&self) -> AgreedMeta {
        AgreedMeta {
            revision: self.revision,
            fleet: self.fleet.bits(),
            era: self.era(),
            records: self.records,
        }
    }

    pub(super) fn era(&self) -> FleetEra {
        FleetEra {
            fences: self.fences,
            floor: self.floor,
            origin: self.origin.bits(),
        }
    }
}

/// The result of comparing this node's slots and formats with the fleet's agreement.
#[derive(Debug)]
pub(super) enum Agreement {
    /// The agreement covers everything that this node mints.
    Agreed(Agreed),
    /// The agreement must be changed before this node may mint. The value is the transaction that
    /// changes it. The agreement may lack some of this node's formats, its floor may be too low, or
    /// the fleet may not exist yet.
    ToWrite(Transaction),
}

impl OwnLayout {
    /// Compares this node's slots and formats with the fleet's agreement. If no fleet exists yet,
    /// the returned transaction creates one with the name `fleet` and the floor `floor`.
    ///
    /// # Errors
    /// Returns [`FormatsError`] if this node may not mint in this fleet.
    pub(super) fn compare(
        &self,
        keys: &FleetKeys,
        found: Option<&KeyValue>,
        floor: UnixNanos,
        fleet: Nonce,
    ) -> Result<Agreement, FormatsError> {
        self.compare_above(UnixNanos::default(), None, keys, found, floor, fleet)
    }

    /// Does the same comparison as [`compare`](Self::compare), but requires that the agreement's
    /// floor and its `least` are at least `least`. If one of them is lower, the returned
    /// transaction raises it. If `adopting` is given, the transaction also records that this
    /// adoption is incomplete.
    ///
    /// # Errors
    /// Returns the errors of [`compare`](Self::compare).
    pub(super) fn compare_above(
        &self,
        least: UnixNanos,
        adopting: Option<&Adopting>,
        keys: &FleetKeys,
        found: Option<&KeyValue>,
        floor: UnixNanos,
        fleet: Nonce,
    ) -> Result<Agreement, FormatsError> {
        let (revision, mut meta) = match found {
            None => (Revision::ABSENT, FleetMeta::new(fleet, self.share, floor)),
            Some(entry) => (entry.modified, read(entry)?),
        };
        compare_share(self.share, &meta)?;
        let least = (least > UnixNanos::default()).then(|| StoredInstant::ceil(least));
        let mut is_whole = found.is_some()
            && meta.least >= least
            && Some(StoredInstant(meta.floor)) >= least
            && (adopting.is_none() || meta.adopting.as_ref() == adopting);
        meta.adopting = adopting.cloned().or(meta.adopting);
        meta.least = meta.least.max(least);
        meta.floor = least.map_or(meta.floor, |least| meta.floor.max(least.0));
        for format in &self.formats {
            match meta.formats.get(&format.name) {
                Some(kept) => format.compare(kept)?,
                None if format.is_minted => {
                    meta.formats
                        .insert(format.name.clone(), format.description.clone());
                    is_whole = false;
                }
                None => {}
            }
        }
        if is_whole {
            return Ok(Agreement::Agreed(Agreed {
                revision,
                fleet: meta.fleet,
                origin: meta.origin(),
                fences: meta.fences,
                floor: meta.floor,
                least: meta.least,
                adoptions: meta.known_adoptions(),
                records: meta.records(),
            }));
        }
        Ok(Agreement::ToWrite(Transaction {
            compare: vec![Compare::Modified(keys.meta(), revision)],
            write: vec![Write::put(keys.meta(), meta.to_bytes())],
            otherwise: vec![Range::one(keys.meta())],
            ..Transaction::default()
        }))
    }
}

/// Compares the configured slots with the stored ones.
///
/// # Errors
/// Returns [`FormatsError`] if the configured slots differ from the fleet's slots.
pub(super) fn compare_share(share: SlotShare, meta: &FleetMeta) -> Result<(), FormatsError> {
    let slots = share.slots();
    if meta.slots != slots {
        return Err(FormatsError::SlotsChanged {
            kept: meta.slots.get(),
            now: slots.get(),
        });
    }
    if meta.share == share.as_part() {
        return Ok(());
    }
    let text =
        |range: Option<SlotRange>| range.unwrap_or(SlotShare::all(slots).range()).to_string();
    Err(FormatsError::ShareChanged {
        kept: text(meta.share),
        now: text(share.as_part()),
    })
}

pub(super) fn read(entry: &KeyValue) -> Result<FleetMeta, FormatsError> {
    FleetMeta::from_bytes(&entry.value).map_err(|error| {
        let text = format!(
            "cannot read the settings of the fleet in the etcd key {}: {error}",
            entry.key
        );
        FormatsError::Store(StoreError::new(error.failure_kind(), text))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::num::NonZeroU32;

    use super::*;
    use crate::{Coordinator, MemoryCoordinator, Outcome};
    use idmint_storage::FailureKind;

    fn format(name: &str, tick: &str, is_minted: bool) -> KeptFormat {
        let description = BTreeMap::from([("tick".to_owned(), tick.to_owned())]);
        KeptFormat {
            name: name.to_owned(),
            description,
            is_minted,
        }
    }

    fn layout(slots: u32, formats: &[KeptFormat]) -> OwnLayout {
        OwnLayout {
            share: SlotShare::all(NonZeroU32::new(slots).expect("not zero")),
            formats: formats.to_vec(),
        }
    }

    fn keys() -> FleetKeys {
        FleetKeys::below("/idmint/v1/test/")
    }

    /// Compares the layout with the fleet's agreement, and commits a transaction if one is needed.
    fn join(store: &MemoryCoordinator, layout: &OwnLayout) -> Result<Agreed, FormatsError> {
        let found = store
            .read(&[Range::one(keys().meta())])
            .expect("memory answers")
            .ranges
            .remove(0);
        match layout.compare(
            &keys(),
            found.first(),
            UnixNanos::from_seconds(7),
            Nonce::new(1),
        )? {
            Agreement::Agreed(agreed) => Ok(agreed),
            Agreement::ToWrite(transaction) => {
                let outcome = store.commit(&transaction).expect("memory answers");
                assert!(matches!(outcome, Outcome::Committed(_)));
                join(store, layout)
            }
        }
    }

    #[test]
    fn the_first_node_founds_the_fleet_and_later_ones_bring_their_formats() {
        let store = MemoryCoordinator::default();
        let first =
            join(&store, &layout(8, &[format("a", "1ms", true)])).expect("the first one is right");
        assert_eq!(
            (first.fleet, first.floor),
            (Nonce::new(1), UnixNanos::from_seconds(7))
        );
        let read_only = format("c", "1s", false);
        let both = [format("a", "1ms", true), format("b", "1s", true), read_only];
        let second = join(&store, &layout(8, &both)).expect("a new name joins");
        assert!(second.revision > first.revision);
        assert_eq!(
            join(&store, &layout(8, &both[..1])).expect("it lacks one"),
            second
        );
        join(&store, &layout(8, &[format("c", "1ms", true)]))
            .expect("what was only read is not kept");
    }

    #[test]
    fn a_node_that_differs_is_refused_with_the_difference_and_writes_nothing() {
        let store = MemoryCoordinator::default();
        let agreed =
            join(&store, &layout(8, &[format("a", "1ms", true)])).expect("the first one is right");
        let refused = join(
            &store,
            &layout(8, &[format("b", "1ms", true), format("a", "1s", false)]),
        );
        let text = refused.expect_err("another tick").to_string();
        assert!(
            text.contains("format \"a\"") && text.contains("tick: stored 1ms, configured 1s"),
            "{text}"
        );
        let refused = join(&store, &layout(9, &[]));
        assert!(matches!(
            refused,
            Err(FormatsError::SlotsChanged { kept: 8, now: 9 })
        ));
        assert_eq!(join(&store, &layout(8, &[])).expect("unchanged"), agreed);
    }

    #[test]
    fn a_node_of_another_share_is_refused_with_the_difference() {
        let of = |text: &str| {
            let (slots, range) = (
                NonZeroU32::new(8).expect("not zero"),
                SlotRange::parse(text).expect("a range"),
            );
            OwnLayout {
                share: SlotShare::part(slots, range).expect("within"),
                formats: Vec::new(),
            }
        };
        let store = MemoryCoordinator::default();
        let agreed = join(&store, &of("0-3")).expect("the first one is right");
        let refused = join(&store, &of("4-7")).expect_err("another share");
        assert_eq!(refused.failure_kind(), FailureKind::Disagrees);
        let text = refused.to_string();
        assert!(
            text.contains("the slots 0-3") && text.contains("cluster.slots is \"4-7\""),
            "{text}"
        );
        let text = join(&store, &layout(8, &[]))
            .expect_err("all of them")
            .to_string();
        assert!(
            text.contains("the slots 0-3") && text.contains("cluster.slots is \"0-7\""),
            "{text}"
        );
        assert_eq!(join(&store, &of("0-3")).expect("unchanged"), agreed);

        let whole = MemoryCoordinator::default();
        let agreed = join(&whole, &layout(8, &[])).expect("the first one is right");
        assert_eq!(
            join(&whole, &of("0-7")).expect("a share of everything is no share"),
            agreed
        );
        assert!(matches!(
            join(&whole, &of("0-3")),
            Err(FormatsError::ShareChanged { .. })
        ));
    }

    #[test]
    fn a_floor_is_raised_for_all_slots_and_never_lowered() {
        let store = MemoryCoordinator::default();
        let layout = layout(8, &[format("a", "1ms", true)]);
        let raise = |least: u64| {
            let found = store
                .read(&[Range::one(keys().meta())])
                .expect("memory answers")
                .ranges
                .remove(0);
            let (least, floor) = (UnixNanos::new(least), UnixNanos::from_seconds(7));
            let compared =
                layout.compare_above(least, None, &keys(), found.first(), floor, Nonce::new(1));
            match compared.expect("it is alike") {
                Agreement::Agreed(_) => false,
                Agreement::ToWrite(write) => {
                    matches!(store.commit(&write), Ok(Outcome::Committed(_)))
                }
            }
        };
        let floor = || join(&store, &layout).expect("it is alike").floor;
        assert!(raise(5));
        assert_eq!(
            floor(),
            UnixNanos::from_seconds(7),
            "a fleet that begins is not below its clock"
        );
        assert!(raise(9_000_000_001));
        assert_eq!(
            floor(),
            UnixNanos::new(9_001_000_000),
            "whole milliseconds, above what was minted"
        );
        assert!(
            !raise(9_001_000_000) && !raise(8_000_000_000),
            "it is high enough"
        );
        assert_eq!(floor(), UnixNanos::new(9_001_000_000));
    }

    #[test]
    fn what_cannot_be_read_is_damage_and_is_not_written_over() {
        let store = MemoryCoordinator::default();
        let put = |value: &[u8]| Transaction {
            write: vec![Write::put(keys().meta(), value.to_vec())],
            ..Transaction::default()
        };
        for value in [&b"{\"v\":4}"[..], b"{}", b"{\"v\":1,\"slots\":0}"] {
            store.commit(&put(value)).expect("memory answers");
            let refused = join(&store, &layout(8, &[])).expect_err("unreadable");
            assert_eq!(refused.failure_kind(), FailureKind::Damaged, "{refused}");
        }
        store
            .commit(&put(b"{\"v\":5,\"more\":0}"))
            .expect("memory answers");
        let refused = join(&store, &layout(8, &[])).expect_err("of a later version");
        assert_eq!(refused.failure_kind(), FailureKind::Disagrees, "{refused}");
        assert!(refused.to_string().contains("a later version"), "{refused}");
    }
}
