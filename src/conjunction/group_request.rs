//! Groups reports: each joins the conjunction it belongs to, or is the first of a new one.

use std::collections::HashMap;
use std::sync::Arc;

use super::anchor::{Anchor, AnchorPlan, Pair, Tca};
use super::grouped_minter::GroupedMinter;
use super::report::{Report, ReportError};

/// A report, and the id that was sent with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// The report.
    pub report: Report,
    /// The id that came with the report. The report is refused if it gets another one.
    pub expected: Option<u128>,
}

/// The result for one report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grouped {
    /// The id of the report.
    pub id: u128,
    /// Whether it is the first of its conjunction; `None` where conjunctions are not stored, so that is unknown.
    pub created: Option<bool>,
    /// The time from which the id is made.
    pub anchor: Tca,
    /// The distance from there to the time of the report, in microseconds.
    pub delta_us: i64,
}

/// A report that cannot be grouped; then none of the request is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("report {index}: {error}")]
pub struct GroupRefusal {
    /// The index of the report, from 0.
    pub index: usize,
    /// The reason.
    pub error: GroupError,
}

/// Why a report cannot be grouped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// The report gets no id.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// Another id came with the report than it gets.
    #[error("it names the id {named}, and gets {gets}")]
    OtherId {
        /// The id that came with it.
        named: u128,
        /// The id that it gets.
        gets: u128,
    },
}

/// A request to group reports: all of them or none.
#[derive(Debug, Clone)]
pub struct GroupRequest {
    minter: Arc<GroupedMinter>,
    sightings: Vec<(Pair, Tca, Sighting)>,
}

/// Anchors that are planned and not stored yet.
#[derive(Debug, Default)]
pub struct NewAnchors {
    by_format: HashMap<String, HashMap<Pair, Vec<Anchor>>>,
}

impl NewAnchors {
    fn add(&mut self, plan: &AnchorPlan) {
        let of_format = self.by_format.entry(plan.format.clone()).or_default();
        of_format.entry(plan.pair).or_default().push(plan.anchor);
    }

    /// The anchors of a pair in the neighbourhood of that time.
    fn around(&self, format: &str, pair: Pair, tca: Tca) -> impl Iterator<Item = Anchor> {
        let of_pair = self.by_format.get(format).and_then(|pairs| pairs.get(&pair)).into_iter().flatten();
        of_pair.copied().filter(move |anchor| tca.neighbourhood().contains(&anchor.tca))
    }
}

impl GroupRequest {
    /// A request to group these reports.
    ///
    /// # Errors
    /// [`GroupRefusal`] of the first report that can have no id.
    pub fn new(minter: Arc<GroupedMinter>, sightings: &[Sighting]) -> Result<GroupRequest, GroupRefusal> {
        let keyed = |(index, sighting): (usize, &Sighting)| match minter.id_of(&sighting.report) {
            Ok(_) => Ok((minter.pair_of(&sighting.report), Tca::of(&sighting.report), *sighting)),
            Err(error) => Err(GroupRefusal { index, error: error.into() }),
        };
        let sightings = sightings.iter().enumerate().map(keyed).collect::<Result<_, _>>()?;
        Ok(GroupRequest { minter, sightings })
    }

    /// The name of the format.
    pub fn format(&self) -> &str {
        self.minter.format_name()
    }

    /// The number of reports.
    pub fn len(&self) -> usize {
        self.sightings.len()
    }

    /// Whether there are no reports.
    pub fn is_empty(&self) -> bool {
        self.sightings.is_empty()
    }

    /// The pair and the time of each report: what its neighbours are looked up by.
    pub fn keys(&self) -> impl Iterator<Item = (Pair, Tca)> {
        self.sightings.iter().map(|(pair, tca, _)| (*pair, *tca))
    }

    /// Gives each report the id of its own time: the decision where conjunctions are not stored.
    ///
    /// # Errors
    /// [`GroupRefusal`].
    pub fn decide_ungrouped(&self) -> Result<Vec<Grouped>, GroupRefusal> {
        let own = |(index, (_, tca, sighting)): (usize, &(Pair, Tca, Sighting))| {
            self.group(index, sighting, *tca, *tca, None)
        };
        self.sightings.iter().enumerate().map(own).collect()
    }

    /// Joins the reports to stored anchors; `None` if one of them joins none.
    ///
    /// `stored`: for each report the anchors of its pair in the [neighbourhood](Tca::neighbourhood) of its time.
    ///
    /// # Errors
    /// [`GroupRefusal`].
    pub fn join_stored(&self, stored: &[Vec<Anchor>]) -> Result<Option<Vec<Grouped>>, GroupRefusal> {
        let mut joined = Vec::with_capacity(self.len());
        for ((index, (_, tca, sighting)), stored) in self.sightings.iter().enumerate().zip(stored) {
            let Some(anchor) = Anchor::find(*tca, stored) else { return Ok(None) };
            joined.push(self.group(index, sighting, *tca, anchor.tca, Some(false))?);
        }
        Ok(Some(joined))
    }

    /// Joins the reports to anchors, and plans new anchors for those that join none. Adds these to `new`.
    ///
    /// `stored`: as for [`GroupRequest::join_stored`]. `new`: the anchors planned since those were read.
    ///
    /// # Errors
    /// [`GroupRefusal`]; `new` is then unchanged.
    pub fn decide(
        &self,
        stored: &[Vec<Anchor>],
        new: &mut NewAnchors,
    ) -> Result<(Vec<Grouped>, Vec<AnchorPlan>), GroupRefusal> {
        let format = self.format();
        let mut own = NewAnchors::default();
        let (mut grouped, mut plans) = (Vec::with_capacity(self.len()), Vec::new());
        for ((index, (pair, tca, sighting)), stored) in self.sightings.iter().enumerate().zip(stored) {
            let mut neighbours = stored.clone();
            neighbours.extend(new.around(format, *pair, *tca));
            neighbours.extend(own.around(format, *pair, *tca));
            let joined = Anchor::find(*tca, &neighbours);
            let anchor = joined.unwrap_or_else(|| Anchor::create(*tca, &neighbours));
            grouped.push(self.group(index, sighting, *tca, anchor.tca, Some(joined.is_none()))?);
            if joined.is_none() {
                let plan = AnchorPlan { format: format.to_owned(), pair: *pair, anchor };
                own.add(&plan);
                plans.push(plan);
            }
        }
        plans.iter().for_each(|plan| new.add(plan));
        Ok((grouped, plans))
    }

    fn group(
        &self,
        index: usize,
        sighting: &Sighting,
        tca: Tca,
        anchor: Tca,
        created: Option<bool>,
    ) -> Result<Grouped, GroupRefusal> {
        let refuse = |error| GroupRefusal { index, error };
        let anchored = sighting.report.at(anchor.into());
        let id = self.minter.id_of(&anchored).map_err(|error| refuse(error.into()))?;
        match sighting.expected {
            Some(named) if named != id => Err(refuse(GroupError::OtherId { named, gets: id })),
            _ => Ok(Grouped { id, created, anchor, delta_us: tca.since(anchor) }),
        }
    }
}

#[cfg(test)]
#[path = "group_request_tests.rs"]
mod tests;
