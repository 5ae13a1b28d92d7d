//! Conjunctions are close approaches of two objects in space. This module assigns ids to the
//! reports about conjunctions, and lists the stored conjunctions by time.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{GroupFailure, ServiceError};
use crate::formats::ServedFormat;
use crate::ledgers::{page, unavailable};
use crate::service::{Conjunctions, Service};
use idmint_records::conjunction::{
    Anchor, ExternalId, GroupRequest, Grouped, GroupedMinter, Pair, SentReport, Tca,
};
use idmint_storage::{
    AnchorKey, ListPlace, ListRange, RecordError, RecordStore, RecordWriterHandle, StoreError,
    StoredConjunction,
};

/// The maximum number of near conjunctions in the response to a report. Near conjunctions are close
/// approaches of the same two objects, at most a minute apart. A list of all of them could be
/// hundreds of times as long as the report.
pub const NEAR_MAX: usize = 10;

/// The number of conjunctions whose near conjunctions are looked up in one batch. Batches limit the
/// memory, because a lookup can read many more near conjunctions than the response lists.
const NEAR_STEP_LEN: usize = 1_000;

/// The ids assigned to the reports of a request.
#[derive(Debug)]
pub struct GroupedReports {
    /// The result for each report, in the same order as the reports.
    pub grouped: Vec<Grouped>,
    /// The ids of other conjunctions near each created conjunction, at most [`NEAR_MAX`] of them.
    /// Two conjunctions are near each other if they have the same two objects, in either order, and
    /// their times differ by at most a minute. The key is the index of the report that created the
    /// conjunction.
    pub near: HashMap<usize, Vec<u128>>,
    /// For each analysis that did not join the conjunction nearest in time, the id of the nearest
    /// one. An analysis is a report that joined the conjunction in its `event_id`, even if another
    /// conjunction of its two objects is nearer. The key is the index of the analysis in the
    /// request.
    pub nearer: HashMap<usize, u128>,
}

impl Service {
    /// Assigns an id to each report of a request, in order. `sent_reports` must be the reports from
    /// which `request` was made with `minter`. If `are_analyses` is `true`, also looks up
    /// conjunctions that are nearer in time than the joined ones.
    ///
    /// If conjunctions are stored, the anchors of new conjunctions are durable when this method
    /// returns. `externals` contains ids that other organizations gave to the conjunctions, each
    /// with the index of its report. These external ids are then durable, too.
    ///
    /// # Errors
    /// Returns [`GroupFailure`] if no report got an id, if the outcome is unknown, or if the
    /// external ids were possibly not stored.
    pub async fn group(
        &self,
        served: &ServedFormat,
        minter: &Arc<GroupedMinter>,
        request: GroupRequest,
        sent_reports: &[SentReport],
        externals: &[(usize, ExternalId)],
        are_analyses: bool,
    ) -> Result<GroupedReports, GroupFailure> {
        let outcome = match self.conjunctions() {
            Conjunctions::Pure => request.decide_ungrouped().map_err(RecordError::Group),
            Conjunctions::Stored { .. } => match self.record_writer_handle() {
                Some(writer) => writer.group(request).await,
                None => return Err(GroupFailure::Service(self.not_begun())),
            },
        };
        let grouped = outcome.map_err(|error| match error {
            RecordError::Group(refusal) => GroupFailure::Report(refusal),
            error => GroupFailure::Service(ServiceError::Records(error)),
        });
        self.counters().count_reports(sent_reports.len(), &grouped);
        let grouped = grouped?;
        if let Some(writer) = self
            .record_writer_handle()
            .filter(|_| !externals.is_empty() && self.check_stored().is_ok())
        {
            let external = |(at, external): &(usize, ExternalId)| {
                let format = minter.format_name().to_owned();
                let pair = minter.pair_of(&sent_reports[*at].report);
                (
                    AnchorKey {
                        format,
                        pair,
                        tca: grouped[*at].anchor,
                    },
                    external.clone(),
                )
            };
            let kept = writer
                .add_externals(externals.iter().map(external).collect())
                .await;
            kept.map_err(|error| GroupFailure::Service(ServiceError::Records(error)))?;
        }
        let count = u64::try_from(grouped.len()).expect("a list is shorter than 2^64");
        served.counters().count_granted(count, false);
        let near = self.near_created(minter, sent_reports, &grouped).await;
        self.counters().count_near(near.len());
        let nearer = match are_analyses {
            false => HashMap::new(),
            true => self.nearer_than_named(minter, sent_reports, &grouped).await,
        };
        Ok(GroupedReports {
            grouped,
            near,
            nearer,
        })
    }

