//! Requests, records and stores, for the tests of this folder.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::conjunction::{
    Anchor, AnchorPlan, GroupRequest, GroupedMinter, Pair, PairOrder, Report, SentReport, Tca,
};
use crate::id::{FormatDefinition, PRESETS};
use crate::ledger::{
    AppendPlan, Event, EventId, EventTime, GivenNumbers, Head, KeyHash, LedgerId, LedgerRequest,
    Link, NumberBounds, NumberPlan, NumberRequest, RequestMark, SeriesHead, SeriesName, VoidPlan,
    VoidReason, VoidRequest, digest_of,
};
use crate::minting::HorizonPlan;
use crate::storage::kept_formats::KeptFormat;
use crate::storage::records::{RecordPlan, RecordStore};
use crate::storage::start::{Opened, Store};
use crate::time::{UnixNanos, UnixTime};

/// When most of it happens, in microseconds since 1970.
pub(crate) const NOW: u64 = 1_800_000_000_000_000;

/// That many microseconds since 1970.
pub(crate) fn at(micros: u64) -> EventTime {
    EventTime::from_micros(micros).expect("in range")
}

/// An event that says `name`.
pub(crate) fn event(name: &str) -> Event {
    Event::from_json(format!(r#"{{"event":"{name}","entities":{{}}}}"#).as_bytes())
        .expect("an event")
}

fn mark(key: u128, events: &[Event]) -> RequestMark {
    RequestMark {
        key: KeyHash(key),
        digest: digest_of(events),
    }
}

/// A ledger that begins with the event `name`, under a key.
pub(crate) fn create(name: &str, key: u128) -> LedgerRequest {
    let genesis = event(name);
    LedgerRequest::Create {
        mark: Some(mark(key, std::slice::from_ref(&genesis))),
        genesis,
        import: None,
    }
}

/// Events at the end of a ledger, under a key.
pub(crate) fn append(ledger: LedgerId, names: &[&str], key: u128) -> LedgerRequest {
    let events: Vec<Event> = names.iter().map(|name| event(name)).collect();
    LedgerRequest::Append {
        ledger,
        mark: mark(key, &events),
        events,
        expected_previous: None,
        import: None,
    }
}

/// The plan of a request at that time.
pub(crate) fn plan(request: &LedgerRequest, head: Option<Head>, micros: u64) -> AppendPlan {
    AppendPlan::make(request, head, at(micros)).expect("nothing speaks against it")
}

/// An id that no test mints.
pub(crate) fn absent(ledger: LedgerId) -> EventId {
    EventId::before_genesis(at(NOW + 77), ledger)
}

/// Reports of two objects, at these microseconds from a fixed instant.
pub(crate) fn reports(deltas: &[i64], primary: u64, secondary: u64) -> GroupRequest {
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

/// A ledger of one event, one append of three and one of two, recorded a second apart.
pub(crate) fn write_ledger(records: &dyn RecordStore, name: &str, key: u128) -> [AppendPlan; 3] {
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

/// Writes appends that nothing stands against.
pub(crate) fn write(records: &dyn RecordStore, plans: &[AppendPlan]) {
    let plans: Vec<_> = plans.iter().cloned().map(RecordPlan::Append).collect();
    records
        .write(&plans)
        .expect("nothing was written meanwhile");
}

/// The events of appends in their chain.
pub(crate) fn links(plans: &[AppendPlan]) -> Vec<Link> {
    plans.iter().flat_map(AppendPlan::links).collect()
}

/// An anchor of the usual pair, at these microseconds.
pub(crate) fn anchor(delta: i64, rank: u32) -> RecordPlan {
    anchor_of("conjunction", (1, 2), delta, rank)
}

/// An anchor of any pair.
pub(crate) fn anchor_of(
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

/// The anchors near a time of the usual pair, as microseconds and rank.
pub(crate) fn near(records: &dyn RecordStore, delta: i64) -> Vec<(i64, u32)> {
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

/// A series.
pub(crate) fn series(name: &str) -> SeriesName {
    SeriesName::from_text(name).expect("a name")
}

/// A request for numbers.
pub(crate) fn number_request(name: &SeriesName, count: u32, key: &str) -> NumberRequest {
    let count = NonZeroU32::new(count).expect("some");
    NumberRequest::new(
        name.clone(),
        count,
        NumberBounds::default(),
        key,
        Some("the token `till`"),
    )
}

/// The plan of a request for numbers, behind this head.
pub(crate) fn given_plan(
    name: &SeriesName,
    count: u32,
    key: &str,
    head: Option<SeriesHead>,
) -> RecordPlan {
    let plan = NumberPlan::make(&number_request(name, count, key), head, at(NOW));
    RecordPlan::Number(plan.expect("a series is long"))
}

/// Gives numbers at the end of a series.
pub(crate) fn give(
    records: &dyn RecordStore,
    name: &SeriesName,
    count: u32,
    key: &str,
) -> GivenNumbers {
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

/// The request to make a number void.
pub(crate) fn void_request(name: &SeriesName, number: u64, reason: &str) -> VoidRequest {
    let reason = VoidReason::from_text(reason).expect("a reason");
    VoidRequest {
        series: name.clone(),
        number,
        reason,
        by: None,
    }
}

/// The plan to make a number void.
pub(crate) fn void_plan(name: &SeriesName, number: u64, reason: &str) -> RecordPlan {
    let RecordPlan::Number(NumberPlan { given, .. }) = given_plan(name, 1, "any", None) else {
        unreachable!("made")
    };
    let given = GivenNumbers {
        first: number,
        last: number,
        ..given
    };
    RecordPlan::Void(
        VoidPlan::make(&void_request(name, number, reason), Some(&given), at(NOW))
            .expect("it was given"),
    )
}

/// A store after the usual order of a start, with one slot and this horizon.
pub(crate) fn ready(opened: Opened, horizon: UnixNanos, formats: &[KeptFormat]) -> Store {
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

/// Asserts that these bytes are read, and with any bit flipped, or cut anywhere, are not.
pub(crate) fn assert_only_whole<T: PartialEq + std::fmt::Debug>(
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
