//! Checks that concurrent reports of one conjunction get the same id, even if the service is killed
//! in between.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::appending::{Place, kill_while};
use idmint_testing::http1::{Client, post_json};
use idmint_testing::service::{Home, LONG, Service, until};

/// The number of conjunctions, unless `CONJUNCTIONS` sets another one.
const GROUPS: usize = 480;
const REPORTERS: usize = 64;

/// The number of groups in a block. A group is one conjunction. All reporters report a block at the
/// same time, each in a different order.
const BLOCK_LEN: usize = 8;

/// The largest offset of a reported time from the middle of its group, in microseconds. Two reports
/// of one group are therefore always less than a second apart.
const JITTER_US: i64 = 200_000;

/// A report, together with the service's response to it.
struct Told {
    group: usize,
    tca_us: i64,
    /// `true` if an earlier attempt got no response that says whether it was done.
    is_repeated: bool,
    detail: Value,
}

impl Told {
    /// Returns the time of the conjunction's anchor (its first report), on the same scale as
    /// `tca_us`.
    fn anchor_us(&self) -> i64 {
        self.tca_us - self.detail["tca_delta_us"].as_i64().expect("microseconds")
    }
}

/// A client that sends reports. If a response is lost, the client repeats the report until it gets
/// a response.
struct Reporter<'a> {
    place: &'a Place,
    client: Option<Client>,
}

impl Reporter<'_> {
    fn report(&mut self, group: usize, tca_us: i64) -> Told {
        // Each pair of objects has four groups, which are ten seconds apart. Every second pair
        // consists of the objects of the previous pair in the other order.
        let (pair, second) = (group / 8, 10 * (group % 4));
        let objects = if (group / 4).is_multiple_of(2) {
            [2 * pair + 1, 2 * pair + 2]
        } else {
            [2 * pair + 2, 2 * pair + 1]
        };
        let micros = i64::try_from(second).unwrap() * 1_000_000 + 5_000_000 + tca_us;
        let tca = format!(
            "2040-01-01T00:00:{:02}.{:06}Z",
            micros / 1_000_000,
            micros % 1_000_000
        );
        let body =
            json!({ "tca": tca, "primary": objects[0], "secondary": objects[1] }).to_string();
        let mut is_repeated = false;
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < LONG, "{body} is still refused");
            let mut client = self.client.take().unwrap_or_else(|| self.place.connect());
            let Ok(answer) = client.try_exchange(post_json("/ids/conjunction", "", &body)) else {
                is_repeated = true;
                continue;
            };
            // If a sync takes more than 10 s, the service cannot say whether the report was stored.
            if answer.status == 504 {
                is_repeated = true;
                continue;
            }
            if answer.status == 503 {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            assert_eq!(answer.status, 200, "{body}: {}", answer.text());
            self.client = Some(client);
            return Told {
                group,
                tca_us,
                is_repeated,
                detail: answer.json()["details"][0].take(),
            };
        }
    }
}

/// Returns the number of conjunctions, a multiple of [`BLOCK_LEN`].
fn group_count() -> usize {
    let wanted = std::env::var("CONJUNCTIONS");
    let wanted = wanted.map_or(GROUPS, |wanted| wanted.parse().expect("a number"));
    wanted.next_multiple_of(BLOCK_LEN)
}

