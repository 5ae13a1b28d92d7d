//! Tests of the mint: its counters, its refusals, and the counts and text lengths that it reports.

use std::convert::Infallible;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use super::*;
use crate::id::{DomainHash, FieldKind, FormatDefinition, preset};
use crate::minting::batch::{Batch, CountedFormat, RequestError};
use crate::minting::durable::Durable;
use crate::minting::horizon::HorizonPlan;
use crate::minting::minter::{Denied, Granted};
use crate::minting::refusal::SlotLack;
use crate::minting::sequenced::{LaneCount, LaneRule, SequencedMinter, Shortage};
use crate::time::{ManualClock, UnixNanos, UnixTime};

const START: UnixNanos = UnixNanos::from_seconds(1_795_232_161);
const SHARD: u64 = 5;

/// Returns a mint with one format, and the minter of the format.
fn mint(format: Format, hand: &ManualClock) -> (Mint, Arc<Minter>) {
    let format = Arc::new(format);
    let rule = LaneRule {
        slot: 0,
        slots: 1,
        lanes: LaneCount::UpTo(2),
        shard: SHARD,
    };
    let lanes = Lanes::of(&format, &rule).expect("room for 2 lanes");
    let settings = MintSettings {
        wait_max: Duration::ZERO,
        lead_max: Duration::from_millis(5),
        window: Duration::from_secs(3),
        shard: SHARD,
    };
    let mut mint = Mint::new(Arc::new(hand.clock()), settings);
    let minter = mint.add_sequenced(format, lanes);
    (mint, minter)
}

/// Returns a mint with one format and an active session, and the minter of the format.
fn begun(format: Format, hand: &ManualClock) -> (Mint, Arc<Minter>) {
    let (mint, minter) = mint(format, hand);
    let session = mint.prepare(SessionStart::at(START));
    let plan = session.plan_extension(START, START);
    let on_disk = Durable::write(plan, |_| Ok::<_, std::io::Error>(())).expect("nothing to fail");
    session.raise(&on_disk, START);
    mint.begin(session);
    (mint, minter)
}

fn reserve(minter: &Minter, count: u32) -> Result<Granted, Denied> {
    minter.reserve(
        &minter
            .request(NonZeroU32::new(count).expect("some"), None)
            .expect("a request"),
    )
}

fn ids(minter: &Minter, count: u32) -> Vec<u128> {
    let mut batch = reserve(minter, count).expect("to be had at once").batch;
    let mut ids = vec![0; usize::try_from(count).expect("small")];
    assert_eq!(batch.fill(&mut ids), ids.len());
    ids
}

fn custom(rule: &str, fields: &str) -> Format {
    let text = format!(
        "summary = ''\nrule = '{rule}'\ntick = '1ms'\nepoch = '2020-01-01T00:00:00Z'\nencodings = ['decimal']\n\
         fields = [{fields}]"
    );
    FormatDefinition::from_toml("mine", &text)
        .expect("TOML")
        .compile("mine")
        .expect("sound")
}

#[test]
fn every_counter_counts_its_own_and_nothing_else() {
    let counted = CountedFormat::new(Arc::new(preset("snowflake")), 3);
    let counters = &counted.counters;
    counters.count_granted(10, false);
    counters.count_granted(20, true);
    counters.count_granted(30, true);
    (0..4).for_each(|_| counters.count_refused());
    (0..5).for_each(|_| counters.count_invalid());
    (0..8).for_each(|_| counters.count_exhausted(1));
    assert_eq!(
        (counters.minted(), counters.granted(), counters.waits()),
        (60, 3, 2)
    );
    assert_eq!((counters.refused(), counters.invalid()), (4, 5));
    assert_eq!(counters.exhausted().collect::<Vec<_>>(), [0, 8, 0]);
}

#[test]
fn a_caller_is_told_what_the_mint_waits_for() {
    let (mint, minter) = mint(preset("snowflake"), &ManualClock::at(START));
    assert!(matches!(
        reserve(&minter, 1),
        Err(Denied::Refused(Refusal::HorizonReached { .. }))
    ));
    mint.wait_for(Refusal::StorageFailed);
    assert_eq!(
        mint.session().expect_err("none has begun"),
        Refusal::StorageFailed
    );
    assert!(matches!(
        reserve(&minter, 1),
        Err(Denied::Refused(Refusal::StorageFailed))
    ));
    assert_eq!(
        minter.count_max(0),
        None,
        "nothing is known before a session"
    );
}

