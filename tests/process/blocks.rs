//! Blocks of numbers of a service that is killed again and again under callers: none doubled, and few lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, RwLock};
use std::thread;
use std::time::Duration;

use crate::http1::{Client, request};
use crate::numbering::StopAtTheEnd;
use crate::service::{Home, Service, until};

const CALLERS: usize = 8;
const KILLS: u64 = 6;
const RESERVE: u64 = 1_000;
const RULES: &str = "[numbers.rows]\npattern = 'rows'\nkind = 'blocks'\nreserve = 1000";

/// A caller's numbers: from the first, so many.
type Block = (u64, u64);

fn ask(caller: usize, place: &RwLock<std::net::SocketAddr>, stop: &AtomicBool, told: &Mutex<Vec<Block>>) {
    let mut connection: Option<Client> = None;
    for at in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let count = 1 + (caller + at) % 300;
        let client = connection.take().or_else(|| Client::try_connect(*place.read().unwrap()).ok());
        let answered = client.and_then(|mut client| {
            let answer = client.try_exchange(request(&format!("POST /numbers/rows?count={count}"), "", "")).ok()?;
            Some((client, answer))
        });
        match answered {
            Some((client, answer)) if answer.status == 201 => {
                let first = answer.json()["first"].as_str().unwrap().parse().unwrap();
                told.lock().unwrap().push((first, count as u64));
                connection = Some(client);
            }
            Some((_, answer)) => assert_eq!(answer.status, 503, "{}", answer.text()),
            None => thread::sleep(Duration::from_millis(5)),
        }
    }
}

#[test]
fn no_number_of_a_block_is_doubled_and_a_kill_loses_no_more_than_what_is_reserved() {
    let home = Home::new();
    let mut service = Service::start(home.serve_with(RULES));
    service.wait_until_ready();
    let (place, stop, told) = (RwLock::new(service.address()), AtomicBool::new(false), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        let _stop = StopAtTheEnd(&stop);
        for caller in 0..CALLERS {
            let (place, stop, told) = (&place, &stop, &told);
            scope.spawn(move || ask(caller, place, stop, told));
        }
        let get_more = || {
            let least = told.lock().unwrap().len() + 200;
            until("callers get numbers", || (told.lock().unwrap().len() >= least).then_some(()));
        };
        for _ in 0..KILLS {
            get_more();
            service.kill();
            service = Service::start(home.serve_with(RULES));
            *place.write().unwrap() = service.address();
        }
        get_more();
    });
    let mut told = told.into_inner().unwrap();
    told.sort_unstable();
    let (mut next, mut lost) = (1, 0);
    for (first, count) in &told {
        assert!(*first >= next, "{first} was given twice");
        lost += first - next;
        next = first + count;
    }
    println!("{} numbers in {} blocks, {lost} lost by {KILLS} kills", next - 1 - lost, told.len());
    // Of each caller an answer may have been on its way.
    let unheard = KILLS * (CALLERS * 300) as u64;
    assert!(lost <= KILLS * RESERVE + unheard, "{lost} lost");
}