/// Sends all reports while the service is killed `kills` times. Returns the last service, and the
/// responses to all reports.
fn report_all(home: &Home, kills: usize) -> (Service, Vec<Told>) {
    let service = home.start();
    service.wait_until_ready();
    let (place, granted, groups) = (Place::of(&service), AtomicU64::new(0), group_count());
    std::thread::scope(|scope| {
        let (place, granted) = (&place, &granted);
        let reporter = |number: usize| {
            scope.spawn(move || {
                let mut random = StdRng::seed_from_u64(number.try_into().unwrap());
                let mut reporter = Reporter {
                    place,
                    client: None,
                };
                let mut told = Vec::new();
                for first in (0..groups).step_by(BLOCK_LEN) {
                    let mut groups: Vec<usize> = (first..first + BLOCK_LEN).collect();
                    groups.shuffle(&mut random);
                    // Let all reporters begin a block together. Do not use a barrier, which would
                    // wait forever for a reporter that has failed.
                    until("all reported the blocks before", || {
                        let before = u64::try_from(first * REPORTERS).unwrap();
                        (granted.load(Ordering::Relaxed) >= before).then_some(())
                    });
                    for group in groups {
                        told.push(
                            reporter.report(group, random.random_range(-JITTER_US..=JITTER_US)),
                        );
                        granted.fetch_add(1, Ordering::Relaxed);
                    }
                }
                told
            })
        };
        let reporters: Vec<_> = (0..REPORTERS).map(reporter).collect();
        // Kill the service while the conjunctions of a block are being created, which is when the
        // first reports of the block have responses.
        let blocks = groups / BLOCK_LEN;
        let kills_at =
            (1..=kills).map(|kill| kill * blocks / (kills + 1) * BLOCK_LEN * REPORTERS + kill % 8);
        let kills_at = kills_at.map(|count| count.try_into().unwrap());
        let service = kill_while(home, service, place, granted, kills_at);
        let told = reporters
            .into_iter()
            .flat_map(|reporter| reporter.join().expect("the reporter found nothing wrong"));
        (service, told.collect())
    })
}

/// Asserts that all reports of a group have the same id and anchor, and that different groups have
/// different ids. Returns, for each group, the number of responses that say the report created the
/// conjunction.
fn assert_one_id_each(service: &Service, told: &[Told]) -> BTreeMap<usize, usize> {
    let mut groups = BTreeMap::<usize, Vec<&Told>>::new();
    told.iter()
        .for_each(|told| groups.entry(told.group).or_default().push(told));
    let mut ids = HashSet::new();
    let place = Place::of(service);
    let mut reporter = Reporter {
        place: &place,
        client: None,
    };
    for (group, told) in &groups {
        assert_eq!(told.len(), REPORTERS);
        let (first, anchor_us) = (&told[0].detail, told[0].anchor_us());
        assert!(
            told.iter().any(|told| told.tca_us == anchor_us),
            "{group}: the anchor is one of the reports"
        );
        for told in told {
            assert_eq!(
                (&told.detail["id"], &told.detail["anchor_tca"]),
                (&first["id"], &first["anchor_tca"]),
                "{group}"
            );
            assert_eq!(told.anchor_us(), anchor_us, "{group}");
        }
        assert!(
            ids.insert(first["id"].to_string()),
            "{group}: {first} is the id of another group too"
        );
        let again = reporter.report(*group, 0).detail;
        assert_eq!(
            (&again["id"], &again["created"]),
            (&first["id"], &json!(false)),
            "{group}"
        );
    }
    assert_eq!(ids.len(), group_count());
    let created = |told: &[&Told]| {
        told.iter()
            .filter(|told| told.detail["created"] == true)
            .count()
    };
    groups
        .iter()
        .map(|(group, told)| (*group, created(told)))
        .collect()
}

#[test]
fn of_64_reports_at_once_one_creates_the_conjunction_and_all_get_its_id() {
    let begun = Instant::now();
    let home = Home::new();
    let (service, told) = report_all(&home, 0);
    println!("{} reports in {:?}", told.len(), begun.elapsed());
    let created = assert_one_id_each(&service, &told);
    let repeated: HashSet<usize> = told
        .iter()
        .filter(|told| told.is_repeated)
        .map(|told| told.group)
        .collect();
    for (group, count) in created {
        let is_lost = count == 0 && repeated.contains(&group);
        assert!(count == 1 || is_lost, "{group}: created {count} times");
    }
}

#[test]
fn reports_through_50_kills_get_one_id_that_is_created_at_most_once() {
    const KILLS: usize = 50;
    let begun = Instant::now();
    let home = Home::new();
    let (service, told) = report_all(&home, KILLS);
    println!(
        "{} reports through 50 kills in {:?}",
        told.len(),
        begun.elapsed()
    );
    let created = assert_one_id_each(&service, &told);
    assert!(created.values().all(|count| *count <= 1), "{created:?}");
    let unheard = created.values().filter(|count| **count == 0).count();
    println!("of {unheard} conjunctions nobody heard that they were created");
    assert!(
        unheard <= KILLS * BLOCK_LEN,
        "{unheard}: more than were being created when the service was killed"
    );
}