    /// Returns, for each analysis, the id of the conjunction that is nearest in time. An analysis
    /// is a report that joined the conjunction in its `event_id`. The map has no entry for an
    /// analysis if no other conjunction is nearer. If this lookup fails, the error is ignored,
    /// because the analyses already have their ids.
    async fn nearer_than_named(
        &self,
        minter: &Arc<GroupedMinter>,
        sent_reports: &[SentReport],
        grouped: &[Grouped],
    ) -> HashMap<usize, u128> {
        let joined: Vec<(usize, Pair, Tca, u64)> = grouped
            .iter()
            .enumerate()
            .filter(|(_, grouped)| grouped.created == Some(false))
            .filter(|(_, grouped)| grouped.noted_differs == Some(false))
            // Skip a report at exactly the time of the conjunction that it joined, because no other
            // conjunction can be nearer to the report.
            .filter(|(_, grouped)| grouped.delta_us != 0)
            .map(|(at, grouped)| {
                let report = &sent_reports[at].report;
                let distance = grouped.delta_us.unsigned_abs();
                (at, minter.pair_of(report), Tca::of(report), distance)
            })
            .collect();
        let Some(writer) = self.record_writer_handle().filter(|_| !joined.is_empty()) else {
            return HashMap::new();
        };
        let (minter, count) = (Arc::clone(minter), joined.len());
        let look_up = move |records: &dyn RecordStore| -> Result<HashMap<usize, u128>, StoreError> {
            let within = |(_, pair, tca, distance): &(usize, Pair, Tca, u64)| {
                (*pair, tca.within(distance.saturating_sub(1)))
            };
            let mut spans = joined.iter().map(within);
            let anchors = records.anchors_within(minter.format_name(), &mut spans)?;
            let nearest =
                |((at, pair, tca, _), anchors): (&(usize, Pair, Tca, u64), Vec<Anchor>)| {
                    let nearest = anchors
                        .into_iter()
                        .min_by_key(|anchor| tca.since(anchor.tca).unsigned_abs())?;
                    Some((*at, minter.id_at(*pair, nearest.tca).ok()?))
                };
            Ok(joined.iter().zip(anchors).filter_map(nearest).collect())
        };
        writer.read_aside(count, look_up).await.unwrap_or_default()
    }

    /// Returns, for each newly created conjunction, the nearest other conjunctions of the same two
    /// objects within a minute. The result becomes [`GroupedReports::near`]. If this lookup fails,
    /// the error is ignored, because the reports already have their ids.
    async fn near_created(
        &self,
        minter: &Arc<GroupedMinter>,
        sent_reports: &[SentReport],
        grouped: &[Grouped],
    ) -> HashMap<usize, Vec<u128>> {
        let is_created = |(_, grouped): &(usize, &Grouped)| grouped.created == Some(true);
        let created: Vec<(usize, (Pair, Tca))> = grouped
            .iter()
            .enumerate()
            .filter(is_created)
            .map(|(at, grouped)| {
                (
                    at,
                    (minter.pair_of(&sent_reports[at].report), grouped.anchor),
                )
            })
            .collect();
        let places: Vec<(Pair, Tca)> = created.iter().map(|(_, place)| *place).collect();
        let Some(writer) = self.record_writer_handle().filter(|_| !places.is_empty()) else {
            return HashMap::new();
        };
        let minter = Arc::clone(minter);
        let near = writer
            .read_aside(places.len(), move |records| {
                near(records, &minter, &places, NEAR_MAX)
            })
            .await
            .unwrap_or_default();
        let found = created.into_iter().map(|(at, _)| at).zip(near);
        found.filter(|(_, near)| !near.is_empty()).collect()
    }
}

/// The maximum number of conjunctions that a search for one external id considers. An external id
/// comes from another organization.
const OF_EXTERNAL_MAX: usize = 1_000;

/// The maximum number of database rows that one request for a list of conjunctions reads. Reading
/// this many rows takes some hundredths of a second.
const LOOKED_THROUGH_MAX: usize = 50_000;

/// The number of database rows that are read in one batch.
const STEP_LEN: usize = 2_000;

