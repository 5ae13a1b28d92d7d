//! Groups reports by conjunction. Each report joins a stored conjunction or begins a new one.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use super::anchor::{Anchor, AnchorPlan, Pair, Tca};
use super::grouped_minter::GroupedMinter;
use super::report::ReportError;
use super::sent_report::{NotedRule, SentReport};

/// The result of assigning one report to a conjunction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grouped {
    /// The id that the report gets.
    pub id: u128,
    /// `true` if the report is the first report of its conjunction. `None` if this is unknown,
    /// because conjunctions are not stored.
    pub created: Option<bool>,
    /// The time of the conjunction's anchor. The id is made from this time and the two objects.
    pub anchor: Tca,
    /// The time from the anchor of the conjunction to this report, in microseconds. The value is
    /// negative if the time in this report is before the anchor.
    pub delta_us: i64,
    /// `true` if the id differs from the id that the sender attached to the report. `None` if the
    /// report has no attached id.
    pub noted_differs: Option<bool>,
}

/// The error for a report that cannot be assigned to a conjunction. It refuses the whole request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("report {index}: {error}")]
pub struct GroupRefusal {
    /// The index of the report in the request, from 0.
    pub index: usize,
    /// The reason why the report cannot be assigned to a conjunction.
    pub error: GroupError,
}

/// The reason why a report cannot be assigned to a conjunction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// No id can be made for the report.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The id that the sender attached to the report is an id of the format, but it does not belong
    /// to the two objects of the report.
    #[error(
        "the sender attached the id {named}, which belongs to other objects, or to a time after the year 9999"
    )]
    OtherObjects {
        /// The id that the sender attached to the report.
        named: u128,
    },
    /// The report would get an id that differs from the id that its sender attached, but
    /// [`NotedRule::must_agree`] requires both ids to be equal.
    #[error("the sender attached the id {named}, but the report gets the id {gets}")]
    OtherId {
        /// The id that the sender attached to the report.
        named: u128,
        /// The id that the report would get.
        gets: u128,
    },
}

/// A request to assign reports to conjunctions. Either all reports of the request are assigned, or
/// none.
#[derive(Debug, Clone)]
pub struct GroupRequest {
    minter: Arc<GroupedMinter>,
    noted_rule: NotedRule,
    reports: Vec<Keyed>,
}

/// A report with its two objects, its time of closest approach, and its attached id, if any.
#[derive(Debug, Clone, Copy)]
struct Keyed {
    sent_report: SentReport,
    pair: Pair,
    tca: Tca,
    noted: Option<NotedAnchor>,
}

/// An id that a sender attached to a report, and the possible times of the anchor of the close
/// approach with this id. All times within one tick give the same id, so the exact time of the
/// anchor is unknown.
#[derive(Debug, Clone, Copy)]
struct NotedAnchor {
    id: u128,
    /// The earliest time of closest approach that gives this id. `last` is the latest one.
    first: Tca,
    last: Tca,
    /// The time from `first` to `last`, inclusive, that is nearest to the time of the report.
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

    /// Returns the times of closest approach that would give the id that the sender attached. Only
    /// times up to `reach` before or after the time of the report are returned. Returns `None` if
    /// no such time exists, or if the report has no attached id.
    fn named_times(&self, reach: Duration) -> Option<RangeInclusive<Tca>> {
        let noted = self.noted?;
        let micros = u64::try_from(reach.as_micros()).unwrap_or(u64::MAX);
        let (from, to) = self.tca.within(micros).into_inner();
        let times = noted.first.max(from)..=noted.last.min(to);
        (!times.is_empty()).then_some(times)
    }

    /// Returns the times near which stored anchors must be looked up to group this report.
    fn times(&self) -> impl Iterator<Item = Tca> {
        std::iter::once(self.tca).chain(self.noted.map(|noted| noted.nearest))
    }
}

/// The decision about one report.
enum Choice {
    /// The report joins the conjunction with this anchor.
    Joined(Anchor),
    /// The report begins a new conjunction, whose id is made from the report's time of closest
    /// approach.
    Own,
    /// The report begins a new conjunction, which gets the id that the sender attached. Of the
    /// times that give this id, the one [nearest](NotedAnchor::nearest) to the report becomes the
    /// anchor.
    Adopted(NotedAnchor),
}

/// The anchors of new conjunctions, which are planned, but not stored yet.
#[derive(Debug, Default)]
pub struct NewAnchors {
    /// The anchors are sorted by time, because a request can create 100 000 of one pair.
    by_format: HashMap<String, HashMap<Pair, BTreeMap<Tca, Anchor>>>,
}

impl NewAnchors {
    fn add(&mut self, plan: &AnchorPlan) {
        let of_format = self.by_format.entry(plan.format.clone()).or_default();
        let of_pair = of_format.entry(plan.pair).or_default();
        of_pair.insert(plan.anchor.tca, plan.anchor);
    }

    /// Returns the planned anchors of this pair within two seconds of `tca`.
    fn around(&self, format: &str, pair: Pair, tca: Tca) -> impl Iterator<Item = Anchor> {
        let of_pair = self
            .by_format
            .get(format)
            .and_then(|pairs| pairs.get(&pair))
            .into_iter();
        of_pair.flat_map(move |anchors| anchors.range(tca.neighbourhood()).map(|(_, one)| *one))
    }
}

