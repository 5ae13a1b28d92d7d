//! Tests which lanes a batch of ids uses, and when its ids are due.

use std::num::NonZeroU32;
use std::sync::Arc;

use super::*;
use crate::id::{FormatDefinition, preset};
use crate::minting::durable::Durable;
use crate::minting::mint::{Mint, MintSettings};
use crate::minting::minter::{Denied, Granted, Minter};
use crate::minting::refusal::Refusal;
use crate::minting::sequenced::lanes::{LaneCount, LaneRule};
use crate::minting::session_start::SessionStart;
use crate::time::ManualClock;

const START: UnixNanos = UnixNanos::from_seconds(1_795_232_161);

/// Returns a minter of a format, with up to eight lanes and a distant horizon.
fn minter(format: Format, start: SessionStart, hand: &ManualClock) -> Arc<Minter> {
    let format = Arc::new(format);
    let rule = LaneRule {
        slot: 0,
        slots: 1,
        lanes: LaneCount::UpTo(8),
        shard: 0,
    };
    let lanes = Lanes::of(&format, &rule).expect("room for 8 lanes");
    let clock = Arc::new(hand.clock());
    let (wait_max, lead_max) = (Duration::from_millis(250), Duration::from_millis(5));
    let settings = MintSettings {
        wait_max,
        lead_max,
        window: Duration::from_secs(3),
        shard: 0,
    };
    let mut mint = Mint::new(Arc::clone(&clock), settings);
    let minter = mint.add_sequenced(format, lanes);
    let session = mint.prepare(start);
    let plan = session.plan_extension(clock.now(), START.after(Duration::from_secs(7200)));
    let on_disk = Durable::write(plan, |_| Ok::<_, std::io::Error>(())).expect("nothing to fail");
    session.raise(&on_disk, clock.now());
    mint.begin(session);
    minter
}

fn at_start(format: Format) -> Arc<Minter> {
    minter(format, SessionStart::at(START), &ManualClock::at(START))
}

fn reserve(minter: &Minter, count: u32) -> Result<Granted, Denied> {
    minter.reserve(
        &minter
            .request(NonZeroU32::new(count).expect("some"), None)
            .expect("a request"),
    )
}

fn ids(granted: &mut Granted) -> Vec<u128> {
    let mut ids = vec![0; usize::try_from(granted.batch.count()).expect("fits")];
    assert_eq!(granted.batch.fill(&mut ids), ids.len());
    ids
}

fn custom(tick: &str, fields: &str) -> Format {
    let text = format!(
        "summary = ''\nrule = 'sequenced'\ntick = '{tick}'\nepoch = '2020-01-01T00:00:00Z'\nencodings = ['decimal']\n\
         fields = [{fields}]"
    );
    FormatDefinition::from_toml("mine", &text)
        .expect("TOML")
        .compile("mine")
        .expect("sound")
}

#[test]
fn no_request_is_held_while_a_lane_is_free() {
    let minter = at_start(preset("snowflake"));
    // Ids may be five ticks ahead of the clock. Each lane can therefore immediately mint 4 096 ids
    // for the current tick and for each of the next five. A request for 6 x 4 096 ids uses up one
    // lane.
    let due = |_| {
        reserve(&minter, 6 * 4096)
            .expect("all lanes together have them")
            .due
    };
    let dues: Vec<_> = (0..17).map(due).collect();
    assert_eq!(dues[..8], [None; 8]);
    // All eight lanes become free again at the same time. The next eight requests therefore use
    // each lane once.
    assert!(
        dues[8].is_some() && dues[8..16].iter().all(|due| *due == dues[8]) && dues[16] > dues[15],
        "{dues:?}"
    );
    assert_eq!(
        minter.counted().counters.exhausted().collect::<Vec<_>>(),
        [9; 8],
        "each of nine requests found all eight lanes used up"
    );
}