#[test]
fn a_session_is_running_low_once_half_of_its_reservation_is_used() {
    let hand = ManualClock::at(START);
    let (mint, minter) = begun(preset("snowflake"), &hand);
    let session = mint.session().expect("it has begun");
    assert!(!session.is_running_low(), "nothing was minted");
    assert!(
        !reserve(&minter, 30_000)
            .expect("fresh ticks of both lanes")
            .refill
    );
    assert!(!session.is_running_low(), "next to nothing was minted");
    let reserved = session.horizon().since(START);
    hand.advance(reserved / 2 + Duration::from_millis(1));
    assert!(
        reserve(&minter, 30_000).expect("below the horizon").refill,
        "whoever comes first says so"
    );
    assert!(
        session.is_running_low(),
        "more than half of {reserved:?} is used"
    );
}

#[test]
fn a_batch_tells_how_many_ids_are_left_and_how_long_they_will_be() {
    let fields = "{ name = 'time', kind = 'time', bits = 41 }, { name = 'worker', kind = 'worker', bits = 4 }, \
                  { name = 'sequence', kind = 'sequence', bits = 12 }";
    let (_, minter) = begun(custom("sequenced", fields), &ManualClock::at(START));
    let format = Arc::clone(&minter.counted().format);
    let decimal = format.canonical();
    assert_eq!(
        decimal.fixed_len(),
        None,
        "else the length says nothing of the ids"
    );
    let len = |ids: &[u128]| {
        ids.iter()
            .map(|id| u64::try_from(id.to_string().len()).expect("short"))
            .sum::<u64>()
    };
    // Test a batch from one lane, a batch from both lanes, and a batch of given ids with one to
    // twenty digits.
    let known: Vec<u128> = (0..66).map(|power| 1 << power).collect();
    let batches = [
        reserve(&minter, 100).expect("of one lane").batch,
        reserve(&minter, 30_000).expect("of both lanes").batch,
        Batch::of_ids(known.clone()),
    ];
    for mut batch in batches {
        let (count, text_len) = (
            batch.count(),
            batch.text_len(decimal).expect("it can be known"),
        );
        let mut first = vec![0; 40];
        assert_eq!(batch.fill(&mut first), 40);
        assert_eq!(batch.count(), count - 40);
        assert_eq!(batch.text_len(decimal), Some(text_len - len(&first)));
        let mut rest = vec![0; usize::try_from(count).expect("fits")];
        assert_eq!(batch.fill(&mut rest), rest.len() - 40);
        rest.truncate(rest.len() - 40);
        assert_eq!((batch.count(), batch.text_len(decimal)), (0, Some(0)));
        assert_eq!(text_len, len(&first) + len(&rest));
        let all = [first, rest].concat();
        assert!(all.is_sorted_by(|a, b| a < b), "each once, in order");
        assert!(all.len() != known.len() || all == known);
    }
}

#[test]
fn an_id_has_the_fields_that_were_asked_for() {
    let fields = "{ name = 'version', kind = 'constant', bits = 3, value = 5 }, { name = 'time', kind = 'time', bits = 41 }, \
                  { name = 'shard', kind = 'shard', bits = 6 }, { name = 'worker', kind = 'worker', bits = 4 }, \
                  { name = 'sequence', kind = 'sequence', bits = 12 }";
    let (_, minter) = begun(custom("sequenced", fields), &ManualClock::at(START));
    let mut ids = [0; 2];
    reserve(&minter, 2)
        .expect("a fresh tick")
        .batch
        .fill(&mut ids);
    for (sequence, id) in (0..).zip(ids) {
        let ticks = minter
            .counted()
            .format
            .ticks_at(START.into())
            .expect("after the epoch");
        assert_eq!(
            minter.counted().format.split(id).expect("an id").values,
            [5, ticks, SHARD.into(), 0, sequence]
        );
    }

    let (_, siq) = begun(preset("siq"), &ManualClock::at(START));
    let domain = DomainHash::of("example.org", Some(7)).expect("a domain");
    let event = siq
        .request(NonZeroU32::MIN, Some("event"))
        .expect("a type it has")
        .for_domain(domain);
    assert_eq!(event.domain(), domain);
    let mut id = [0];
    siq.reserve(&event)
        .expect("a fresh tick")
        .batch
        .fill(&mut id);
    let split = siq.counted().format.split(id[0]).expect("an id");
    let variant = &siq.counted().format.variants[event.variant()];
    assert_eq!(variant.name.as_deref(), Some("event"));
    let object = variant
        .layout
        .fields()
        .iter()
        .position(|field| field.kind == FieldKind::Object)
        .expect("the domain");
    assert_eq!(split.values[object], u128::from(domain.get()));

    let Err(RequestError::TypeUnknown { types, .. }) =
        siq.request(NonZeroU32::MIN, Some("nonesuch"))
    else {
        panic!("it has no such type")
    };
    assert!(
        types.len() > 10 && types.contains(&"event".to_owned()),
        "{types:?}"
    );
}

