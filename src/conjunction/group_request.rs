//! Groups reports: each joins the conjunction it belongs to, or is the first of a new one.

use std::collections::HashMap;
use std::sync::Arc;

use super::anchor::{Anchor, AnchorPlan, Pair, Tca};
use super::grouped_minter::GroupedMinter;
use super::report::ReportError;
use super::sent_report::{NotedRule, SentReport};

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
    /// Whether the report came with another id; `None` if it came without one.
    pub noted_differs: Option<bool>,
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
    /// The id that came with the report is not of its two objects.
    #[error("it names the id {named}, which is of other objects")]
    OtherObjects {
        /// The id that came with it.
        named: u128,
    },
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
    noted_rule: NotedRule,
    reports: Vec<Keyed>,
}

/// A report with what anchors are looked up by.
#[derive(Debug, Clone, Copy)]
struct Keyed {
    sent_report: SentReport,
    pair: Pair,
    tca: Tca,
    noted: Option<NotedAnchor>,
}

/// The anchor that the id has which came with a report.
#[derive(Debug, Clone, Copy)]
struct NotedAnchor {
    id: u128,
    /// The first and the last time that it can have.
    first: Tca,
    last: Tca,
    /// Of these times the nearest to the report.
    nearest: Tca,
}

impl NotedAnchor {
    fn find(&self, anchors: &[Anchor]) -> Option<Anchor> {
        anchors
            .iter()
            .copied()
            .find(|anchor| (self.first..=self.last).contains(&anchor.tca))
    }
}

impl Keyed {
    fn new(minter: &GroupedMinter, sent_report: &SentReport) -> Result<Keyed, GroupError> {
        let report = &sent_report.report;
        minter.id_of(report)?;
        let tca = Tca::of(report);
        let noted = sent_report.noted.map(|id| {
            let (first, last) = minter
                .anchors_of(id, report)
                .ok_or(GroupError::OtherObjects { named: id })?
                .into_inner();
            Ok::<_, GroupError>(NotedAnchor {
                id,
                first,
                last,
                nearest: tca.clamp(first, last),
            })
        });
        Ok(Keyed {
            sent_report: *sent_report,
            pair: minter.pair_of(report),
            tca,
            noted: noted.transpose()?,
        })
    }

    /// The times around which its anchors are looked up.
    fn times(&self) -> impl Iterator<Item = Tca> {
        std::iter::once(self.tca).chain(self.noted.map(|noted| noted.nearest))
    }
}

/// What is decided for one report.
enum Choice {
    /// It joins an anchor.
    Joined(Anchor),
    /// It becomes an anchor itself.
    Own,
    /// The id that it came with gets an anchor at that time.
    Adopted(NotedAnchor),
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
        let of_pair = self
            .by_format
            .get(format)
            .and_then(|pairs| pairs.get(&pair))
            .into_iter()
            .flatten();
        of_pair
            .copied()
            .filter(move |anchor| tca.neighbourhood().contains(&anchor.tca))
    }
}

impl GroupRequest {
    /// A request to group these reports.
    ///
    /// # Errors
    /// [`GroupRefusal`] of the first report that can have no id, or came with an id of other objects.
    pub fn new(
        minter: Arc<GroupedMinter>,
        sent_reports: &[SentReport],
    ) -> Result<GroupRequest, GroupRefusal> {
        let keyed = |(index, sent_report): (usize, &SentReport)| {
            Keyed::new(&minter, sent_report).map_err(|error| GroupRefusal { index, error })
        };
        let reports = sent_reports
            .iter()
            .enumerate()
            .map(keyed)
            .collect::<Result<_, _>>()?;
        Ok(GroupRequest {
            minter,
            noted_rule: NotedRule::default(),
            reports,
        })
    }

    /// Whether a report can be grouped.
    ///
    /// # Errors
    /// [`GroupError`]: a request with it would be refused.
    pub fn check(minter: &GroupedMinter, sent_report: &SentReport) -> Result<(), GroupError> {
        Keyed::new(minter, sent_report).map(|_| ())
    }

    /// The same request with another rule for the ids that came with reports.
    #[must_use]
    pub fn with_noted_rule(self, noted_rule: NotedRule) -> GroupRequest {
        GroupRequest { noted_rule, ..self }
    }

    /// The name of the format.
    pub fn format(&self) -> &str {
        self.minter.format_name()
    }

    /// The number of reports.
    pub fn len(&self) -> usize {
        self.reports.len()
    }

    /// Whether there are no reports.
    pub fn is_empty(&self) -> bool {
        self.reports.is_empty()
    }

    /// The pair and the time of each report.
    pub fn reports(&self) -> impl Iterator<Item = (Pair, Tca)> {
        self.reports.iter().map(|report| (report.pair, report.tca))
    }

    /// What anchors are looked up by: the pair and the time of each report, followed by the time of the id that came with
    /// it, if one did.
    pub fn keys(&self) -> impl Iterator<Item = (Pair, Tca)> {
        self.reports
            .iter()
            .flat_map(|report| report.times().map(|tca| (report.pair, tca)))
    }