impl GroupRequest {
    /// Creates a request to assign these reports to conjunctions.
    ///
    /// # Errors
    /// Returns [`GroupRefusal`] for the first report for which no id can be made, or to which the
    /// sender attached an id of other objects.
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

    /// Checks that [`GroupRequest::new`] would accept a request with only this report.
    ///
    /// # Errors
    /// Returns [`GroupError`] if no id can be made, or if the attached id belongs to other objects.
    pub fn check(minter: &GroupedMinter, sent_report: &SentReport) -> Result<(), GroupError> {
        Keyed::new(minter, sent_report).map(|_| ())
    }

    /// Sets the rule for ids that senders have attached to reports.
    #[must_use]
    pub fn with_noted_rule(self, noted_rule: NotedRule) -> GroupRequest {
        GroupRequest { noted_rule, ..self }
    }

    /// Returns the name of the id format.
    pub fn format(&self) -> &str {
        self.minter.format_name()
    }

    /// Returns the number of reports.
    pub fn len(&self) -> usize {
        self.reports.len()
    }

    /// Returns `true` if the request has no reports.
    pub fn is_empty(&self) -> bool {
        self.reports.is_empty()
    }

    /// Returns two values for each report, in the order of the reports: its pair of objects, and
    /// its time of closest approach.
    pub fn reports(&self) -> impl Iterator<Item = (Pair, Tca)> {
        self.reports.iter().map(|report| (report.pair, report.tca))
    }

    /// Returns the pairs of objects and the times for which stored anchors must be looked up. Every
    /// report has one item, with its own time. A report with an attached id has a second item. Of
    /// all times that give the attached id, the item has the one nearest to the report's own time.
    pub fn keys(&self) -> impl Iterator<Item = (Pair, Tca)> {
        self.reports
            .iter()
            .flat_map(|report| report.times().map(|tca| (report.pair, tca)))
    }

    /// Assigns ids without looking for stored conjunctions. Each report gets the id of its own
    /// time, or keeps the id that its sender attached if the [`NotedRule`] permits this.
    ///
    /// # Errors
    /// Returns [`GroupRefusal`] if a report cannot be assigned an id.
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

    /// Assigns ids using only stored anchors. Returns `None` if at least one report joins none of
    /// these anchors.
    ///
    /// `stored` has one item for each of the [keys](GroupRequest::keys). The item contains the
    /// anchors of the pair in the [neighbourhood](Tca::neighbourhood) of the key's time.
    ///
    /// # Errors
    /// Returns [`GroupRefusal`] if a report cannot be grouped.
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

    /// Assigns ids using stored and new anchors. If a report joins none of them, plans a new anchor
    /// for the report, and adds that anchor to `new`.
    ///
    /// `stored` has the same content as for [`GroupRequest::join_stored`]. `new` has the anchors
    /// that were planned after `stored` was read.
    ///
    /// # Errors
    /// Returns [`GroupRefusal`] if a report cannot be grouped. In this case, `new` is not changed.
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
                Choice::Own => {
                    // Before this plan is written, another node may store the conjunction whose id
                    // the sender attached. The report would then have to join that conjunction. So
                    // also require that none is stored at the times `named`, which give this id and
                    // are near enough to join.
                    let named = report.named_times(self.noted_rule.named_reach);
                    let reach = std::iter::once(report.tca.reach());
                    (report.tca, reach.chain(named).collect())
                }
                Choice::Adopted(noted) => {
                    // All times within one tick give the attached id, so require that no
                    // conjunction is stored at these times. Check only within two seconds of the
                    // new anchor, because stored anchors were looked up only there.
                    let (from, to) = noted.nearest.neighbourhood().into_inner();
                    let tick = noted.first.max(from)..=noted.last.min(to);
                    // Without `keep`, the report would join any conjunction within one second, so
                    // require that none is stored there. With `keep`, the report takes its attached
                    // id even if a conjunction is stored there.
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

    /// Returns each report with the stored anchors that were looked up for it: one list for each of
    /// its [keys](GroupRequest::keys).
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

    /// Decides whether a report joins an existing conjunction or begins a new one. `anchors` are
    /// the anchors of the pair around the report's times, in any order.
    ///
    /// If the same report is decided again later, the decision is the same. A newer anchor has a
    /// greater rank than older anchors within two seconds, so the report still joins the older one.
    /// A report that takes its attached id creates the anchor of that id, and finds this anchor the
    /// next time.
    ///
    /// The exception is a report that joins the anchor of its attached id from more than one second
    /// away ([`NotedRule::named_reach`]). Once another anchor exists within one second, the report
    /// joins this nearer anchor.
    fn choose(&self, report: &Keyed, anchors: &[Anchor]) -> Choice {
        let known = report.noted.and_then(|noted| noted.find(anchors));
        if let Some(noted) = report.noted.filter(|_| self.noted_rule.keep) {
            return known.map_or(Choice::Adopted(noted), Choice::Joined);
        }
        if let Some(oldest) = Anchor::find(report.tca, anchors) {
            return Choice::Joined(oldest);
        }
        let named = report.named_times(self.noted_rule.named_reach);
        if let Some(anchor) =
            known.filter(|anchor| named.is_some_and(|times| times.contains(&anchor.tca)))
        {
            return Choice::Joined(anchor);
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
