//! Stored conjunctions: listed by time, and shown one by one.

use crate::conjunction::{Anchor, ExternalId, GroupedMinter, Pair, Tca};
use crate::service::error::ServiceError;
use crate::service::service::{Conjunctions, Service};
use crate::storage::{
    AnchorKey, ListPlace, ListRange, RecordStore, StoredConjunction, log_unreadable,
};

/// How many conjunctions are listed at once.
pub const CONJUNCTIONS_MAX: usize = 1_000;

/// Rows that are looked through for one list, which takes some hundredths of a second.
const LOOKED_THROUGH_MAX: usize = 50_000;

/// Rows that are read at once.
const STEP_LEN: usize = 2_000;

/// Which conjunctions are listed.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListQuery {
    /// From this time on, in the order of time; without it the latest come first.
    pub from: Option<Tca>,
    /// Before this time.
    pub to: Option<Tca>,
    /// Those with this primary object.
    pub primary: Option<u64>,
    /// Those with this secondary object.
    pub secondary: Option<u64>,
    /// Those behind this one in the list.
    pub after: Option<ListPlace>,
    /// So many at most.
    pub limit: usize,
}

/// One conjunction, with its id.
#[derive(Debug, Clone)]
pub struct ListedConjunction {
    /// Its id.
    pub id: u128,
    /// What is stored.
    pub stored: StoredConjunction,
    /// The ids of the same two objects, in either order, within a minute.
    pub near: Vec<u128>,
    /// The ids that other originators have given it, in the order in which they came.
    pub externals: Vec<ExternalId>,
}

/// Some conjunctions.
#[derive(Debug)]
pub struct ConjunctionList {
    /// In the order that was asked for.
    pub items: Vec<ListedConjunction>,
    /// Behind which id the list goes on; `None` at its end.
    pub next: Option<u128>,
}

impl ListQuery {
    fn matches(&self, pair: Pair) -> bool {
        self.primary.is_none_or(|primary| primary == pair.primary)
            && self
                .secondary
                .is_none_or(|secondary| secondary == pair.secondary)
    }
}