#[test]
fn a_large_batch_takes_every_lane_and_increases_from_its_first_id_to_its_last() {
    let minter = at_start(preset("snowflake"));
    let mut granted = reserve(&minter, 100_000).expect("a fresh node");
    assert_eq!(
        granted.due, None,
        "eight lanes of six ticks have 196 608 ids at once"
    );
    let ids = ids(&mut granted);
    assert_eq!(ids.len(), 100_000, "as many as were asked for");
    assert!(
        minter
            .counted()
            .counters
            .exhausted()
            .all(|count| count == 0),
        "no sequence was used up"
    );
    assert!(ids.is_sorted_by(|a, b| a < b), "it increases");
    let format = &minter.counted().format;
    let parts = |id: u128| format.split(id).expect("an id").values;
    let (first, last) = (parts(ids[0]), parts(ids[99_999]));
    // The ids fill 3 ticks of 8 x 4 096 ids, and take 1 696 ids of lane 0 in the fourth. No tick
    // begins before the previous one is used up.
    assert_eq!((last[0] - first[0], last[1], last[3]), (3, 0, 1695));
}

#[test]
fn batches_at_once_waste_no_id_of_any_tick() {
    let minter = at_start(preset("snowflake"));
    let mut all = Vec::new();
    let mut last_due = START;
    for round in 0..8 {
        if round == 4 {
            let refused = reserve(&minter, 8_388_608).err();
            assert!(
                matches!(
                    refused,
                    Some(Denied::Refused(Refusal::SequenceExhausted { .. }))
                ),
                "{refused:?}"
            );
        }
        let mut granted = reserve(&minter, 100_000).expect("within the wait");
        last_due = last_due.max(granted.due.unwrap_or(START));
        all.extend(ids(&mut granted));
    }
    assert!(
        minter.counted().counters.exhausted().all(|count| count > 0),
        "every lane was used up"
    );
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 800_000, "no id twice");
    // The refused request reserved no ids, so this request begins with the first tick. With 32 768
    // ids for each tick, 800 000 ids take 24.4 ticks. The 25th tick begins 24 ticks after the
    // first. Its ids are due five ticks earlier, because ids may be that far ahead of the clock.
    assert_eq!(last_due.since(START), Duration::from_millis(24 - 5));
}

#[test]
fn a_start_ahead_of_its_clock_takes_as_much_of_every_lane() {
    let hand = ManualClock::at(START.before(Duration::from_secs(1)));
    let minter = minter(preset("payment"), SessionStart::at(START), &hand);
    let mut granted = reserve(&minter, 1000).expect("125 of each of eight lanes");
    let ids = ids(&mut granted);
    assert!(ids.is_sorted_by(|a, b| a < b));
    // A lane mints 125 of the ids, and has 1 296 ids per second. Its last id is therefore 124 / 1
    // 296 s after the start. The session mints at half speed, so the id is due after twice that
    // time, which is 191 ms.
    let due = granted.due.expect("nothing is free yet").since(hand.wall());
    assert!(
        (Duration::from_millis(191)..Duration::from_millis(193)).contains(&due),
        "{due:?}"
    );
}

#[test]
fn a_layout_whose_lanes_are_not_in_order_takes_one_lane_for_a_batch() {
    let worker_first = "{ name = 'worker', kind = 'worker', bits = 4 }, { name = 'time', kind = 'time', bits = 41 }, \
                        { name = 'sequence', kind = 'sequence', bits = 12 }";
    let minter = at_start(custom("1ms", worker_first));
    let mut granted = reserve(&minter, 100_000).expect("within the wait");
    let ids = ids(&mut granted);
    assert!(ids.is_sorted_by(|a, b| a < b));
    let worker = |id: u128| minter.counted().format.split(id).expect("an id").values[0];
    assert_eq!(worker(ids[0]), worker(ids[99_999]));
    // The ids take 24.4 ticks of one lane. The ids of the current tick and of the next five ticks
    // can be sent immediately.
    assert_eq!(
        granted.due.map(|due| due.since(START)),
        Some(Duration::from_millis(24 - 5))
    );
}

