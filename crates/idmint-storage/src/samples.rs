//! Sample requests, records and stores for tests.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::embedded::{Database, RecordTables};
use crate::failure::StoreError;
use crate::kept_formats::KeptFormat;
use crate::records::{NumberStore, RecordPlan, RecordStore, Records};
use crate::start::{Opened, Store};
use idmint_core::id::{FormatDefinition, PRESETS};
use idmint_core::minting::HorizonPlan;
use idmint_core::time::{UnixNanos, UnixTime};
use idmint_records::conjunction::{
    Anchor, AnchorPlan, GroupRequest, GroupedMinter, Pair, PairOrder, Report, SentReport, Tca,
};
use idmint_records::ledger::{
    AppendPlan, ClosePlan, CloseRequest, Event, EventId, EventTime, GivenNumbers, Head, KeyHash,
    LedgerId, LedgerRequest, Link, NumberBounds, NumberForm, NumberPlan, NumberRequest,
    RequestMark, SeriesHead, SeriesName, VoidPlan, VoidReason, VoidRequest, digest_of,
};

/// The default time of the samples, in microseconds since 1970.
pub const NOW: u64 = 1_800_000_000_000_000;

/// Returns a time from microseconds since 1970.
pub fn at(micros: u64) -> EventTime {
    EventTime::from_micros(micros).expect("in range")
}