/// A query that selects the conjunctions to list.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListQuery {
    /// The earliest time of the conjunctions to list. If a time is given, the list is in ascending
    /// order of time. If `None`, the latest conjunctions come first.
    pub from: Option<Tca>,
    /// The end of the time range, exclusive, or `None` for no end.
    pub to: Option<Tca>,
    /// The primary object of the conjunctions to list, or `None` to list conjunctions of all
    /// primary objects.
    pub primary: Option<u64>,
    /// The catalogue number of the secondary object of the conjunctions to list, or `None` to list
    /// conjunctions of all secondary objects.
    pub secondary: Option<u64>,
    /// The cursor: the position after which the list continues. `None` starts the list at its
    /// beginning.
    pub after: Option<ListPlace>,
    /// The maximum number of conjunctions in the list.
    pub limit: usize,
}

/// A conjunction and its id.
#[derive(Debug, Clone)]
pub struct ListedConjunction {
    /// The id of the conjunction.
    pub id: u128,
    /// The stored conjunction.
    pub stored: StoredConjunction,
    /// The ids of other conjunctions of the same two objects, in either order, whose times are
    /// within a minute of this conjunction's time.
    pub near: Vec<u128>,
    /// The conjunction's ids from other organizations, in the order in which they were attached.
    pub externals: Vec<ExternalId>,
}

/// A page of conjunctions.
#[derive(Debug)]
pub struct ConjunctionList {
    /// The conjunctions, in the order that the query requests.
    pub items: Vec<ListedConjunction>,
    /// The id to pass as the cursor for the next page, or `None` if the list ends with this page.
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
    /// Returns the conjunctions that match a query, with ids in the format of `minter`. Blocks
    /// while report counts are being written, so that no report is counted twice or missed.
    ///
    /// # Errors
    /// Returns [`ServiceError::NothingStored`] if this service stores no conjunctions, and other
    /// errors if the records cannot be read.
    pub fn conjunctions_listed(
        &self,
        minter: &GroupedMinter,
        query: &ListQuery,
    ) -> Result<ConjunctionList, ServiceError> {
        self.between_writes(|| self.read_list(minter, query))
    }

