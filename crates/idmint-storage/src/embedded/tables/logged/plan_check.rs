//! Checks before a write that plans are still valid. A plan is refused if the data on which it is
//! based has changed. An earlier plan of the same commit may have changed that data.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::RangeInclusive;

use redb::{ReadableTable, Table, WriteTransaction};

use super::logged_rows::opened;
use crate::embedded::tables::anchor_row;
use crate::embedded::tables::anchor_table::{ANCHORS, anchors_within};
use crate::embedded::tables::append_table::{APPENDS, head_of};
use crate::embedded::tables::number_tables::{self, CLOSED, NUMBERS, VOIDS};
use crate::records::rows::append_row;
use crate::records::rows::number_rows;
use crate::records::{AnchorKey, RecordPlan};
use idmint_records::conjunction::{Anchor, AnchorPlan, Tca};
use idmint_records::ledger::{
    AppendPlan, ClosePlan, Head, LedgerId, NumberPlan, SeriesHead, SeriesName, VoidPlan,
};

/// Returns `true` if the stored data on which these plans are based has not changed, so that all of
/// them may be written in this order.
pub(in crate::embedded::tables) fn all_hold(
    transaction: &WriteTransaction,
    plans: &[RecordPlan],
) -> Result<bool, redb::Error> {
    let mut check = PlanCheck::of(transaction);
    for plan in plans {
        let holds = match plan {
            RecordPlan::Append(plan) => check.append(plan)?,
            RecordPlan::Anchor(plan) => check.anchor(plan)?,
            RecordPlan::Number(plan) => check.number(plan)?,
            RecordPlan::Void(plan) => check.void(plan)?,
            RecordPlan::Close(plan) => check.close(plan)?,
        };
        if !holds {
            return Ok(false);
        }
    }
    Ok(true)
}

struct PlanCheck<'a> {
    transaction: &'a WriteTransaction,
    appends: Option<Table<'a, append_row::AppendName, &'static [u8]>>,
    anchors: Option<Table<'a, anchor_row::Name<'static>, &'static [u8]>>,
    /// The last event of each ledger after the plans that were checked so far.
    heads: HashMap<LedgerId, Option<Head>>,
    /// The anchors in the plans that were checked so far.
    new_anchors: BTreeMap<AnchorKey, Anchor>,
    numbers: Option<NumberTable<'a>>,
    voids: Option<NumberTable<'a>>,
    closed: Option<NumberTable<'a>>,
    /// The last number of each series after the plans that were checked so far.
    series: HashMap<SeriesName, SeriesHead>,
    /// The numbers that the plans checked so far make void.
    new_voids: HashSet<(SeriesName, u64)>,
    /// The series that the plans checked so far close.
    new_closed: HashSet<SeriesName>,
}

type NumberTable<'a> = Table<'a, number_rows::NumberName<'static>, &'static [u8]>;

impl<'a> PlanCheck<'a> {
    fn of(transaction: &'a WriteTransaction) -> PlanCheck<'a> {
        PlanCheck {
            transaction,
            appends: None,
            anchors: None,
            heads: HashMap::new(),
            new_anchors: BTreeMap::new(),
            numbers: None,
            voids: None,
            closed: None,
            series: HashMap::new(),
            new_voids: HashSet::new(),
            new_closed: HashSet::new(),
        }
    }

    /// Returns `true` if the plan may issue its numbers: the series is open, and its last number is
    /// still the one that the plan expects.
    fn number(
        &mut self,
        NumberPlan { before, given, .. }: &NumberPlan,
    ) -> Result<bool, redb::Error> {
        let may_give = self.is_open_after(&given.series, *before)?;
        self.series.insert(given.series.clone(), given.head());
        Ok(may_give)
    }

    /// Returns `true` if the plan may close the series: the series is open, and its last number is
    /// still the one that the plan expects.
    fn close(&mut self, ClosePlan { before, closed }: &ClosePlan) -> Result<bool, redb::Error> {
        let may_close = self.is_open_after(&closed.series, *before)?;
        self.new_closed.insert(closed.series.clone());
        Ok(may_close)
    }

    fn is_open_after(
        &mut self,
        series: &SeriesName,
        last: Option<SeriesHead>,
    ) -> Result<bool, redb::Error> {
        let head = match self.series.get(series) {
            Some(head) => Some(*head),
            None => number_tables::head_of(
                opened(&mut self.numbers, self.transaction, NUMBERS)?,
                series,
            )?,
        };
        let closed = opened(&mut self.closed, self.transaction, CLOSED)?;
        let is_open = !self.new_closed.contains(series)
            && number_tables::closing_of(closed, series)?.is_none();
        Ok(is_open && head == last)
    }

    /// Returns `true` if the number is not void yet.
    fn void(&mut self, VoidPlan { void, .. }: &VoidPlan) -> Result<bool, redb::Error> {
        let is_new = self.new_voids.insert((void.series.clone(), void.number));
        let voids = opened(&mut self.voids, self.transaction, VOIDS)?;
        Ok(is_new && voids.get(number_rows::name_of_void(void))?.is_none())
    }

    /// Returns `true` if the last event of the ledger is still the one that the plan expects.
    fn append(&mut self, plan: &AppendPlan) -> Result<bool, redb::Error> {
        let ledger = plan.ledger();
        let head = match self.heads.get(&ledger) {
            Some(head) => *head,
            None => head_of(
                opened(&mut self.appends, self.transaction, APPENDS)?,
                ledger,
            )?,
        };
        self.heads.insert(ledger, Some(plan.head()));
        Ok(head == plan.before)
    }

    /// Returns `true` if the plan may store its anchor. No anchor of these objects may lie in the
    /// time ranges to keep free. The new rank must be one above the highest rank nearby, or 0 if no
    /// anchor is near.
    fn anchor(&mut self, plan: &AnchorPlan) -> Result<bool, redb::Error> {
        let anchor = plan.anchor;
        for times in &plan.free {
            if !self.anchors_near(plan, times)?.is_empty() {
                return Ok(false);
            }
        }
        let neighbours = self.anchors_near(plan, &anchor.tca.neighbourhood())?;
        self.new_anchors.insert(
            AnchorKey {
                format: plan.format.clone(),
                pair: plan.pair,
                tca: anchor.tca,
            },
            anchor,
        );
        Ok(Anchor::create(anchor.tca, &neighbours) == anchor)
    }

    fn anchors_near(
        &mut self,
        plan: &AnchorPlan,
        times: &RangeInclusive<Tca>,
    ) -> Result<Vec<Anchor>, redb::Error> {
        let AnchorPlan { format, pair, .. } = plan;
        let anchors = opened(&mut self.anchors, self.transaction, ANCHORS)?;
        let mut near = anchors_within(anchors, format, *pair, times)?;
        let key = |tca: &Tca| AnchorKey {
            format: format.clone(),
            pair: *pair,
            tca: *tca,
        };
        near.extend(
            self.new_anchors
                .range(key(times.start())..=key(times.end()))
                .map(|(_, anchor)| anchor),
        );
        Ok(near)
    }
}
