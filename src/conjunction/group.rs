//! Reports that are grouped: each joins the conjunction it belongs to, or is the first of a new one.

use std::collections::HashMap;
use std::sync::Arc;

use super::anchor::{Anchor, AnchorPlan, Pair, Tca};
use super::minter::GroupedMinter;
use super::report::{Report, ReportError};

/// One report, and the id that it says it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// The report.
    pub report: Report,
    /// The id that is in it already; another one is refused.
    pub expected: Option<u128>,
}

/// What became of one report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grouped {
    /// Its id.
    pub id: u128,
    /// Whether it is the first of its conjunction; `None` where conjunctions are not stored, so nobody knows.
    pub created: Option<bool>,
    /// The time that the id is made of.
    pub anchor: Tca,
    /// From there to the time of the report, in microseconds.
    pub delta_us: i64,
}

/// A report that cannot be grouped. Nothing was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRefusal {
    /// The place of the report, from 0.
    pub index: usize,
    /// Why not.
    pub error: GroupError,
}

/// Why a report cannot be grouped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// It gets no id.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// It names another id than it gets.
    #[error("it names the id {named}, and gets {gets}")]
    OtherId {
        /// The id that it names.
        named: u128,
        /// The id that it gets.
        gets: u128,
    },
}

/// Reports to be grouped, all of them or none.
#[derive(Debug, Clone)]
pub struct GroupOrder {
    minter: Arc<GroupedMinter>,
    sightings: Vec<(Pair, Tca, Sighting)>,
}

/// Anchors that were decided on and are not stored yet.
#[derive(Debug, Default)]
pub struct NewAnchors {
    by_format: HashMap<String, HashMap<Pair, Vec<Anchor>>>,
}

impl NewAnchors {
    fn add(&mut self, plan: &AnchorPlan) {
        let of_format = self.by_format.entry(plan.format.clone()).or_default();
        of_format.entry(plan.pair).or_default().push(plan.anchor);
    }

    /// Those of a pair around that time.
    fn around(&self, format: &str, pair: Pair, tca: Tca) -> impl Iterator<Item = Anchor> {
        let of_pair = self.by_format.get(format).and_then(|pairs| pairs.get(&pair)).into_iter().flatten();
        of_pair.copied().filter(move |anchor| tca.neighbourhood().contains(&anchor.tca))
    }
}

impl GroupOrder {
    /// An order of these reports, each of which can have an id of its own.
    ///
    /// # Errors
    /// [`GroupRefusal`] of the first that cannot.
    pub fn new(minter: Arc<GroupedMinter>, sightings: &[Sighting]) -> Result<GroupOrder, GroupRefusal> {
        let keyed = |(index, sighting): (usize, &Sighting)| match minter.id_of(&sighting.report) {
            Ok(_) => Ok((minter.pair_of(&sighting.report), Tca::of(&sighting.report), *sighting)),
            Err(error) => Err(GroupRefusal { index, error: error.into() }),
        };
        let sightings = sightings.iter().enumerate().map(keyed).collect::<Result<_, _>>()?;
        Ok(GroupOrder { minter, sightings })
    }

    /// The name of the format.
    pub fn format(&self) -> &str {
        self.minter.format_name()
    }

    /// How many reports there are.
    pub fn len(&self) -> usize {
        self.sightings.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sightings.is_empty()
    }

    /// What [`GroupOrder::decide`] has to know the neighbours of, in the same order.
    pub fn keys(&self) -> impl Iterator<Item = (Pair, Tca)> {
        self.sightings.iter().map(|(pair, tca, _)| (*pair, *tca))
    }

    /// What becomes of the reports where conjunctions are not stored: each gets the id of its own time.
    ///
    /// # Errors
    /// [`GroupRefusal`].
    pub fn ungrouped(&self) -> Result<Vec<Grouped>, GroupRefusal> {
        let own = |(index, (_, tca, sighting)): (usize, &(Pair, Tca, Sighting))| {
            self.grouped(index, sighting, *tca, *tca, None)
        };
        self.sightings.iter().enumerate().map(own).collect()
    }

    /// What becomes of the reports if they all join anchors that are stored; `None` if one does not.
    ///
    /// `stored`: for each report the anchors of its pair in the [neighbourhood](Tca::neighbourhood) of its time.
    ///
    /// # Errors
    /// [`GroupRefusal`].
    pub fn known(&self, stored: &[Vec<Anchor>]) -> Result<Option<Vec<Grouped>>, GroupRefusal> {
        let mut known = Vec::with_capacity(self.len());
        for ((index, (_, tca, sighting)), stored) in self.sightings.iter().enumerate().zip(stored) {
            let Some(anchor) = Anchor::joined(*tca, stored) else { return Ok(None) };
            known.push(self.grouped(index, sighting, *tca, anchor.tca, Some(false))?);
        }
        Ok(Some(known))
    }

    /// What becomes of the reports, and the anchors to be stored for that; `new` then holds these as well.
    ///
    /// `stored`: as for [`GroupOrder::known`]. `new`: what was decided since those were read.
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
            let joined = Anchor::joined(*tca, &neighbours);
            let anchor = joined.unwrap_or_else(|| Anchor::created(*tca, &neighbours));
            grouped.push(self.grouped(index, sighting, *tca, anchor.tca, Some(joined.is_none()))?);
            if joined.is_none() {
                let plan = AnchorPlan { format: format.to_owned(), pair: *pair, anchor };
                own.add(&plan);
                plans.push(plan);
            }
        }
        plans.iter().for_each(|plan| new.add(plan));
        Ok((grouped, plans))
    }

    fn grouped(
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
#[path = "group_tests.rs"]
mod tests;