    fn read_list(
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
            let rows = rows.map_err(unavailable)?;
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

    /// Returns the conjunctions that match a query and have this external id, which another
    /// organization gave to them. The latest conjunction comes first. This method blocks while
    /// counts of reports are being written.
    ///
    /// Only the latest 1 000 conjunctions with this external id are considered.
    ///
    /// # Errors
    /// Returns [`ServiceError::NothingStored`] if this service stores no conjunctions, and other
    /// errors if the records cannot be read.
    pub fn conjunctions_of_external(
        &self,
        minter: &GroupedMinter,
        external: &ExternalId,
        query: &ListQuery,
    ) -> Result<ConjunctionList, ServiceError> {
        self.between_writes(|| {
            self.check_stored()?;
            let records = self.records()?;
            let anchors = records
                .anchors_of_external(minter.format_name(), external, OF_EXTERNAL_MAX)
                .map_err(unavailable)?;
            let times = query.from.unwrap_or(Tca(i64::MIN))..query.to.unwrap_or(Tca(i64::MAX));
            let is_asked = |anchor: &AnchorKey| {
                times.contains(&anchor.tca)
                    && query.matches(anchor.pair)
                    && query
                        .after
                        .is_none_or(|after| (anchor.tca, anchor.pair) < after)
            };
            let asked = anchors.into_iter().filter(is_asked).collect();
            let page = page(asked, query.limit);
            let mut found = Vec::new();
            for AnchorKey { pair, tca, .. } in &page.items {
                // A conjunction may have been removed after its external id was looked up. It is
                // then no longer stored, and the list leaves it out.
                found.extend(self.stored_at(minter, *pair, *tca)?);
            }
            let last = page.items.last().filter(|_| page.has_more);
            Ok(ConjunctionList {
                items: self.with_near(minter, found)?,
                next: last.and_then(|last| minter.id_at(last.pair, last.tca).ok()),
            })
        })
    }

    /// Returns the conjunction with this id. This method blocks while counts of reports are being
    /// written, because it could otherwise count a report twice or not at all.
    ///
    /// # Errors
    /// Returns [`ServiceError::UnknownConjunction`] if no stored conjunction has this id, and other
    /// errors if this service stores no conjunctions or they cannot be read.
    pub fn conjunction(
        &self,
        minter: &GroupedMinter,
        id: u128,
    ) -> Result<ListedConjunction, ServiceError> {
        self.between_writes(|| {
            self.check_stored()?;
            let unknown = || ServiceError::UnknownConjunction;
            let (pair, times) = minter.event_of(id).ok_or_else(unknown)?;
            let spans = self
                .records()?
                .anchors_within(minter.format_name(), &mut std::iter::once((pair, times)));
            let spans = spans.map_err(unavailable)?;
            let anchor = spans.into_iter().flatten().next().ok_or_else(unknown)?;
            let row = self
                .stored_at(minter, pair, anchor.tca)?
                .ok_or_else(unknown)?;
            self.with_near(minter, vec![row])?.pop().ok_or_else(unknown)
        })
    }

    /// Returns the stored conjunction of this pair of objects whose anchor has the time `tca`.
    /// Returns `None` if no such conjunction is stored.
    fn stored_at(
        &self,
        minter: &GroupedMinter,
        pair: Pair,
        tca: Tca,
    ) -> Result<Option<StoredConjunction>, ServiceError> {
        // A list begins after its cursor. So put the cursor just before the requested conjunction:
        // same time and primary object, and the number of the secondary object minus one.
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
        let rows = rows.map_err(unavailable)?;
        Ok(rows.into_iter().find(|row| row.pair == pair))
    }

    /// Waits until no report counts are being written, but at most two seconds. A read of
    /// conjunctions that begins afterwards rarely has to block.
    pub async fn wait_for_report_counts(self: &Arc<Self>) {
        let is_writing = |writer: &RecordWriterHandle| writer.report_counts().is_writing();
        if self.record_writer_handle().is_some_and(is_writing) {
            self.read_aside(|service| service.between_writes(|| ()))
                .await;
        }
    }

    fn between_writes<T>(&self, mut read: impl FnMut() -> T) -> T {
        match self.record_writer_handle() {
            Some(writer) => writer.report_counts().read_between_writes(read),
            None => read(),
        }
    }

    fn with_near(
        &self,
        minter: &GroupedMinter,
        mut found: Vec<StoredConjunction>,
    ) -> Result<Vec<ListedConjunction>, ServiceError> {
        if let Some(writer) = self.record_writer_handle() {
            found.iter_mut().for_each(|stored| {
                writer
                    .report_counts()
                    .complete(minter.format_name(), stored)
            });
        }
        let places: Vec<(Pair, Tca)> = found
            .iter()
            .map(|stored| (stored.pair, stored.anchor.tca))
            .collect();
        let near = near(self.records()?, minter, &places, usize::MAX)?;
        let format = minter.format_name();
        let key = |(pair, tca): &(Pair, Tca)| AnchorKey {
            format: format.to_owned(),
            pair: *pair,
            tca: *tca,
        };
        let externals = self
            .records()?
            .externals(&places.iter().map(key).collect::<Vec<_>>());
        let externals = externals.map_err(unavailable)?;
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

    fn check_stored(&self) -> Result<(), ServiceError> {
        match self.conjunctions() {
            Conjunctions::Pure => Err(ServiceError::NothingStored),
            Conjunctions::Stored { .. } => Ok(()),
        }
    }
}

/// Returns a list of ids for each pair of objects and time in `places`. The list has the ids of
/// other conjunctions of the same two objects, in either order, within a minute of that time. The
/// nearest conjunction comes first. A list has at most `count_max` ids.
fn near(
    records: &dyn RecordStore,
    minter: &GroupedMinter,
    places: &[(Pair, Tca)],
    count_max: usize,
) -> Result<Vec<Vec<u128>>, ServiceError> {
    let both =
        |(pair, tca): &(Pair, Tca)| [(*pair, tca.vicinity()), (pair.swapped(), tca.vicinity())];
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
            .take(count_max)
            .collect::<Vec<u128>>()
    };
    let mut all = Vec::with_capacity(places.len());
    for some in places.chunks(NEAR_STEP_LEN) {
        let spans = records.anchors_within(minter.format_name(), &mut some.iter().flat_map(both));
        let spans = spans.map_err(unavailable)?;
        let (of_both, _) = spans.as_chunks::<2>();
        all.extend(some.iter().zip(of_both).map(near));
    }
    Ok(all)
}