#[test]
fn above_a_floor_a_format_begins_with_its_first_whole_tick_and_the_others_do_not_wait() {
    let fields = "{ name = 'time', kind = 'time', bits = 32 }, { name = 'sequence', kind = 'sequence', bits = 10 }";
    let floor = START.after(Duration::from_secs(10));
    let start = SessionStart::at(floor).above_floor(Some(floor));
    let hand = ManualClock::at(floor);
    // The floor is 11 s after a whole minute, so the next minute begins 49 s later.
    let minutes = minter(custom("60s", fields), start, &hand);
    let seconds = minter(custom("1s", fields), start, &hand);
    assert!(reserve(&seconds, 1).is_ok(), "the floor is a whole second");
    let Err(Denied::Refused(Refusal::NotOpen { retry_after, .. })) = reserve(&minutes, 1) else {
        panic!("the minute that contains the floor may be used up")
    };
    assert_eq!(retry_after, Duration::from_secs(49));
    assert!(
        minutes
            .counted()
            .counters
            .exhausted()
            .all(|count| count == 0),
        "no sequence was used up"
    );

    // A minute after the floor, the floor no longer delays any format.
    let later = floor.after(Duration::from_secs(60));
    let restarted = SessionStart::at(later).above_floor(Some(floor));
    let mut granted = reserve(
        &minter(custom("60s", fields), restarted, &ManualClock::at(later)),
        1,
    )
    .expect("at once");
    assert_eq!((granted.due, ids(&mut granted).len()), (None, 1));

    // Shortly before that minute, a request waits, but no sequence is used up.
    let hand = ManualClock::at(floor.after(retry_after - Duration::from_millis(100)));
    let waiting = minter(custom("60s", fields), start, &hand);
    assert!(reserve(&waiting, 1).expect("it waits").due.is_some());
    let exhausted: u64 = waiting.counted().counters.exhausted().sum();
    assert_eq!(exhausted, 0);

    let hand = ManualClock::at(floor.after(retry_after));
    let later = minter(custom("60s", fields), start, &hand);
    let mut granted = reserve(&later, 1024).expect("the whole tick");
    let tick = |id: u128| {
        later
            .counted()
            .format
            .split(id)
            .expect("an id")
            .time
            .expect("a time")
    };
    assert_eq!(tick(ids(&mut granted)[0]), floor.after(retry_after).into());
    let refused = reserve(&later, 1024).err();
    let is_used_up = matches!(
        refused,
        Some(Denied::Refused(Refusal::SequenceExhausted { .. }))
    );
    assert!(
        is_used_up,
        "it is open, and its tick is used up: {refused:?}"
    );
}

#[test]
fn the_greatest_count_is_what_the_lanes_have_in_the_tick_the_lead_and_the_wait() {
    let fields = "{ name = 'time', kind = 'time', bits = 40 }, { name = 'sequence', kind = 'sequence', bits = 10 }";
    // A tick is 1/1024 s, so the maximum wait of 250 ms has 256 ticks. Ids may also be five ticks
    // ahead of the clock.
    assert_eq!(
        at_start(custom("1s/1024", fields)).count_max(0),
        Some((256 + 5 + 1) * 1024)
    );
    assert_eq!(
        at_start(preset("snowflake")).count_max(0),
        Some((250 + 5 + 1) * 4096 * 8)
    );
}

#[test]
fn in_its_last_tick_a_format_mints_the_ids_of_all_lanes() {
    // START is in tick 131 071 since the epoch, which is the greatest value of the time field.
    let fields = "{ name = 'time', kind = 'time', bits = 17 }, { name = 'worker', kind = 'worker', bits = 3 }, \
        { name = 'sequence', kind = 'sequence', bits = 4 }";
    let minter = at_start(custom("1658600ms", fields));
    let mut all = ids(&mut reserve(&minter, 17).expect("three lanes have them"));
    assert_eq!(all.len(), 17);
    let refused = loop {
        match reserve(&minter, 1) {
            Ok(mut granted) => all.extend(ids(&mut granted)),
            Err(refused) => break Some(refused),
        }
    };
    all.sort_unstable();
    all.dedup();
    // 60 % of the tick are over at the start, so each lane begins with sequence 10 of 16.
    assert_eq!(all.len(), 8 * 6);
    assert!(
        matches!(refused, Some(Denied::Refused(Refusal::EpochEnded { .. }))),
        "{refused:?}"
    );
}

#[test]
fn a_format_without_a_stamp_below_2_to_the_64_has_ended() {
    // `start_after` has the tick 2^41 - 2, and a tick has 2^24 sequence numbers, so the first stamp
    // after it does not fit into 64 bits. The format may use several lanes for one batch.
    let fields = "{ name = 'time', kind = 'time', bits = 41 }, { name = 'worker', kind = 'worker', bits = 1 }, \
        { name = 'sequence', kind = 'sequence', bits = 24 }]\nstart_after = '73786976294771097600' #";
    let minter = at_start(custom("1ms", fields));
    for count in [1, 3] {
        let refused = reserve(&minter, count).err();
        assert!(
            matches!(refused, Some(Denied::Refused(Refusal::EpochEnded { .. }))),
            "{refused:?}"
        );
    }
}
