//! One run of an adoption, from whatever an earlier one has left.

use std::sync::Arc;
use std::time::Duration;

use super::adoption_error::AdoptionError;
use crate::cluster::agreement::{self, Agreed, Agreement, OwnLayout};
use crate::cluster::fleet_keys::FleetKeys;
use crate::cluster::nonce::{Entropy, Nonce};
use crate::cluster::slot_lease::Founding;
use crate::cluster::slot_share::SlotShare;
use crate::cluster::stored::FleetMeta;
use crate::conjunction::Pair;
use crate::ledger::{EventTime, LedgerId, SeriesName};
use crate::storage::{
    AdoptedCount, AdoptedFolder, AdoptionNote, AdoptionProgress, Coordinator, CoordinatorError,
    FormatsError, KeptFormat, KeyValue, KnownFleet, LedgerSummary, Namespace, NumberStore, Range,
    RecordAdopter, SeriesSummary, remembered_among,
};
use crate::time::UnixNanos;

/// How often the floor is tried to be raised while nodes tell the fleet of their formats.
const TRIES_MAX: usize = 20;

/// Ledgers, and pairs, that are read from the folder at once.
const PAGE_LEN: usize = 100;

/// What a folder is adopted by.
pub struct Adoption {
    /// The store that the nodes of the fleet share.
    pub coordinator: Arc<dyn Coordinator>,
    /// The fleet.
    pub namespace: Namespace,
    /// The members of its etcd, for people.
    pub endpoints: Vec<String>,
    /// Which slots it has.
    pub share: SlotShare,
    /// The formats of its nodes, as they are configured.
    pub formats: Vec<KeptFormat>,
    /// What the clock shows.
    pub now: UnixNanos,
    /// How far ahead of the clock anybody may have minted who left no record.
    pub ahead_max: Duration,
    /// What is known of the namespace, where it has no fleet yet.
    pub founding: Founding,
}

/// What a run has just done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdoptionStep {
    /// An earlier run had begun; this one goes on with it.
    Resumed,
    /// No node starts on the folder any more.
    Marked,
    /// No slot of the fleet is used below.
    FloorRaised(UnixNanos),
    /// So many records are there.
    Records(AdoptedRecords),
}

/// What came of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adopted {
    /// All is there now.
    Done {
        /// No slot of the fleet is used below.
        floor: UnixNanos,
        /// The records.
        records: AdoptedRecords,
    },
    /// An earlier run had done all of it; nothing was changed.
    Before,
}

/// The records of a folder in its fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AdoptedRecords {
    /// Kept formats.
    pub formats: usize,
    /// Ledgers, their appends, and the keys of requests of the last day.
    pub ledgers: AdoptedCount,
    /// Pairs of objects, and their conjunctions.
    pub pairs: AdoptedCount,
    /// Series, their numbers, and the keys of their requests.
    pub series: AdoptedCount,
}

