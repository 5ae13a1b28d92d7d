//! One run of an adoption, in which a fleet takes over a single node and the records in its data
//! folder. A run continues where an earlier run stopped.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::adoption_error::AdoptionError;
use crate::agreement::{self, Agreed, Agreement, OwnLayout};
use crate::fleet_keys::FleetKeys;
use crate::nonce::{Entropy, Nonce};
use crate::operation::restore_fence::FAR;
use crate::records::SharedRecords;
use crate::slot_lease::Founding;
use crate::stored::{Adopting, FleetMeta, HorizonRecord, ceil_to_millis};
use crate::{
    AdoptedCount, AgreedMeta, Compare, Coordinator, CoordinatorError, KeyValue, KnownFleet,
    Outcome, Range, RecordAdopter, Revision, Transaction, Write,
};
use idmint_core::time::UnixNanos;
use idmint_records::conjunction::Pair;
use idmint_records::ledger::{EventTime, LedgerId, SeriesName};
use idmint_storage::SlotShare;
use idmint_storage::{
    AdoptedFolder, AdoptionNote, AdoptionProgress, FormatsError, KeptFormat, LedgerSummary,
    Namespace, NumberStore, SeriesSummary, remembered_among,
};

/// The maximum number of attempts to change the fleet's agreement or a slot's horizon. An attempt
/// fails if a node writes the same row first.
const TRIES_MAX: usize = 20;

/// The number of ledgers, series or pairs of objects that are read from the data folder at a time.
const PAGE_LEN: usize = 100;

/// The parameters of an adoption.
pub struct Adoption {
    /// The store that the nodes of the fleet share.
    pub coordinator: Arc<dyn Coordinator>,
    /// The namespace of the fleet that adopts the folder.
    pub namespace: Namespace,
    /// The endpoints of the fleet's etcd cluster. They appear only in messages and in the folder's
    /// note.
    pub endpoints: Vec<String>,
    /// The slots of the fleet.
    pub share: SlotShare,
    /// The configured formats of the fleet's nodes.
    pub formats: Vec<KeptFormat>,
    /// The current reading of this machine's clock.
    pub now: UnixNanos,
    /// The maximum lead of other nodes' clocks over this machine's clock. If the adoption creates
    /// the fleet, the fleet's floor is at least this far after `now`.
    pub ahead_max: Duration,
    /// The operator's statement about whether nodes may already have minted ids in the namespace.
    /// It is used only if the namespace has no fleet yet.
    pub founding: Founding,
}

/// A completed step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdoptionStep {
    /// An earlier run had begun. This run continues it.
    Resumed,
    /// The data folder of the single node is marked, so no single node can start on it any more.
    Marked,
    /// The fleet's floor was raised if necessary, and now has this value. No id is minted in the
    /// fleet for a time before the floor, so new ids differ from the single node's ids.
    FloorRaised(UnixNanos),
    /// The slot with this number rests until this instant. It has the worker numbers of the single
    /// node, which had reserved time up to this instant, far ahead of the clock. All other slots
    /// can be used earlier.
    SlotRests(u32, UnixNanos),
    /// More records were adopted. The value has the counts so far.
    Records(AdoptedRecords),
}

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adopted {
    /// The whole folder has been adopted.
    Done {
        /// The fleet's floor. No id is minted in the fleet for a time before this instant.
        floor: UnixNanos,
        /// The adopted records.
        records: AdoptedRecords,
    },
    /// An earlier run had already adopted the whole folder. This run changed nothing.
    Before,
}

/// The counts of the folder's records that the fleet now has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AdoptedRecords {
    /// The number of formats in the folder.
    pub formats: usize,
    /// The counts of ledgers, of their appends, and of the appends' idempotency keys that have not
    /// expired.
    pub ledgers: AdoptedCount,
    /// The counts of pairs of objects, and of their conjunctions.
    pub pairs: AdoptedCount,
    /// The counts of series, of their numbers, and of the numbers' idempotency keys.
    pub series: AdoptedCount,
}

