//! Twenty times as much long work as the service can do, from callers who do not wait for each other.
//!
//! First what it can do is measured, by callers who ask again once they have their answer; then half of that is offered,
//! which is where a p99 says something; then twenty times as much.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::aim::Aim;
use super::attacker::Attacker;
use super::bodies::{MIB, ids};
use super::honest::{Honest, Seen};
use super::metrics::Metrics;
use super::{allow_many_descriptors, number};
use crate::http1::{post_json, request};
use crate::service::{Home, LONG};

const SECONDS: u64 = 3;
const CLOSED_LOOP_CALLERS: usize = 4;
const TIMES: f64 = 20.0;

/// What a refusal should take, from the moment the request was due.
const REFUSED_WITHIN: Duration = Duration::from_millis(5);

/// The answers to requests that were due one after the other.
#[derive(Default)]
struct Answers {
    accepted: Vec<Duration>,
    refused: Vec<Duration>,
    /// Neither 200 nor 503, or none.
    other: Vec<Option<u16>>,
}

impl Answers {
    fn take(&mut self, due: Instant, status: Option<u16>) {
        match status {
            Some(200) => self.accepted.push(due.elapsed()),
            Some(503) => self.refused.push(due.elapsed()),
            other => self.other.push(other),
        }
    }

    fn p99(&self) -> Duration {
        let mut times = self.accepted.clone();
        times.sort();
        times.get((times.len() * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
    }

    /// How many of a hundred refusals came in time.
    fn refused_in_time_percent(&self) -> f64 {
        let in_time = self.refused.iter().filter(|time| **time <= REFUSED_WITHIN).count();
        100.0 * in_time as f64 / self.refused.len().max(1) as f64
    }
}

/// Asks again and again; returns how many answers of 200 came in a second.
async fn closed_loop(aim: &Aim, ask: &Arc<Vec<u8>>, time: Duration) -> f64 {
    let end = Instant::now() + time;
    let callers = (0..CLOSED_LOOP_CALLERS).map(|number| {
        let (aim, ask) = (aim.clone(), Arc::clone(ask));
        async move {
            let (mut attacker, mut answered) = (Attacker::connect(&aim, number).await, 0);
            while Instant::now() < end {
                assert!(attacker.send(&ask).await);
                match attacker.next_status().await {
                    Some(200) => answered += 1,
                    _ => attacker = Attacker::connect(&aim, number).await,
                }
            }
            answered
        }
    });
    let answered: usize = callers.collect::<JoinSet<_>>().join_all().await.into_iter().sum();
    answered as f64 / time.as_secs_f64()
}

/// Asks so often in a second, whatever comes of it, on connections that are kept where the service keeps them.
async fn open_loop(aim: &Aim, ask: &Arc<Vec<u8>>, per_second: f64, time: Duration) -> Answers {
    let (free, answers) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Answers::default())));
    let (begun, mut callers) = (Instant::now(), JoinSet::new());
    for number in 0..(per_second * time.as_secs_f64()) as usize {
        let due = begun + Duration::from_secs_f64(number as f64 / per_second);
        sleep_until(due).await;
        let (aim, ask, free, answers) = (aim.clone(), Arc::clone(ask), Arc::clone(&free), Arc::clone(&answers));
        callers.spawn(async move {
            let kept = free.lock().unwrap().pop();
            let mut attacker = match kept {
                Some(attacker) => attacker,
                None => Attacker::connect(&aim, number).await,
            };
            // A refusal may come before the whole body is sent, and close the connection.
            let is_sent = attacker.send(&ask).await;
            let status = timeout(LONG, attacker.next_status()).await.ok().flatten();
            answers.lock().unwrap().take(due, status);
            if is_sent && status == Some(200) {
                free.lock().unwrap().push(attacker);
            }
        });
        while callers.try_join_next().is_some() {}
    }
    callers.join_all().await;
    std::mem::take(&mut answers.lock().unwrap())
}

struct Measured {
    per_second: f64,
    at_half: Answers,
    overloaded: Answers,
    honest: Seen,
}

fn measure(ask: Vec<u8>, time: Duration) -> Measured {
    let (home, runtime, ask) = (Home::new(), Runtime::new().unwrap(), Arc::new(ask));
    let service = home.start();
    service.wait_until_ready();
    let aim = Aim::at(service.address());
    let per_second = runtime.block_on(closed_loop(&aim, &ask, time));
    let at_half = runtime.block_on(open_loop(&aim, &ask, per_second / 2.0, time));
    let mut overloaded = Answers::default();
    let (honest, _) = Honest::connect(service.address()).call_during(|| {
        overloaded = runtime.block_on(open_loop(&aim, &ask, TIMES * per_second, time));
    });
    assert_eq!(Metrics::of(&service).sum("idmint_http_requests_total", "500"), 0);
    assert!(!service.log().contains("panic"), "{}", service.log());
    Measured { per_second, at_half, overloaded, honest }
}

#[test]
fn no_attack_harms_who_comes_in_twentyfold_overload() {
    allow_many_descriptors();
    let time = Duration::from_secs(number("ATTACK_SECONDS").unwrap_or(SECONDS));
    for (name, ask) in [
        ("mints of 10 000 as JSON", request("POST /ids/flax?count=10000", "", "")),
        ("decodes of 1 MiB", post_json("/decode", "", &String::from_utf8(ids(MIB)).unwrap())),
    ] {
        let Measured { per_second, at_half, overloaded, honest } = measure(ask.into_bytes(), time);
        println!(
            "{name}: {per_second:.0} a second can be done; p99 at half of that {:?}; at {TIMES} times: {} accepted with a p99 of \
             {:?}, {} refused, {:.1} % of them within {REFUSED_WITHIN:?}, {} other {:?}; single mints: {} of {}, p99 {:?}",
            at_half.p99(),
            overloaded.accepted.len(),
            overloaded.p99(),
            overloaded.refused.len(),
            overloaded.refused_in_time_percent(),
            overloaded.other.len(),
            overloaded.other.iter().take(3).collect::<Vec<_>>(),
            honest.is_answered(),
            honest.asked(),
            honest.p99(),
        );
        assert!(!overloaded.accepted.is_empty(), "{name}: it goes on working");
        assert!(overloaded.refused.len() > overloaded.accepted.len(), "{name}: most is refused");
        assert!(honest.is_answered() * 100 >= honest.asked() * 99, "{name}: {:?}", honest.refusals());
    }
}