/// Returns a mint whose worker numbers depend on the slot of the session, and its only minter.
fn leased(hand: &ManualClock) -> (Mint, Arc<Minter>) {
    let settings = MintSettings {
        wait_max: Duration::ZERO,
        lead_max: Duration::from_millis(5),
        window: Duration::from_secs(60),
        shard: 0,
    };
    let format = Arc::new(preset("snowflake"));
    let slots = NonZeroU32::new(4).expect("not zero");
    let lanes = SlotLanes::of(&format, slots, LaneCount::UpTo(8), 0).expect("fits");
    let mut mint = Mint::new(Arc::new(hand.clock()), settings);
    let minter = mint.add_leased(format, lanes);
    (mint, minter)
}

/// Returns a session in this slot, with a horizon that is `reserved` after the current time.
fn session_in(mint: &Mint, slot: u32, reserved: Duration) -> Arc<Session> {
    let now = mint.clock().now();
    let session = mint.prepare_in_slot(SessionStart::at(now), slot);
    let plan = session.plan_extension(now, now.after(reserved));
    session.raise(
        &Durable::write(plan, |_| Ok::<(), Infallible>(())).expect("memory suffices"),
        now,
    );
    session
}

fn workers_of(minter: &Minter) -> Vec<u32> {
    minter
        .lanes()
        .map_or(Vec::new(), |lanes| lanes.workers().to_vec())
}

#[test]
fn the_next_session_mints_with_the_numbers_of_its_own_slot_and_between_two_nothing_is_minted() {
    let hand = ManualClock::at(START);
    let (mint, minter) = leased(&hand);
    assert_eq!(workers_of(&minter), [0; 0]);
    mint.begin(session_in(&mint, 1, Duration::from_secs(1)));
    assert_eq!(workers_of(&minter), [1, 5, 9, 13, 17, 21, 25, 29]);
    let mut all = ids(&minter, 100);

    let fenced = Refusal::NoWorkerSlot {
        lack: SlotLack::Lost,
        retry_after: Duration::from_secs(1),
    };
    mint.end(fenced.clone());
    assert_eq!(mint.session().expect_err("it has ended"), fenced);
    let Err(Denied::Refused(refusal)) = reserve(&minter, 1) else {
        panic!("no session, no ids")
    };
    assert_eq!((refusal, workers_of(&minter).len()), (fenced, 0));

    mint.begin(session_in(&mint, 2, Duration::from_secs(1)));
    assert_eq!(workers_of(&minter), [2, 6, 10, 14, 18, 22, 26, 30]);
    all.extend(ids(&minter, 100));
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 200, "no id twice");
}

#[test]
#[should_panic(expected = "a session begins after the one before has ended")]
fn two_sessions_at_once_are_refused() {
    let hand = ManualClock::at(START);
    let (mint, _) = leased(&hand);
    mint.begin(session_in(&mint, 1, Duration::from_secs(1)));
    mint.begin(session_in(&mint, 2, Duration::from_secs(1)));
}