impl Adoption {
    /// Moves a single node's data folder into the fleet: marks the folder, raises the fleet's
    /// floor, and copies the records. Calls `tell` after each completed step.
    ///
    /// # Errors
    /// Returns [`AdoptionError`] if the folder cannot be adopted, or cannot be adopted yet. If the
    /// folder contradicts the fleet and no earlier run has marked the folder, the folder stays
    /// unchanged.
    pub fn run(
        &self,
        folder: &mut AdoptedFolder,
        entropy: &mut Entropy,
        tell: &mut dyn FnMut(AdoptionStep),
    ) -> Result<Adopted, AdoptionError> {
        let keys = FleetKeys::below(self.namespace.key_prefix());
        let layout = self.layout(folder)?;
        let found = self.read_meta(&keys)?;
        let meta = found.as_ref().map(agreement::read).transpose()?;
        let progress = self.progress(folder, meta.as_ref())?;
        let noted = folder.note().and_then(|note| note.adoption.clone());
        let id = noted.unwrap_or_else(|| entropy.nonce().to_string());
        let copying = Adopting::Copying(id.clone());
        match &progress {
            Some(AdoptionProgress::Done(_)) => {
                let is_kept = meta.is_some_and(|meta| match meta.adoptions.is_empty() {
                    // An earlier version of this program may have adopted the folder.
                    true => meta.least.is_some(),
                    false => meta.adoptions.contains(&id),
                });
                return match is_kept {
                    true => Ok(Adopted::Before),
                    false => Err(AdoptionError::Lost(id)),
                };
            }
            Some(progress @ (AdoptionProgress::Begun | AdoptionProgress::FloorRaised(_))) => {
                // An earlier run may have stopped after it wrote the adoption note, but before it
                // marked the folder's horizon file. Writing the note again also marks that file.
                let origin = folder.note().and_then(|note| note.origin.clone());
                self.note(folder, &id, progress.clone(), origin)?;
                tell(AdoptionStep::Resumed);
            }
            None => {}
        }
        let state = meta.and_then(|meta| meta.adopting);
        let is_copying = state.as_ref() == Some(&copying);
        let has_raised = is_copying || matches!(progress, Some(AdoptionProgress::FloorRaised(_)));
        if !is_copying {
            let is_new = progress.is_none();
            if is_new && state.is_none() {
                // Find contradictions before nodes have to stop using records.
                self.compare(folder, &copying, &layout, &keys, is_new)?;
            }
            let (is_founding, comparing) = (found.is_none(), Adopting::Comparing(id.clone()));
            let compared = self
                .stop_nodes(folder, is_founding, &comparing, &layout, &keys, entropy)
                // Nodes may have written records until now, so compare again. From the next step
                // on, the folder is marked and records are copied, which cannot be undone.
                .and_then(|()| self.compare(folder, &copying, &layout, &keys, is_new))
                .and_then(|()| self.begin(folder, &id, tell))
                .and_then(|()| self.raise_slot(self.far_slot(folder, &keys)?, &keys, entropy));
            if let Err(error) = compared {
                // If this fails, nodes cannot use records until the next run or a fence.
                let _ = self.end_comparison(&comparing, &keys);
                return Err(error);
            }
        }
        let far = self.far_slot(folder, &keys)?;
        if let Some((slot, horizon)) = far {
            tell(AdoptionStep::SlotRests(slot, horizon));
        }
        let bound = own_bound(folder, far);
        let agreed = self.agree((bound, has_raised), &copying, &layout, &keys, entropy)?;
        let (fleet, origin) = (agreed.fleet.to_string(), Some(agreed.origin.to_string()));
        let raised = AdoptionProgress::FloorRaised(fleet.clone());
        self.note(folder, &id, raised, origin.clone())?;
        tell(AdoptionStep::FloorRaised(agreed.floor));
        let records = self.adopt_records(folder, &self.adopter(&agreed), &mut |so_far| {
            tell(AdoptionStep::Records(*so_far))
        })?;
        self.note(folder, &id, AdoptionProgress::Done(fleet), origin)?;
        self.complete(&agreed, id, &keys)?;
        Ok(Adopted::Done {
            floor: agreed.floor,
            records,
        })
    }

    /// Returns an adopter, which reads and writes records while no node does. Its writes fail once
    /// the fleet's agreement differs from `agreed`.
    fn adopter(&self, agreed: &Agreed) -> RecordAdopter {
        let known = KnownFleet::agreeing(AgreedMeta {
            records: SharedRecords::Complete,
            ..agreed.meta()
        });
        RecordAdopter::new(
            Arc::clone(&self.coordinator),
            &self.namespace,
            Arc::new(known),
        )
    }

