//! Appends to ledgers while the service is killed and responses are lost. No append may be lost,
//! and none may be applied twice.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::appending::{Appender, Order, Place, Seen, assert_all_is_kept, begin, kill_while};
use crate::cutting_proxy::CuttingProxy;
use idmint_testing::service::{Home, StopOnDrop, until};

fn print(what: &str, begun: Instant, seen: &[Seen]) {
    let events: usize = seen.iter().map(|seen| seen.kept.len()).sum();
    let mut answers = std::collections::BTreeMap::<u16, u64>::new();
    for (status, count) in seen.iter().flat_map(|seen| &seen.answers) {
        *answers.entry(*status).or_default() += count;
    }
    println!(
        "{what}: {events} events in {:?}, none lost, none twice; answers by status, 0 for lost: {answers:?}",
        begun.elapsed()
    );
}

#[test]
fn no_append_is_lost_or_done_twice_through_50_kills() {
    const KILLS: u64 = 50;
    const CALLERS: usize = 32;
    let appends = std::env::var("LEDGER_APPENDS");
    let appends: u64 = appends.map_or(40_000, |appends| appends.parse().expect("a number"));
    let begun = Instant::now();
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let ledgers = begin(&service, 5);
    let place = Place::of(&service);
    let (granted, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut random = StdRng::seed_from_u64(50);
    let (service, seen): (_, Vec<Seen>) = std::thread::scope(|scope| {
        let caller = |number| {
            let caller = Appender::new(number, &place, &ledgers);
            scope.spawn(|| caller.run(&granted, &stop))
        };
        let callers: Vec<_> = (0..CALLERS).map(caller).collect();
        let running = StopOnDrop(&stop);
        // Kill the service between two appends, while all callers wait for a response.
        let kills_at =
            (0..KILLS).map(|kill| (kill * appends + random.random_range(0..appends)) / (KILLS + 1));
        let service = kill_while(&home, service, &place, &granted, kills_at);
        until("the callers go on", || {
            (granted.load(Ordering::Relaxed) >= appends).then_some(())
        });
        drop(running);
        let seen = callers
            .into_iter()
            .map(|caller| caller.join().expect("the caller found nothing wrong"));
        (service, seen.collect())
    });
    service.wait_until_ready();
    let lost: u64 = seen.iter().filter_map(|seen| seen.answers.get(&0)).sum();
    assert!(
        lost >= KILLS * u64::try_from(CALLERS).unwrap() / 2,
        "only {lost} answers were lost"
    );
    print("50 kills", begun, &seen);
    assert_all_is_kept(&service, ledgers, seen);
    println!("verified after {:?}", begun.elapsed());
}

#[test]
fn what_is_asked_again_after_a_cut_answer_gets_its_first_ids() {
    const CALLERS: usize = 16;
    const APPENDS: usize = 100;
    let begun = Instant::now();
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let ledgers = begin(&service, 3);
    let cutting = CuttingProxy::before(service.address());
    let place = Place::of(&service);
    place.move_to(cutting.address);
    let seen: Vec<Seen> = std::thread::scope(|scope| {
        let caller = |number| {
            let mut caller = Appender::new(number, &place, &ledgers);
            scope.spawn(move || {
                for turn in 0..APPENDS {
                    caller.append(
                        turn,
                        &Order {
                            ledger: turn % 3,
                            count: 1 + turn % 4,
                            expects: turn % 5 == 0,
                        },
                    );
                }
                caller.seen
            })
        };
        let callers: Vec<_> = (0..CALLERS).map(caller).collect();
        callers
            .into_iter()
            .map(|caller| caller.join().expect("the caller found nothing wrong"))
            .collect()
    });
    let asked = cutting.asked();
    assert_eq!(asked.len(), CALLERS * APPENDS);
    let again = asked.values().filter(|asked| asked.times > 1).count();
    assert!(
        again > CALLERS * APPENDS / 2,
        "only {again} appends were asked for again"
    );
    print("cut answers", begun, &seen);
    assert_all_is_kept(&service, ledgers, seen);
}

#[test]
fn a_ledger_with_64_appenders_grows_by_what_was_granted() {
    const CALLERS: usize = 64;
    const ATTEMPTS: usize = 50;
    let begun = Instant::now();
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let ledgers = begin(&service, 1);
    let place = Place::of(&service);
    let tried: Vec<(usize, Seen)> = std::thread::scope(|scope| {
        let caller = |number: usize| {
            let mut caller = Appender::new(number, &place, &ledgers);
            scope.spawn(move || {
                let order = |turn: usize| Order {
                    ledger: 0,
                    count: 1,
                    expects: (number + turn).is_multiple_of(3),
                };
                let granted = (0..ATTEMPTS)
                    .filter(|turn| caller.try_append(*turn, &order(*turn)) != 409)
                    .count();
                (granted, caller.seen)
            })
        };
        let callers: Vec<_> = (0..CALLERS).map(caller).collect();
        callers
            .into_iter()
            .map(|caller| caller.join().expect("the caller found nothing wrong"))
            .collect()
    });
    let granted: usize = tried.iter().map(|(granted, _)| granted).sum();
    let seen: Vec<Seen> = tried.into_iter().map(|(_, seen)| seen).collect();
    let of = |status| {
        seen.iter()
            .filter_map(|seen| seen.answers.get(&status))
            .sum::<u64>()
    };
    // The status 200 is possible only after a lost response.
    assert_eq!(
        of(200) + of(201) + of(409),
        u64::try_from(CALLERS * ATTEMPTS).unwrap(),
        "each attempt is granted or refused"
    );
    assert!(of(409) > 0 && of(201) > u64::try_from(CALLERS * ATTEMPTS / 2).unwrap());
    let info = service.get(&format!("/ledgers/{}", ledgers[0].id)).json();
    assert_eq!(info["events"], 1 + granted);
    print("64 appenders", begun, &seen);
    assert_all_is_kept(&service, ledgers, seen);
}
