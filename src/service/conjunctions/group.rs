//! Reports become ids here, whatever they were written in.

use std::collections::HashMap;
use std::sync::Arc;

use super::register::near;
use crate::conjunction::{
    ExternalId, GroupRequest, Grouped, GroupedMinter, NotedRule, Pair, SentReport, Tca,
};
use crate::service::error::{GroupFailure, ServiceError};
use crate::service::formats::ServedFormat;
use crate::service::service::{Conjunctions, Service};
use crate::storage::{AnchorKey, RecordError};

/// The results for the reports of a request.
#[derive(Debug)]
pub struct GroupedReports {
    /// The result for each report, in their order.
    pub grouped: Vec<Grouped>,
    /// The ids of the same two objects, in either order, within a minute: by the position of the report that created an id
    /// beside them.
    pub near: HashMap<usize, Vec<u128>>,
}

impl Service {
    /// The ids of reports, in their order, made by this minter of a format. Where conjunctions are stored, anchors of new
    /// ones are durable by then, and so are the ids of other originators that came with reports: `externals`, by the places of
    /// their reports.
    ///
    /// # Errors
    /// [`GroupFailure`]: no report got an id.
    pub async fn group(
        &self,
        served: &ServedFormat,
        minter: &Arc<GroupedMinter>,
        sent_reports: &[SentReport],
        externals: &[(usize, ExternalId)],
        noted_rule: NotedRule,
    ) -> Result<GroupedReports, GroupFailure> {
        let request =
            GroupRequest::new(Arc::clone(minter), sent_reports).map_err(GroupFailure::Report)?;
        let request = request.with_noted_rule(noted_rule);
        let outcome = match self.conjunctions() {
            Conjunctions::Pure => request.decide_ungrouped().map_err(RecordError::Group),
            Conjunctions::Stored { .. } => match self.record_keeper() {
                Some(keeper) => keeper.group(request).await,
                None => return Err(GroupFailure::Service(self.not_begun())),
            },
        };
        let grouped = outcome.map_err(|error| match error {
            RecordError::Group(refusal) => GroupFailure::Report(refusal),
            error => GroupFailure::Service(ServiceError::Records(error)),
        });
        self.counters().count_reports(sent_reports.len(), &grouped);
        let grouped = grouped?;
        if let Some(keeper) = self
            .record_keeper()
            .filter(|_| !externals.is_empty() && self.check_stored().is_ok())
        {
            let external = |(at, external): &(usize, ExternalId)| {
                let (format, pair) = (
                    minter.format_name().to_owned(),
                    minter.pair_of(&sent_reports[*at].report),
                );
                (
                    AnchorKey {
                        format,
                        pair,
                        tca: grouped[*at].anchor,
                    },
                    external.clone(),
                )
            };
            let kept = keeper
                .add_externals(externals.iter().map(external).collect())
                .await;
            kept.map_err(|error| GroupFailure::Service(ServiceError::Records(error)))?;
        }
        let count = u64::try_from(grouped.len()).expect("a list is shorter than 2^64");
        served.counters().count_granted(count, false);
        let near = self.near_created(minter, sent_reports, &grouped).await;
        self.counters().count_near(near.len());
        Ok(GroupedReports { grouped, near })
    }

    /// What stands near the ids that were created. A store that cannot say so any more has answered all the same.
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
        let Some(keeper) = self.record_keeper().filter(|_| !places.is_empty()) else {
            return HashMap::new();
        };
        let minter = Arc::clone(minter);
        let near = keeper
            .read_aside(move |records| near(records, &minter, &places))
            .await
            .unwrap_or_default();
        let found = created.into_iter().map(|(at, _)| at).zip(near);
        found.filter(|(_, near)| !near.is_empty()).collect()
    }
}
