//! Reports become ids here, whatever they were written in.

use std::sync::Arc;

use super::error::{GroupFailure, ServiceError};
use super::service::{Conjunctions, Service};
use crate::conjunction::{GroupRequest, Grouped, GroupedMinter, Sighting};
use crate::service::formats::ServedFormat;
use crate::storage::RecordError;

impl Service {
    /// The ids of reports, in their order, made by this minter of a format. Where conjunctions are stored, anchors of new
    /// ones are durable by then.
    ///
    /// # Errors
    /// [`GroupFailure`]: no report got an id.
    pub async fn group(
        &self,
        served: &ServedFormat,
        minter: &Arc<GroupedMinter>,
        sightings: &[Sighting],
    ) -> Result<Vec<Grouped>, GroupFailure> {
        let request = GroupRequest::new(Arc::clone(minter), sightings).map_err(GroupFailure::Report)?;
        let outcome = match self.conjunctions() {
            Conjunctions::Pure => request.decide_ungrouped().map_err(RecordError::Group),
            Conjunctions::Stored { .. } => match self.keepers() {
                Some(keepers) => keepers.records.group(request).await,
                None => return Err(GroupFailure::Service(self.not_begun())),
            },
        };
        let grouped = outcome.map_err(|error| match error {
            RecordError::Group(refusal) => GroupFailure::Report(refusal),
            error => GroupFailure::Service(ServiceError::Records(error)),
        });
        self.counters().count_reports(sightings.len(), &grouped);
        let grouped = grouped?;
        let count = u64::try_from(grouped.len()).expect("a list is shorter than 2^64");
        served.counters().count_granted(count, false);
        Ok(grouped)
    }
}