    /// Decides where conjunctions are not stored: each report gets the id of its own time, or the one it came with.
    ///
    /// # Errors
    /// [`GroupRefusal`].
    pub fn decide_ungrouped(&self) -> Result<Vec<Grouped>, GroupRefusal> {
        let own = |(index, report): (usize, &Keyed)| {
            let anchor = match self.choose(report, &[]) {
                Choice::Adopted(noted) => noted.nearest,
                Choice::Joined(_) | Choice::Own => report.tca,
            };
            self.group(index, report, anchor, None)
        };
        self.reports.iter().enumerate().map(own).collect()
    }

    /// Joins the reports to stored anchors; `None` if one of them joins none.
    ///
    /// `stored`: for each of the [keys](GroupRequest::keys) the anchors of the pair in the
    /// [neighbourhood](Tca::neighbourhood) of the time.
    ///
    /// # Errors
    /// [`GroupRefusal`].
    pub fn join_stored(
        &self,
        stored: &[Vec<Anchor>],
    ) -> Result<Option<Vec<Grouped>>, GroupRefusal> {
        let mut joined = Vec::with_capacity(self.len());
        for (index, (report, stored)) in self.with_stored(stored).enumerate() {
            let Choice::Joined(anchor) = self.choose(report, &stored.concat()) else {
                return Ok(None);
            };
            joined.push(self.group(index, report, anchor.tca, Some(false))?);
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
        for (index, (report, stored)) in self.with_stored(stored).enumerate() {
            let mut anchors = stored.concat();
            for tca in report.times() {
                anchors.extend(new.around(format, report.pair, tca));
                anchors.extend(own.around(format, report.pair, tca));
            }
            let (tca, free) = match self.choose(report, &anchors) {
                Choice::Joined(anchor) => {
                    grouped.push(self.group(index, report, anchor.tca, Some(false))?);
                    continue;
                }
                Choice::Own => (report.tca, vec![report.tca.reach()]),
                Choice::Adopted(noted) => {
                    // Of a tick that is longer only what was looked at.
                    let (from, to) = noted.nearest.neighbourhood().into_inner();
                    let tick = noted.first.max(from)..=noted.last.min(to);
                    // Who keeps an id keeps it beside an anchor within reach, too.
                    let reach = (!self.noted_rule.keep).then(|| report.tca.reach());
                    (noted.nearest, reach.into_iter().chain([tick]).collect())
                }
            };
            grouped.push(self.group(index, report, tca, Some(true))?);
            let around = tca.neighbourhood();
            anchors.retain(|anchor| around.contains(&anchor.tca));
            let anchor = Anchor::create(tca, &anchors);
            let plan = AnchorPlan {
                format: format.to_owned(),
                pair: report.pair,
                anchor,
                free,
            };
            own.add(&plan);
            plans.push(plan);
        }
        plans.iter().for_each(|plan| new.add(plan));
        Ok((grouped, plans))
    }

    /// Each report with what is stored around its times.
    fn with_stored<'a>(
        &'a self,
        stored: &'a [Vec<Anchor>],
    ) -> impl Iterator<Item = (&'a Keyed, &'a [Vec<Anchor>])> {
        let mut rest = stored;
        self.reports.iter().map(move |report| {
            let (own, others) = rest.split_at(report.times().count());
            rest = others;
            (report, own)
        })
    }

    /// `anchors`: those of the pair around the times of the report, in any order.
    ///
    /// Anchors that are created later change nothing of it: within two seconds of another one they have greater ranks, and
    /// the anchor of an id that was adopted is there from then on.
    fn choose(&self, report: &Keyed, anchors: &[Anchor]) -> Choice {
        let known = report.noted.and_then(|noted| noted.find(anchors));
        if let Some(noted) = report.noted.filter(|_| self.noted_rule.keep) {
            return known.map_or(Choice::Adopted(noted), Choice::Joined);
        }
        if let Some(oldest) = Anchor::find(report.tca, anchors) {
            return Choice::Joined(oldest);
        }
        let is_adopted =
            |noted: &NotedAnchor| known.is_none() && report.tca.is_within_reach_of(noted.nearest);
        report
            .noted
            .filter(is_adopted)
            .map_or(Choice::Own, Choice::Adopted)
    }

    fn group(
        &self,
        index: usize,
        report: &Keyed,
        anchor: Tca,
        created: Option<bool>,
    ) -> Result<Grouped, GroupRefusal> {
        let refuse = |error| GroupRefusal { index, error };
        let anchored = report.sent_report.report.at(anchor.into());
        let id = self
            .minter
            .id_of(&anchored)
            .map_err(|error| refuse(error.into()))?;
        let noted_differs = report.noted.map(|noted| noted.id != id);
        match report.noted {
            Some(noted) if noted.id != id && self.noted_rule.must_agree => {
                Err(refuse(GroupError::OtherId {
                    named: noted.id,
                    gets: id,
                }))
            }
            _ => Ok(Grouped {
                id,
                created,
                anchor,
                delta_us: report.tca.since(anchor),
                noted_differs,
            }),
        }
    }
}

#[cfg(test)]
#[path = "group_request_tests.rs"]
mod tests;