    /// Stops nodes from using records while the folder is compared. If the fleet does not exist,
    /// founds it with a floor above the folder's horizon, because its nodes may mint from then on.
    fn stop_nodes(
        &self,
        folder: &AdoptedFolder,
        is_founding: bool,
        comparing: &Adopting,
        layout: &OwnLayout,
        keys: &FleetKeys,
        entropy: &mut Entropy,
    ) -> Result<(), AdoptionError> {
        let far = self.far_slot(folder, keys)?;
        if is_founding {
            self.raise_slot(far, keys, entropy)?;
        }
        let slots_only = OwnLayout {
            formats: Vec::new(),
            ..layout.clone()
        };
        let bound = own_bound(folder, far);
        self.agree((bound, true), comparing, &slots_only, keys, entropy)
            .map(drop)
    }

    /// Checks that the folder's formats and records can be copied into the fleet. If `is_new`, also
    /// checks that the node and the fleet have the same rules for numbers.
    fn compare(
        &self,
        folder: &AdoptedFolder,
        adopting: &Adopting,
        layout: &OwnLayout,
        keys: &FleetKeys,
        is_new: bool,
    ) -> Result<(), AdoptionError> {
        let bound = own_bound(folder, self.far_slot(folder, keys)?);
        let found = self.read_meta(keys)?;
        self.plan(
            (bound, bound),
            adopting,
            layout,
            keys,
            found.as_ref(),
            Nonce::new(0),
        )?;
        let known = Arc::<KnownFleet>::default();
        let trial = RecordAdopter::new(Arc::clone(&self.coordinator), &self.namespace, known);
        let trial = trial.on_trial();
        if let Some(numbers) = folder.numbers().filter(|_| is_new) {
            trial.check_rules(numbers)?;
        }
        self.adopt_records(folder, &trial, &mut |_| {}).map(drop)
    }

    /// Marks the folder, so that no single node can start on it any more. Does nothing if an
    /// earlier run has marked it.
    fn begin(
        &self,
        folder: &mut AdoptedFolder,
        id: &str,
        tell: &mut dyn FnMut(AdoptionStep),
    ) -> Result<(), AdoptionError> {
        if folder.note().is_some() {
            return Ok(());
        }
        let (namespace, endpoints) = (self.namespace.to_string(), self.endpoints.clone());
        folder.write_note(AdoptionNote::begun(id.to_owned(), namespace, endpoints))?;
        tell(AdoptionStep::Marked);
        Ok(())
    }