impl Service {
    /// Conjunctions of the format of this minter.
    ///
    /// # Errors
    /// [`ServiceError::NothingStored`] among others.
    pub fn conjunctions_listed(
        &self,
        minter: &GroupedMinter,
        query: &ListQuery,
    ) -> Result<ConjunctionList, ServiceError> {
        self.check_stored()?;
        let last = Tca(query.to.map_or(i64::MAX, |to| to.0.saturating_sub(1)));
        let times = query.from.unwrap_or(Tca(i64::MIN))..=last;
        let format = minter.format_name().to_owned();
        let mut range = ListRange {
            format,
            times,
            after: query.after,
            latest_first: query.from.is_none(),
        };
        let (mut found, mut looked_through, mut next) = (Vec::new(), 0, None);
        'reading: loop {
            let rows = self.records()?.conjunctions(&range, STEP_LEN);
            let rows = rows.map_err(|error| ServiceError::Records(log_unreadable(&error)))?;
            let is_last = rows.len() < STEP_LEN;
            for row in rows {
                let place = (row.anchor.tca, row.pair);
                if query.matches(row.pair) {
                    if found.len() == query.limit {
                        next = range.after;
                        break 'reading;
                    }
                    found.push(row);
                }
                looked_through += 1;
                range.after = Some(place);
            }
            if is_last {
                break;
            }
            if looked_through >= LOOKED_THROUGH_MAX {
                next = range.after;
                break;
            }
        }
        let next = next.and_then(|(tca, pair)| minter.id_at(pair, tca).ok());
        Ok(ConjunctionList {
            items: self.with_near(minter, found)?,
            next,
        })
    }

    /// The conjunctions that an id of another originator was sent with, of those that a query asks for: the latest first, all
    /// there are up to its limit, whatever they are listed behind.
    ///
    /// # Errors
    /// [`ServiceError::NothingStored`] among others.
    pub fn conjunctions_of_external(
        &self,
        minter: &GroupedMinter,
        external: &ExternalId,
        query: &ListQuery,
    ) -> Result<Vec<ListedConjunction>, ServiceError> {
        self.check_stored()?;
        let unreadable = |error| ServiceError::Records(log_unreadable(&error));
        let records = self.records()?;
        let anchors = records
            .anchors_of_external(minter.format_name(), external, CONJUNCTIONS_MAX)
            .map_err(unreadable)?;
        let times = query.from.unwrap_or(Tca(i64::MIN))..query.to.unwrap_or(Tca(i64::MAX));
        let asked = anchors
            .into_iter()
            .filter(|anchor| times.contains(&anchor.tca) && query.matches(anchor.pair));
        let mut found = Vec::new();
        for AnchorKey { pair, tca, .. } in asked.take(query.limit) {
            // What was forgotten meanwhile is not there.
            found.extend(self.stored_at(minter, pair, tca)?);
        }
        self.with_near(minter, found)
    }

    /// The conjunction of an id.
    ///
    /// # Errors
    /// [`ServiceError::UnknownConjunction`] among others.
    pub fn conjunction(
        &self,
        minter: &GroupedMinter,
        id: u128,
    ) -> Result<ListedConjunction, ServiceError> {
        self.check_stored()?;
        let unknown = || ServiceError::UnknownConjunction;
        let (pair, times) = minter.event_of(id).ok_or_else(unknown)?;
        let spans = self
            .records()?
            .anchors_within(minter.format_name(), &mut std::iter::once((pair, times)));
        let spans = spans.map_err(|error| ServiceError::Records(log_unreadable(&error)))?;
        let anchor = spans.into_iter().flatten().next().ok_or_else(unknown)?;
        let row = self
            .stored_at(minter, pair, anchor.tca)?
            .ok_or_else(unknown)?;
        self.with_near(minter, vec![row])?.pop().ok_or_else(unknown)
    }

    /// The conjunction of an anchor.
    fn stored_at(
        &self,
        minter: &GroupedMinter,
        pair: Pair,
        tca: Tca,
    ) -> Result<Option<StoredConjunction>, ServiceError> {
        // The row of the pair is the first behind the object before it.
        let after = pair
            .secondary
            .checked_sub(1)
            .map(|secondary| (tca, Pair { secondary, ..pair }));
        let format = minter.format_name().to_owned();
        let rows = self.records()?.conjunctions(
            &ListRange {
                format,
                times: tca..=tca,
                after,
                latest_first: false,
            },
            1,
        );
        let rows = rows.map_err(|error| ServiceError::Records(log_unreadable(&error)))?;
        Ok(rows.into_iter().find(|row| row.pair == pair))
    }

    fn with_near(
        &self,
        minter: &GroupedMinter,
        mut found: Vec<StoredConjunction>,
    ) -> Result<Vec<ListedConjunction>, ServiceError> {
        if let Some(keeper) = self.record_keeper() {
            found
                .iter_mut()
                .for_each(|stored| keeper.tallies().complete(minter.format_name(), stored));
        }
        let places: Vec<(Pair, Tca)> = found
            .iter()
            .map(|stored| (stored.pair, stored.anchor.tca))
            .collect();
        let near = near(self.records()?, minter, &places)?;
        let format = minter.format_name();
        let key = |(pair, tca): &(Pair, Tca)| AnchorKey {
            format: format.to_owned(),
            pair: *pair,
            tca: *tca,
        };
        let externals = self
            .records()?
            .externals(&places.iter().map(key).collect::<Vec<_>>());
        let externals = externals.map_err(|error| ServiceError::Records(log_unreadable(&error)))?;
        let listed =
            found
                .into_iter()
                .zip(near)
                .zip(externals)
                .filter_map(|((stored, near), externals)| {
                    let id = minter.id_at(stored.pair, stored.anchor.tca).ok()?;
                    Some(ListedConjunction {
                        id,
                        stored,
                        near,
                        externals,
                    })
                });
        Ok(listed.collect())
    }

    pub(super) fn check_stored(&self) -> Result<(), ServiceError> {
        match self.conjunctions() {
            Conjunctions::Pure => Err(ServiceError::NothingStored),
            Conjunctions::Stored { .. } => Ok(()),
        }
    }
}

/// For each anchor of a pair the ids of the same two objects, in either order, within a minute.
pub(super) fn near(
    records: &dyn RecordStore,
    minter: &GroupedMinter,
    places: &[(Pair, Tca)],
) -> Result<Vec<Vec<u128>>, ServiceError> {
    if places.is_empty() {
        return Ok(Vec::new());
    }
    let both =
        |(pair, tca): &(Pair, Tca)| [(*pair, tca.vicinity()), (pair.swapped(), tca.vicinity())];
    let spans = records.anchors_within(minter.format_name(), &mut places.iter().flat_map(both));
    let spans = spans.map_err(|error| ServiceError::Records(log_unreadable(&error)))?;
    let (of_both, _) = spans.as_chunks::<2>();
    let near = |((pair, tca), [same, swapped]): (&(Pair, Tca), &[Vec<Anchor>; 2])| {
        let same = same
            .iter()
            .filter(|anchor| anchor.tca != *tca)
            .map(|anchor| (*pair, anchor.tca));
        let swapped = swapped.iter().map(|anchor| (pair.swapped(), anchor.tca));
        let mut near: Vec<(Pair, Tca)> = same.chain(swapped).collect();
        near.sort_by_key(|(_, other)| other.since(*tca).abs());
        near.into_iter()
            .filter_map(|(pair, tca)| minter.id_at(pair, tca).ok())
            .collect()
    };
    Ok(places.iter().zip(of_both).map(near).collect())
}