/// Checks that no thread mints with the worker number of an ended session. Each session has its own
/// time span and its own slot, so the time of an id determines which worker number the id must
/// have.
#[test]
fn threads_that_mint_while_sessions_end_and_begin_use_the_numbers_of_one_that_there_was_and_no_id_comes_twice()
 {
    const SESSIONS: u32 = 100;
    /// A limit far above the number of checks that minting 50 ids needs, so that the test ends even
    /// if no id is minted.
    const LOOKS_MAX: u64 = 10_000_000;
    const APART: Duration = Duration::from_millis(200);
    let hand = ManualClock::at(START);
    let (mint, minter) = leased(&hand);
    let (minted, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mint_all = || {
        let mut mine = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            match reserve(&minter, 1) {
                Ok(mut granted) => {
                    let mut id = [0];
                    assert_eq!(granted.batch.fill(&mut id), 1);
                    mine.push(id[0]);
                    minted.fetch_add(1, Ordering::Relaxed);
                }
                Err(_) => thread::yield_now(),
            }
        }
        mine
    };
    let mut ids = thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(mint_all)).collect();
        for session in 0..SESSIONS {
            let before = minted.load(Ordering::Relaxed);
            let reserved = session_in(&mint, session % 4, Duration::from_millis(100));
            assert!(
                reserved.horizon() < mint.clock().now().after(APART),
                "the next one begins above"
            );
            mint.begin(reserved);
            let mut looks = 0_u64;
            while minted.load(Ordering::Relaxed) < before + 50 {
                looks += 1;
                if looks == LOOKS_MAX {
                    is_over.store(true, Ordering::Relaxed);
                    panic!("nothing is minted in session {session}");
                }
                thread::yield_now();
            }
            mint.end(Refusal::NoWorkerSlot {
                lack: SlotLack::Lost,
                retry_after: Duration::ZERO,
            });
            hand.advance(APART);
        }
        is_over.store(true, Ordering::Relaxed);
        threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("it does not panic"))
            .collect::<Vec<u128>>()
    });
    let format = &minter.counted().format;
    let layout = &format.variants[0].layout;
    let worker = layout
        .fields()
        .iter()
        .position(|field| field.kind == FieldKind::Worker)
        .expect("it has a number");
    for id in &ids {
        let split = format.split(*id).expect("an id");
        let nanos = split.time.expect("has a time").nanos() - UnixTime::from(START).nanos();
        let since = Duration::from_nanos(nanos.try_into().expect("after the start"));
        let session = since.as_millis() / APART.as_millis();
        assert_eq!(
            split.values[worker] % 4,
            session % 4,
            "session {session}, the numbers of its slot"
        );
    }
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    println!("{count} ids of {SESSIONS} sessions");
    assert!(
        ids.len() == count && count >= 50 * 100,
        "{count} ids, {} of them different",
        ids.len()
    );
}

/// A thread that is suspended while its session ends gets only ids that the session had reserved.
/// The test reads the session, ends it, and then reserves ids in it. The stamps of these ids are
/// below the horizon of the ended session.
#[test]
fn who_reserves_in_a_session_that_has_ended_gets_what_is_still_reserved() {
    let hand = ManualClock::at(START);
    let (mint, minter) = leased(&hand);
    let session = session_in(&mint, 1, Duration::from_secs(1));
    let horizon = session.horizon();
    mint.begin(session);
    let request = minter
        .request(NonZeroU32::MIN, None)
        .expect("a sound request");
    let format = &minter.counted().format;
    let reserve_late = |old: &SequencedMinter| {
        mint.end(Refusal::NoWorkerSlot {
            lack: SlotLack::Lost,
            retry_after: Duration::ZERO,
        });
        mint.begin(session_in(&mint, 2, Duration::from_secs(1)));
        hand.advance(horizon.since(START) - Duration::from_millis(1));
        let placement = old.reserve(
            &request,
            &old.moment(mint.clock().now()),
            &minter.counted().counters,
        );
        let (mut batch, mut id) = (
            old.batch(
                &request,
                &placement.expect("the last millisecond is reserved"),
            ),
            [0],
        );
        assert_eq!(batch.fill(&mut id), 1);
        let time = format
            .split(id[0])
            .expect("an id")
            .time
            .expect("has a time");
        assert!(time < horizon.into(), "{time} is below {horizon}");
        hand.advance(Duration::from_millis(1));
        old.reserve(
            &request,
            &old.moment(mint.clock().now()),
            &minter.counted().counters,
        )
        .map(drop)
    };
    let above = mint.sequenced[0]
        .in_session(reserve_late)
        .expect("there was a session when it looked");
    assert!(
        matches!(above, Err(Shortage::Horizon { .. })),
        "above its horizon there is nothing"
    );
}

#[test]
fn a_deadline_before_the_horizon_ends_minting_and_is_moved_by_the_next_renewal() {
    let hand = ManualClock::at(START);
    let (mint, minter) = leased(&hand);
    let session = mint.prepare_in_slot(SessionStart::at(START), 0);
    let raise = |deadline: Duration| {
        let plan = HorizonPlan::leased(START.after(Duration::from_secs(60)), START.after(deadline));
        session.raise(
            &Durable::write(plan, |_| Ok::<(), Infallible>(())).expect("memory suffices"),
            START,
        );
    };
    raise(Duration::from_millis(10));
    mint.begin(Arc::clone(&session));
    hand.advance(Duration::from_millis(9));
    assert!(reserve(&minter, 1).is_ok());
    hand.advance(Duration::from_millis(1));
    assert!(
        matches!(reserve(&minter, 1), Err(Denied::Horizon { .. })),
        "the deadline has come"
    );
    raise(Duration::from_millis(20));
    assert!(reserve(&minter, 1).is_ok());
}