    /// Ends the comparison `comparing` of this run, so that nodes use records again. Does nothing
    /// if a fence or another adoption has already ended it.
    fn end_comparison(&self, comparing: &Adopting, keys: &FleetKeys) -> Result<(), AdoptionError> {
        for _ in 0..TRIES_MAX {
            let Some(found) = self.read_meta(keys)? else {
                return Ok(());
            };
            let mut meta = agreement::read(&found)?;
            if meta.adopting.take().as_ref() != Some(comparing) {
                return Ok(());
            }
            let transaction = Transaction {
                compare: vec![Compare::Modified(found.key.clone(), found.modified)],
                write: vec![Write::put(found.key, meta.to_bytes())],
                ..Transaction::default()
            };
            match self.coordinator.commit(&transaction) {
                Ok(_) | Err(CoordinatorError::NoAnswer(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(AdoptionError::Overtaken)
    }

    /// Returns the configured slots of the fleet, and the formats of the folder. Fails if a
    /// configured format differs from the folder's format with the same name.
    fn layout(&self, folder: &AdoptedFolder) -> Result<OwnLayout, AdoptionError> {
        let format = |(name, description)| KeptFormat {
            name,
            description,
            is_minted: true,
        };
        let formats: Vec<KeptFormat> = folder.formats().into_iter().map(format).collect();
        for format in &formats {
            if let Some(configured) = self
                .formats
                .iter()
                .find(|configured| configured.name == format.name)
            {
                let compared = format.compare(&configured.description);
                compared.map_err(|error| differs("the configuration", error))?;
            }
        }
        Ok(OwnLayout {
            share: self.share,
            formats,
        })
    }

    /// Returns the progress of earlier runs for this fleet, according to the folder's note, or
    /// `None` if no run has begun. If the fleet still waits for this adoption to end, it may lack
    /// the last records, even if the note says `done`.
    fn progress(
        &self,
        folder: &AdoptedFolder,
        meta: Option<&FleetMeta>,
    ) -> Result<Option<AdoptionProgress>, AdoptionError> {
        let Some(AdoptionNote {
            namespace,
            endpoints,
            progress,
            origin,
            adoption,
            ..
        }) = folder.note()
        else {
            return Ok(None);
        };
        let here = meta.map(|meta| meta.fleet.to_string());
        let is_same = match progress {
            AdoptionProgress::Begun => true,
            AdoptionProgress::FloorRaised(fleet) | AdoptionProgress::Done(fleet) => {
                here.as_ref() == Some(fleet)
            }
        };
        let is_here = *namespace == self.namespace.to_string();
        if is_here && is_same {
            let awaited = meta.and_then(|meta| meta.adopting.clone());
            return Ok(Some(match progress {
                AdoptionProgress::Done(fleet)
                    if awaited.is_some() && awaited == adoption.clone().map(Adopting::Copying) =>
                {
                    AdoptionProgress::FloorRaised(fleet.clone())
                }
                progress => progress.clone(),
            }));
        }
        // A fence renames the fleet, so the note may contain a former name. The fleet's first name
        // is compared as well. After a wipe, a fence learns that name from journals or high-water
        // files, but may not learn all later names.
        let was_before = |fleet: &String| {
            meta.is_some_and(|meta| {
                let mut former = meta.former.iter().map(Nonce::to_string);
                origin.as_ref() == Some(&meta.origin().to_string())
                    || former.any(|former| former == *fleet)
            })
        };
        match progress {
            // The note contains a former name of the fleet, so an operator has fenced the fleet
            // since, probably after a restore. The store may now lack some of the folder's records,
            // so begin again.
            AdoptionProgress::FloorRaised(fleet) | AdoptionProgress::Done(fleet)
                if is_here && was_before(fleet) =>
            {
                return Ok(Some(AdoptionProgress::Begun));
            }
            AdoptionProgress::Begun
            | AdoptionProgress::FloorRaised(_)
            | AdoptionProgress::Done(_) => {}
        }
        let kept = match progress {
            AdoptionProgress::Begun => format!("{namespace} at {}", endpoints.join(", ")),
            AdoptionProgress::FloorRaised(fleet) | AdoptionProgress::Done(fleet) => {
                format!("{namespace} at {}, fleet {fleet}", endpoints.join(", "))
            }
        };
        let here = here.map_or("no fleet yet".to_owned(), |fleet| format!("fleet {fleet}"));
        let here = format!(
            "{} at {}, {here}",
            self.namespace,
            self.endpoints.join(", ")
        );
        Err(AdoptionError::OtherFleet { kept, here })
    }

    fn read_meta(&self, keys: &FleetKeys) -> Result<Option<KeyValue>, CoordinatorError> {
        let mut found = self.coordinator.read(&[Range::one(keys.meta())])?;
        Ok(found.ranges.pop().and_then(|mut meta| meta.pop()))
    }

    /// Returns the slot that must rest because the folder's horizon is far ahead of the clock,
    /// together with that horizon. This is the one slot that has the single node's worker numbers.
    /// Returns `None` if the horizon is not far ahead.
    ///
    /// # Errors
    /// Returns [`AdoptionError::FarAhead`] if more than one slot would have to rest, or if the
    /// fleet has no other slot.
    fn far_slot(
        &self,
        folder: &AdoptedFolder,
        keys: &FleetKeys,
    ) -> Result<Option<(u32, UnixNanos)>, AdoptionError> {
        let (now, horizon) = (self.now, ceil_to_millis(folder.horizon()));
        let far_from = now.after(FAR);
        if horizon <= far_from {
            return Ok(None);
        }
        let refused = |why: String| Err(AdoptionError::FarAhead { horizon, now, why });
        let Some(slot) = folder.slot_of(self.share.slots().get()) else {
            return refused("the worker numbers of the node belong to several slots".to_owned());
        };
        if self.share.iter().eq([slot]) {
            return refused("the fleet has no other slot".to_owned());
        }
        let horizons: BTreeMap<u32, UnixNanos> = self
            .slots_of(keys)?
            .iter()
            .filter_map(|entry| {
                let record = HorizonRecord::from_bytes(&entry.value).ok()?;
                Some((keys.slot_of_horizon(&entry.key)?, record.horizon))
            })
            .collect();
        // An earlier run has already raised this slot's horizon, so this run changes nothing even
        // if other slots rest as well.
        if horizons.get(&slot).is_some_and(|known| *known >= horizon) {
            return Ok(Some((slot, horizon)));
        }
        match horizons.iter().find(|(_, known)| **known > far_from) {
            Some((other, _)) if *other != slot => {
                refused(format!("slot {other} of the fleet is also far ahead"))
            }
            Some(_) | None => Ok(Some((slot, horizon))),
        }
    }

    /// Raises the stored horizon of the slot in `far`, so that no node uses the slot before that
    /// instant. Does nothing if `far` is `None`.
    fn raise_slot(
        &self,
        far: Option<(u32, UnixNanos)>,
        keys: &FleetKeys,
        entropy: &mut Entropy,
    ) -> Result<(), AdoptionError> {
        let Some((slot, horizon)) = far else {
            return Ok(());
        };
        let key = keys.horizon(slot);
        for _ in 0..TRIES_MAX {
            let found = self
                .slots_of(keys)?
                .into_iter()
                .find(|entry| entry.key == key);
            let record = found
                .as_ref()
                .map(|entry| HorizonRecord::from_bytes(&entry.value));
            if record.is_some_and(|record| record.is_ok_and(|record| record.horizon >= horizon)) {
                return Ok(());
            }
            let revision = found.map_or(Revision::ABSENT, |entry| entry.modified);
            let record = HorizonRecord::new(horizon, entropy.nonce(), entropy.nonce(), self.now);
            let transaction = Transaction {
                compare: vec![Compare::Modified(key.clone(), revision)],
                write: vec![Write::put(key.clone(), record.to_bytes())],
                ..Transaction::default()
            };
            match self.coordinator.commit(&transaction) {
                Ok(_) | Err(CoordinatorError::NoAnswer(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(AdoptionError::Overtaken)
    }

    /// Returns the stored horizons of all slots.
    fn slots_of(&self, keys: &FleetKeys) -> Result<Vec<KeyValue>, CoordinatorError> {
        let found = self.coordinator.read(&keys.clocks())?;
        Ok(found.ranges.into_iter().next().unwrap_or_default())
    }

    /// Compares the fleet's agreement with what this adoption requires: the folder's formats, the
    /// incomplete adoption `adopting`, and no ids before `least`, not even after a fence. If
    /// something is missing, returns the transaction that changes the agreement. A fleet that does
    /// not exist yet gets the floor `begins_at`.
    fn plan(
        &self,
        (least, begins_at): (UnixNanos, UnixNanos),
        adopting: &Adopting,
        layout: &OwnLayout,
        keys: &FleetKeys,
        found: Option<&KeyValue>,
        fleet: Nonce,
    ) -> Result<Agreement, AdoptionError> {
        let (Adopting::Comparing(own) | Adopting::Copying(own)) = adopting;
        match found
            .map(agreement::read)
            .transpose()?
            .and_then(|meta| meta.adopting)
        {
            Some(Adopting::Copying(other)) if other != *own => {
                return Err(AdoptionError::Unfinished(other));
            }
            Some(Adopting::Copying(_) | Adopting::Comparing(_)) | None => {}
        }
        let compared = layout.compare_above(least, Some(adopting), keys, found, begins_at, fleet);
        compared.map_err(|error| differs("the fleet", error))
    }

    /// Adds the formats of `layout` and the incomplete adoption `adopting` to the fleet's
    /// agreement. If the fleet does not exist, founds it with a floor of at least `bound`. Before
    /// copying, also raises the agreement's floor and its `least` to at least `bound`.
    ///
    /// Unless `has_raised` is `true`, also raises `least` by at least 1 ms. If the store is later
    /// restored to a state before this adoption, its `least` is lower than the value that nodes
    /// remember. A fence then recognizes that the adoption was lost.
    ///
    /// Returns [`AdoptionError::Overtaken`] if other processes keep changing the agreement, or if
    /// nodes could use records again since this run compared them.
    fn agree(
        &self,
        (bound, has_raised): (UnixNanos, bool),
        adopting: &Adopting,
        layout: &OwnLayout,
        keys: &FleetKeys,
        entropy: &mut Entropy,
    ) -> Result<Agreed, AdoptionError> {
        // If this run creates the fleet, its floor is at least `ahead_max` after this clock's time,
        // because other nodes may have minted with clocks that far ahead.
        let begins_at = self.founding.floor(self.now, self.ahead_max).max(bound);
        let (own, mut has_raised) = match adopting {
            Adopting::Comparing(_) => (UnixNanos::default(), true),
            Adopting::Copying(_) => (bound, has_raised),
        };
        let mut unanswered = None;
        for _ in 0..TRIES_MAX {
            let found = self.read_meta(keys)?;
            let meta = found.as_ref().map(agreement::read).transpose()?;
            let state = meta.and_then(|meta| meta.adopting);
            if !may_follow(state.as_ref(), adopting) {
                return Err(AdoptionError::Overtaken);
            }
            has_raised |= unanswered.is_some() && unanswered == found.as_ref().map(value_of);
            let least = match has_raised {
                true => own,
                false => own.max(above_adoptions(found.as_ref())?),
            };
            match self.plan(
                (least, begins_at),
                adopting,
                layout,
                keys,
                found.as_ref(),
                entropy.nonce(),
            )? {
                // The floor is at least `own`, so new ids differ from the folder's ids. A fence may
                // have lowered the floor, but not below `own`.
                Agreement::Agreed(agreed) => {
                    assert!(
                        agreed.floor >= own,
                        "no slot is used below what the folder minted"
                    );
                    return Ok(agreed);
                }
                Agreement::ToWrite(transaction) => match self.coordinator.commit(&transaction) {
                    Ok(Outcome::Committed(_)) => has_raised = true,
                    Ok(Outcome::Refused(_)) => {}
                    // The next iteration reads the agreement again, which shows whether this write
                    // was done.
                    Err(CoordinatorError::NoAnswer(_)) => {
                        unanswered = transaction.value_of(&keys.meta()).map(<[u8]>::to_vec);
                    }
                    Err(error) => return Err(error.into()),
                },
            }
        }
        Err(AdoptionError::Overtaken)
    }

    /// Records in the fleet's agreement that the adoption `id` is complete, so that nodes read and
    /// write records again. Fails if the agreement has changed since it was `agreed`.
    fn complete(&self, agreed: &Agreed, id: String, keys: &FleetKeys) -> Result<(), AdoptionError> {
        let found = self.read_meta(keys)?;
        let found = found.filter(|found| found.modified == agreed.revision);
        let mut meta = agreement::read(&found.ok_or(AdoptionError::Overtaken)?)?;
        meta.adopting = None;
        meta.adoptions.insert(id);
        Ok(self
            .adopter(agreed)
            .write_meta(meta.to_bytes(), agreed.revision)?)
    }

    fn note(
        &self,
        folder: &mut AdoptedFolder,
        id: &str,
        progress: AdoptionProgress,
        origin: Option<String>,
    ) -> Result<(), AdoptionError> {
        let note = folder
            .note()
            .expect("it was written when the adoption began")
            .clone();
        Ok(folder.write_note(note.at(id.to_owned(), progress, origin))?)
    }

    /// Copies all records of the folder into the fleet. If `adopter` is on trial, only checks that
    /// the records can be copied.
    fn adopt_records(
        &self,
        folder: &AdoptedFolder,
        adopter: &RecordAdopter,
        tell: &mut dyn FnMut(&AdoptedRecords),
    ) -> Result<AdoptedRecords, AdoptionError> {
        let mut records = AdoptedRecords {
            formats: count_formats(folder),
            ..AdoptedRecords::default()
        };
        let since = remembered_since(folder)?;
        for_each_ledger(folder, |ledger| {
            let read = |after, count_max| folder.appends(ledger.head.id.ledger(), after, count_max);
            records.ledgers += adopter.adopt_ledger(ledger, since, &read)?;
            tell(&records);
            Ok(())
        })?;
        if let Some(numbers) = folder.numbers() {
            adopter.adopt_rules(numbers)?;
        }
        for_each_series(folder, |numbers, series| {
            records.series += adopter.adopt_series(series, numbers)?;
            tell(&records);
            Ok(())
        })?;
        let mut after: Option<(String, Pair)> = None;
        loop {
            let page = folder.pairs(
                after
                    .as_ref()
                    .map(|(format, pair)| (format.as_str(), *pair)),
                PAGE_LEN,
            )?;
            let Some(last) = page.last() else {
                return Ok(records);
            };
            after = Some((last.format.clone(), last.pair));
            records.pairs += adopter.adopt_pairs(&page)?;
            tell(&records);
        }
    }
}

/// `true` if an adoption may go from the state `from` to the state `to`. Copying must follow a
/// comparison by the same adoption, because nodes have used no records since that comparison.
fn may_follow(from: Option<&Adopting>, to: &Adopting) -> bool {
    match (from, to) {
        (_, Adopting::Comparing(_)) => true,
        (Some(Adopting::Comparing(known) | Adopting::Copying(known)), Adopting::Copying(id)) => {
            known == id
        }
        (None, Adopting::Copying(_)) => false,
    }
}

/// Returns the lowest floor that keeps new ids apart from the folder's ids, which is the folder's
/// horizon. If only the slot in `far` has to rest until that horizon, no floor is needed, and the
/// result is the start of 1970.
fn own_bound(folder: &AdoptedFolder, far: Option<(u32, UnixNanos)>) -> UnixNanos {
    far.map_or(folder.horizon(), |_| UnixNanos::default())
}

/// Returns the instant 1 ms after the agreement's `least`, or after the start of 1970 if there is
/// none. Each adoption raises `least`, so that a loss of the adoption can be detected.
fn above_adoptions(found: Option<&KeyValue>) -> Result<UnixNanos, FormatsError> {
    let least = found
        .map(agreement::read)
        .transpose()?
        .and_then(|meta| meta.least);
    Ok(least
        .map_or(UnixNanos::default(), |least| least.0)
        .after(Duration::from_millis(1)))
}

fn value_of(entry: &KeyValue) -> Vec<u8> {
    entry.value.clone()
}

/// Returns the time before which the folder's idempotency keys have expired. Expired keys are not
/// copied. The time follows from the last append of each ledger. Other appends could only make it
/// later, so every key that is still needed is copied.
fn remembered_since(folder: &AdoptedFolder) -> Result<EventTime, AdoptionError> {
    let mut last = Vec::new();
    for_each_ledger(folder, |ledger| {
        last.push(ledger.head.recorded);
        Ok(())
    })?;
    Ok(remembered_among(last))
}

fn for_each_ledger(
    folder: &AdoptedFolder,
    mut see: impl FnMut(&LedgerSummary) -> Result<(), AdoptionError>,
) -> Result<(), AdoptionError> {
    let mut after: Option<LedgerId> = None;
    loop {
        let page = folder.ledgers(after, PAGE_LEN)?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = Some(last.head.id.ledger());
        page.iter().try_for_each(&mut see)?;
    }
}

fn for_each_series(
    folder: &AdoptedFolder,
    mut see: impl FnMut(&dyn NumberStore, &SeriesSummary) -> Result<(), AdoptionError>,
) -> Result<(), AdoptionError> {
    let Some(numbers) = folder.numbers() else {
        return Ok(());
    };
    let mut after: Option<SeriesName> = None;
    loop {
        let page = numbers.series(after.as_ref(), PAGE_LEN)?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = Some(last.series.clone());
        page.iter().try_for_each(|series| see(numbers, series))?;
    }
}

/// Returns the number of id formats that a folder stores. Encodings are not counted.
fn count_formats(folder: &AdoptedFolder) -> usize {
    folder
        .formats()
        .keys()
        .filter(|name| KeptFormat::is_name_of_format(name))
        .count()
}

/// Converts a difference between formats to [`AdoptionError::FormatDiffers`]. Other errors are
/// passed on unchanged.
fn differs(place: &'static str, error: FormatsError) -> AdoptionError {
    match error {
        FormatsError::Changed { name, differences } => AdoptionError::FormatDiffers {
            name,
            place,
            differences,
        },
        other => other.into(),
    }
}