/// Returns an event whose name is `name`.
pub fn event(name: &str) -> Event {
    Event::from_json(format!(r#"{{"event":"{name}","entities":{{}}}}"#).as_bytes())
        .expect("an event")
}

fn mark(key: u128, events: &[Event]) -> RequestMark {
    RequestMark {
        key: KeyHash(key),
        digest: digest_of(events, None),
    }
}

/// Returns a request, with this idempotency key, to create a ledger whose first event is named
/// `name`.
pub fn create(name: &str, key: u128) -> LedgerRequest {
    let genesis = event(name);
    LedgerRequest::Create {
        mark: Some(mark(key, std::slice::from_ref(&genesis))),
        genesis,
        import: None,
    }
}

/// Returns a request, with this idempotency key, to append events with these names to a ledger.
pub fn append(ledger: LedgerId, names: &[&str], key: u128) -> LedgerRequest {
    let events: Vec<Event> = names.iter().map(|name| event(name)).collect();
    LedgerRequest::Append {
        ledger,
        mark: mark(key, &events),
        events,
        expected_previous: None,
        import: None,
    }
}

/// Returns the plan to append the events of a request. `head` is the last event of the ledger, or
/// `None` for a new ledger. The events are recorded at `micros`, in microseconds since 1970.
pub fn plan(request: &LedgerRequest, head: Option<Head>, micros: u64) -> AppendPlan {
    AppendPlan::make(request, head, at(micros)).expect("nothing speaks against it")
}

/// Returns an event id in this ledger that no other test data of this file uses.
pub fn absent(ledger: LedgerId) -> EventId {
    EventId::before_genesis(at(NOW + 77), ledger)
}

/// Returns a request with one report on two objects for each delta. A delta is the time of closest
/// approach in microseconds, relative to a fixed time.
pub fn reports(deltas: &[i64], primary: u64, secondary: u64) -> GroupRequest {
    let preset = PRESETS
        .iter()
        .find(|preset| preset.name == "conjunction")
        .expect("a built-in format");
    let format = FormatDefinition::from_toml(preset.name, preset.toml)
        .expect("parses")
        .compile(preset.name);
    let minter = GroupedMinter::new(Arc::new(format.expect("is sound")), PairOrder::Reported);
    let sent_report = |delta: &i64| {
        let tca = UnixTime::from(Tca(1_706_745_600_000_000 + delta));
        SentReport::new(Report::new(tca, primary, secondary).expect("two objects"))
    };
    let sent_reports: Vec<SentReport> = deltas.iter().map(sent_report).collect();
    GroupRequest::new(Arc::new(minter), &sent_reports).expect("each can have an id")
}

/// Writes a ledger with three appends of one, three and two events, recorded one second apart.
/// Returns the plans of these appends.
pub fn write_ledger(records: &dyn RecordStore, name: &str, key: u128) -> [AppendPlan; 3] {
    let genesis = plan(&create(name, key), None, NOW);
    let ledger = genesis.ledger();
    let three = plan(
        &append(ledger, &["a", "b", "c"], key + 1),
        Some(genesis.head()),
        NOW + 1_000_000,
    );
    let two = plan(
        &append(ledger, &["d", "e"], key + 2),
        Some(three.head()),
        NOW + 2_000_000,
    );
    write(records, std::slice::from_ref(&genesis));
    write(records, &[three.clone(), two.clone()]);
    [genesis, three, two]
}

/// Writes appends of events to the store. Panics if the store refuses them as stale.
pub fn write(records: &dyn RecordStore, plans: &[AppendPlan]) {
    let plans: Vec<_> = plans.iter().cloned().map(RecordPlan::Append).collect();
    records
        .write(&plans)
        .expect("nothing was written meanwhile");
}

/// Returns the events of several appends as one chain.
pub fn links(plans: &[AppendPlan]) -> Vec<Link> {
    plans.iter().flat_map(AppendPlan::links).collect()
}

/// Returns a plan to store an anchor of the objects 1 and 2 at `delta` microseconds since 1970. If
/// two anchors are near each other, the older one has the lower `rank`.
pub fn anchor(delta: i64, rank: u32) -> RecordPlan {
    anchor_of("conjunction", (1, 2), delta, rank)
}

/// Returns a plan to store an anchor of these two objects. Despite its name, `delta` is the
/// absolute time of the approach, in microseconds since 1970.
pub fn anchor_of(
    format: &str,
    (primary, secondary): (u64, u64),
    delta: i64,
    rank: u32,
) -> RecordPlan {
    let anchor = Anchor {
        tca: Tca(delta),
        rank,
    };
    RecordPlan::Anchor(AnchorPlan::of_report(
        format,
        Pair { primary, secondary },
        anchor,
    ))
}

/// Returns the time and the rank of each stored conjunction of the objects 1 and 2 within two
/// seconds of `delta`. Times are in microseconds since 1970. Of two conjunctions within two
/// seconds, the newer one has the higher rank.
pub fn near(records: &dyn RecordStore, delta: i64) -> Vec<(i64, u32)> {
    let key = (
        Pair {
            primary: 1,
            secondary: 2,
        },
        Tca(delta),
    );
    let found = records
        .neighbours("conjunction", &mut std::iter::once(key))
        .expect("the store works");
    found[0]
        .iter()
        .map(|anchor| (anchor.tca.0, anchor.rank))
        .collect()
}

/// Parses the name of a series.
pub fn series(name: &str) -> SeriesName {
    SeriesName::from_text(name).expect("a name")
}

/// Returns a request, with this idempotency key, for `count` numbers.
pub fn number_request(name: &SeriesName, count: u32, key: &str) -> NumberRequest {
    let count = NonZeroU32::new(count).expect("some");
    NumberRequest::new(
        name.clone(),
        count,
        NumberBounds::default(),
        key,
        Some("the token `till`"),
    )
}

/// Returns a plan to issue `count` numbers of a series after `head`, its last number if it has one.
pub fn given_plan(
    name: &SeriesName,
    count: u32,
    key: &str,
    head: Option<SeriesHead>,
) -> RecordPlan {
    let plan = NumberPlan::make(&number_request(name, count, key), head, at(NOW));
    RecordPlan::Number(plan.expect("a series is long"))
}

/// Returns the plan to replace `wrong`, the only number of a series, by the number `first`.
pub fn correction_plan(wrong: &GivenNumbers, first: u64, key: &str) -> RecordPlan {
    let request = number_request(&wrong.series, 1, key).beginning_with(first);
    let plan = NumberPlan::correct(
        &request,
        wrong.first,
        wrong.head(),
        Some(wrong.clone()),
        at(NOW),
    );
    RecordPlan::Number(plan.expect("it is the only number"))
}

/// Issues `first` as the first number of a series, with a request that asks for this number.
pub fn begin(records: &dyn RecordStore, name: &SeriesName, first: u64, key: &str) -> GivenNumbers {
    let request = number_request(name, 1, key).beginning_with(first);
    let plan = NumberPlan::make(&request, None, at(NOW)).expect("it begins");
    let given = plan.given.clone();
    records
        .write(&[RecordPlan::Number(plan)])
        .expect("the series is new");
    given
}

/// Issues the next `count` numbers of a series.
pub fn give(records: &dyn RecordStore, name: &SeriesName, count: u32, key: &str) -> GivenNumbers {
    let head = records.series_head(name).expect("the store works");
    let plan = given_plan(name, count, key, head);
    records
        .write(std::slice::from_ref(&plan))
        .expect("nothing was written meanwhile");
    let RecordPlan::Number(NumberPlan { given, .. }) = plan else {
        unreachable!("made above")
    };
    given
}

/// Returns a form that writes `before` and then the number.
pub fn form(before: &str) -> NumberForm {
    NumberForm {
        before: before.to_owned(),
        ..NumberForm::default()
    }
}

/// Returns `plan` with `form` as the form of its numbers.
pub fn in_form(plan: RecordPlan, form: NumberForm) -> RecordPlan {
    let RecordPlan::Number(plan) = plan else {
        unreachable!("a plan of numbers is passed")
    };
    RecordPlan::Number(NumberPlan {
        form: Some(form),
        ..plan
    })
}

/// Returns the plan to close a series after its last number `head`.
pub fn close_plan(name: &SeriesName, head: Option<SeriesHead>) -> RecordPlan {
    let request = CloseRequest {
        series: name.clone(),
        by: Some("the token `till`".to_owned()),
    };
    RecordPlan::Close(ClosePlan::make(&request, head, at(NOW)))
}

/// Returns a request to void a number.
pub fn void_request(name: &SeriesName, number: u64, reason: &str) -> VoidRequest {
    let reason = VoidReason::from_text(reason).expect("a reason");
    VoidRequest {
        series: name.clone(),
        number,
        reason,
        by: None,
    }
}

/// Returns the plan to void a number that the store has.
pub fn void_plan(
    numbers: &dyn NumberStore,
    name: &SeriesName,
    number: u64,
    reason: &str,
) -> RecordPlan {
    let stored = numbers.number(name, number).expect("the store works");
    let given = stored.map(|stored| stored.given);
    let request = void_request(name, number, reason);
    RecordPlan::Void(VoidPlan::make(&request, given.as_ref(), at(NOW)).expect("it was given"))
}

/// Runs all steps of a start: stores these formats and this horizon. The store has a single slot.
pub fn ready(opened: Opened, horizon: UnixNanos, formats: &[KeptFormat]) -> Store {
    let plan = HorizonPlan::at(horizon);
    match opened {
        Opened::First(first) => {
            let (reserved, _) = first.reserve(plan).expect("the store is writable");
            reserved
                .agree_on_formats(1, formats)
                .expect("the formats are new")
        }
        Opened::Again(restart) => {
            let agreed = restart
                .agree_on_formats(1, formats)
                .expect("the formats are the same");
            agreed.reserve(plan).expect("the store is writable").0
        }
    }
}

/// Asserts that a start found this horizon, which was set to `floor` plus a random time below 1 ms.
#[cfg(test)]
pub(crate) fn assert_at_floor(horizon: Option<UnixNanos>, floor: UnixNanos) {
    let horizon = horizon.expect("a start with a floor writes a horizon");
    let above = horizon.get().checked_sub(floor.get());
    assert!(
        above.is_some_and(|above| (1..1_000_000).contains(&above)),
        "{horizon} is not just above {floor}"
    );
}

/// Asserts that `read` accepts these bytes, but rejects them if any bit is flipped or if the bytes
/// are cut short.
pub fn assert_only_whole<T: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    read: impl Fn(&[u8]) -> Option<T>,
) {
    assert!(read(bytes).is_some());
    for at in 0..bytes.len() * 8 {
        let mut flipped = bytes.to_vec();
        flipped[at / 8] ^= 1 << (at % 8);
        assert_eq!(read(&flipped), None, "bit {at}");
    }
    for len in 0..bytes.len() {
        assert_eq!(read(&bytes[..len]), None, "{len} bytes");
    }
}

/// Returns an empty record store in memory.
///
/// # Errors
/// Returns [`StoreError`] if not enough memory is available.
pub fn memory_records() -> Result<Records, StoreError> {
    Ok(Arc::new(memory_tables()?))
}

/// Returns the empty record tables of a database in memory.
pub(crate) fn memory_tables() -> Result<RecordTables, StoreError> {
    Ok(RecordTables::open(Arc::new(Database::in_memory()?))?)
}