impl Adoption {
    /// Adopts the folder; `tell` hears of each step.
    ///
    /// # Errors
    /// [`AdoptionError`]. Where something differs, and nothing had been begun, the folder is as it was.
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
        match self.progress(folder, meta.as_ref())? {
            Some(AdoptionProgress::Done(_)) => return Ok(Adopted::Before),
            Some(progress @ (AdoptionProgress::Begun | AdoptionProgress::FloorRaised(_))) => {
                // It may have ended between the note and the mark of the horizon.
                self.note(folder, progress)?;
                tell(AdoptionStep::Resumed);
            }
            None => {
                // Before anything is changed, here or there: what differs would be found when it is too late to turn back.
                self.plan(folder, &layout, &keys, found.as_ref(), entropy.nonce())?;
                let known = Arc::<KnownFleet>::default();
                let trial =
                    RecordAdopter::new(Arc::clone(&self.coordinator), &self.namespace, known)
                        .on_trial();
                self.adopt_records(folder, &trial, &mut |_| {})?;
                let (namespace, endpoints) = (self.namespace.to_string(), self.endpoints.clone());
                folder.write_note(AdoptionNote::begun(namespace, endpoints))?;
                tell(AdoptionStep::Marked);
            }
        }
        let agreed = self.raise_floor(folder, &layout, &keys, entropy)?;
        let fleet = agreed.fleet.to_string();
        self.note(folder, AdoptionProgress::FloorRaised(fleet.clone()))?;
        tell(AdoptionStep::FloorRaised(agreed.floor));
        let known = Arc::new(KnownFleet::agreeing(agreed.meta()));
        let adopter = RecordAdopter::new(Arc::clone(&self.coordinator), &self.namespace, known);
        let records = self.adopt_records(folder, &adopter, &mut |so_far| {
            tell(AdoptionStep::Records(*so_far))
        })?;
        self.note(folder, AdoptionProgress::Done(fleet))?;
        Ok(Adopted::Done {
            floor: agreed.floor,
            records,
        })
    }

    /// The formats that the folder brings, which are what the configuration calls by their names.
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

    /// How far the adoption of the folder by this fleet has come; `None` if it has not begun.
    fn progress(
        &self,
        folder: &AdoptedFolder,
        meta: Option<&FleetMeta>,
    ) -> Result<Option<AdoptionProgress>, AdoptionError> {
        let Some(AdoptionNote {
            namespace,
            endpoints,
            progress,
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
            return Ok(Some(progress.clone()));
        }
        let was_before = |fleet: &String| {
            meta.is_some_and(|meta| {
                meta.former
                    .iter()
                    .any(|former| former.to_string() == *fleet)
            })
        };
        match progress {
            // Of a fleet that was restored since from a backup, which may have all of it, a part, or nothing.
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

    /// What the fleet has to be told, if anything.
    fn plan(
        &self,
        folder: &AdoptedFolder,
        layout: &OwnLayout,
        keys: &FleetKeys,
        found: Option<&KeyValue>,
        fleet: Nonce,
    ) -> Result<Agreement, AdoptionError> {
        // As at a start without a record: whoever else minted before was at most so far ahead.
        let begins_at = self.founding.floor(self.now, self.ahead_max);
        let compared = layout.compare_above(folder.horizon(), keys, found, begins_at, fleet);
        compared.map_err(|error| differs("the fleet", error))
    }

    /// Sees to it that no slot is used below the horizon of the folder, and that the fleet knows its formats.
    fn raise_floor(
        &self,
        folder: &AdoptedFolder,
        layout: &OwnLayout,
        keys: &FleetKeys,
        entropy: &mut Entropy,
    ) -> Result<Agreed, AdoptionError> {
        for _ in 0..TRIES_MAX {
            let found = self.read_meta(keys)?;
            match self.plan(folder, layout, keys, found.as_ref(), entropy.nonce())? {
                // A floor is never lowered, so what any state of the fleet shows of it holds now.
                Agreement::Agreed(agreed) => {
                    assert!(
                        agreed.floor >= folder.horizon(),
                        "no slot is used below what the folder minted"
                    );
                    return Ok(agreed);
                }
                // Without an answer, or refused: the next look tells whether it is done.
                Agreement::ToWrite(transaction) => match self.coordinator.commit(&transaction) {
                    Ok(_) | Err(CoordinatorError::NoAnswer(_)) => {}
                    Err(error) => return Err(error.into()),
                },
            }
        }
        Err(AdoptionError::Overtaken)
    }

    fn note(
        &self,
        folder: &mut AdoptedFolder,
        progress: AdoptionProgress,
    ) -> Result<(), AdoptionError> {
        let note = folder
            .note()
            .expect("it was written when the adoption began")
            .clone();
        Ok(folder.write_note(note.at(progress))?)
    }

    /// Adopts all records, or tries whether they can be.
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

/// Since when requests were recorded whose keys are adopted: no later than those of all appends say, of which the last ones of
/// ledgers are some.
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

/// How many formats a folder keeps, beside their encodings.
fn count_formats(folder: &AdoptedFolder) -> usize {
    folder
        .formats()
        .keys()
        .filter(|name| KeptFormat::is_name_of_format(name))
        .count()
}

/// A format that is not what it is elsewhere; every other error stays as it is.
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
