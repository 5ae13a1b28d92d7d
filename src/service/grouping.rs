//! Reports become ids here, whatever they were written in.

use std::sync::Arc;

use super::service::{Conjunctions, Service};
use crate::conjunction::{GroupRefusal, GroupRequest, Grouped, Sighting};
use crate::http::Problem;
use crate::storage::RecordError;

/// Why reports get no ids; then none of them does.
#[derive(Debug)]
pub(crate) enum Ungrouped {
    /// One of the reports is at fault.
    Report(GroupRefusal),
    /// None of them is.
    Problem(Problem),
}

impl Service {
    /// The ids of reports, in their order. Where conjunctions are stored, anchors of new ones are durable by then.
    ///
    /// `format`: the position of a grouped format in the mint.
    pub(crate) async fn group(&self, format: usize, sightings: &[Sighting]) -> Result<Vec<Grouped>, Ungrouped> {
        let order = GroupRequest::new(Arc::clone(self.mint.grouped(format)), sightings).map_err(Ungrouped::Report)?;
        let outcome = match self.conjunctions {
            Conjunctions::Pure => order.decide_ungrouped().map_err(RecordError::Group),
            Conjunctions::Stored { .. } => {
                let keeper = self.records.get().ok_or_else(|| Ungrouped::Problem(self.not_begun()))?;
                keeper.group(order).await
            }
        };
        let grouped = outcome.map_err(|error| match error {
            RecordError::Group(refusal) => Ungrouped::Report(refusal),
            error => Ungrouped::Problem(Problem::from(error)),
        });
        self.metrics.reported(sightings.len(), &grouped);
        let grouped = grouped?;
        let count = u64::try_from(grouped.len()).expect("a list is shorter than 2^64");
        self.mint.stats(format).count_granted(count, false);
        Ok(grouped)
    }

    /// Why nothing is stored yet.
    pub(crate) fn not_begun(&self) -> Problem {
        match self.mint.tenure() {
            Err(refusal) => Problem::from(refusal),
            Ok(_) => Problem::from(RecordError::Unavailable),
        }
    }
}
