//! The operations that a store supports for conjunctions.

use std::ops::RangeInclusive;

use super::register::{AnchorKey, CountedAnchor, ListRange, StoredConjunction};
use crate::failure::StoreError;
use idmint_records::conjunction::{Anchor, ExternalId, Pair, ReportCount, Tca};

/// A store of anchors, with the report counts and external ids of their conjunctions.
pub trait ConjunctionStore {
    /// Returns one list for each item of `times`, a pair of objects and a time. Each list has the
    /// anchors of its pair that are [near](Tca::neighbourhood) its time, sorted by time.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn neighbours(
        &self,
        format: &str,
        times: &mut dyn Iterator<Item = (Pair, Tca)>,
    ) -> Result<Vec<Vec<Anchor>>, StoreError> {
        self.anchors_within(
            format,
            &mut times.map(|(pair, tca)| (pair, tca.neighbourhood())),
        )
    }

    /// Returns one list for each item of `spans`, a pair of objects and a span of time. Each list
    /// has the anchors of its pair within its span, sorted by time.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn anchors_within(
        &self,
        format: &str,
        spans: &mut dyn Iterator<Item = (Pair, RangeInclusive<Tca>)>,
    ) -> Result<Vec<Vec<Anchor>>, StoreError>;

    /// Returns at most `count_max` conjunctions in `range`, sorted by time in the direction that
    /// `range` requests.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn conjunctions(
        &self,
        range: &ListRange,
        count_max: usize,
    ) -> Result<Vec<StoredConjunction>, StoreError>;

    /// Adds the counts of new reports to the stored counts. `report_counts` names each conjunction
    /// by its anchor. The counts for an anchor that is not stored are dropped.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be written. Some of the counts may already be
    /// stored.
    fn add_reports(&self, report_counts: &[(AnchorKey, ReportCount)]) -> Result<(), StoreError>;

    /// Attaches external ids to stored anchors. An external id is an id that another originator
    /// gave to the anchor's conjunction. The ids are durable when this method returns.
    ///
    /// An external id is dropped if its anchor is not stored, or already has
    /// [`ExternalId::COUNT_MAX`] external ids.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be written. Some of the ids may already be
    /// stored.
    fn add_externals(&self, externals: &[(AnchorKey, ExternalId)]) -> Result<(), StoreError>;

    /// Returns the external ids of each conjunction, in the order in which they were attached.
    /// `anchors` are the first reports of the conjunctions.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn externals(&self, anchors: &[AnchorKey]) -> Result<Vec<Vec<ExternalId>>, StoreError>;

    /// Returns at most `count_max` anchors of a format with the external id `external`, from the
    /// latest to the earliest. Another organization gave this id to the conjunction.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn anchors_of_external(
        &self,
        format: &str,
        external: &ExternalId,
        count_max: usize,
    ) -> Result<Vec<AnchorKey>, StoreError>;

    /// Returns at most `count_max` anchors that follow `after`. The anchors are sorted by format,
    /// and within each format from the latest to the earliest.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn anchors(
        &self,
        after: Option<&AnchorKey>,
        count_max: usize,
    ) -> Result<Vec<CountedAnchor>, StoreError>;

    /// Removes old conjunctions: their first reports, report counts and external ids. Keeps a
    /// conjunction whose report count has changed since the count was read.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be written. Some of the anchors may already be
    /// removed.
    fn forget_anchors(&self, old: &[CountedAnchor]) -> Result<(), StoreError>;
}
