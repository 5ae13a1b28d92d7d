//! The honest caller, which sends 50 requests for one id every second. It keeps its connections,
//! and keeps this rate no matter how the service responds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::door::{AnyClient, Door};
use super::outcome::IS_OPTIMISED;
use idmint_testing::http1::request;
use idmint_testing::service::until;

const CONNECTIONS: u32 = 5;
const PER_SECOND: u32 = 50;

/// The time after which an honest caller gives up on a response. An unoptimized build may run on a
/// busy machine, and its response times are not judged.
const PATIENCE: Duration = Duration::from_secs(if IS_OPTIMISED { 5 } else { 15 });

/// The interval between two newcomers. A newcomer opens a new connection and mints a single id.
const NEWCOMER_EVERY: Duration = Duration::from_millis(100);

/// The response times and failures that an honest caller observed.
#[derive(Debug, Default, Clone)]
pub(crate) struct Seen {
    /// The response time of each successful request, sorted. A response time is counted from the
    /// moment at which the request was due, even if it was sent later.
    answered: Vec<Duration>,
    /// The status or the error of each failed request.
    refused: Vec<String>,
}

impl Seen {
    pub(crate) fn asked(&self) -> usize {
        self.answered.len() + self.refused.len()
    }

    pub(crate) fn is_answered(&self) -> usize {
        self.answered.len()
    }

    pub(crate) fn refusals(&self) -> &[String] {
        &self.refused
    }

    /// Returns the 99th percentile of the response times, or `Duration::MAX` if no request
    /// succeeded.
    pub(crate) fn p99(&self) -> Duration {
        let rank = (self.answered.len() * 99).div_ceil(100);
        self.answered
            .get(rank.saturating_sub(1))
            .copied()
            .unwrap_or(Duration::MAX)
    }

    fn count(&mut self, due: Instant, answer: Result<u16, String>) {
        match answer {
            Ok(200) => self.answered.push(due.elapsed()),
            Ok(status) => self.refused.push(status.to_string()),
            Err(why) => self.refused.push(why),
        }
    }

    fn merged(all: impl IntoIterator<Item = Seen>) -> Seen {
        let mut merged = Seen::default();
        for seen in all {
            merged.answered.extend(seen.answered);
            merged.refused.extend(seen.refused);
        }
        merged.answered.sort();
        merged
    }
}

/// Honest callers, connected before the attack starts.
pub(crate) struct Honest {
    door: Door,
    connections: Vec<AnyClient>,
}

impl Honest {
    pub(crate) fn connect(door: &Door) -> Honest {
        // Retry, because connections of an earlier attack may still be open and use up the limits.
        let connected = || {
            let mut client = connect(door).ok()?;
            (mint_on(&mut client) == Ok(200)).then_some(client)
        };
        let connected = || until("an honest caller has its first answer", connected);
        Honest {
            door: door.clone(),
            connections: (0..CONNECTIONS).map(|_| connected()).collect(),
        }
    }

    /// Mints at a fixed rate until `work` returns. The first result is from the connections that
    /// are kept, and the second one is from the newcomers.
    pub(crate) fn call_during(self, work: impl FnOnce()) -> (Seen, Seen) {
        let (begun, is_over) = (Instant::now(), Arc::new(AtomicBool::new(false)));
        let newcomers = {
            let (door, is_over) = (self.door.clone(), Arc::clone(&is_over));
            thread::spawn(move || call_as_newcomer(&door, begun, &is_over))
        };
        let between = Duration::from_secs(1) / PER_SECOND;
        let callers: Vec<_> = (0..)
            .zip(self.connections)
            .map(|(number, client)| {
                let (first, door, is_over) = (
                    begun + between * number,
                    self.door.clone(),
                    Arc::clone(&is_over),
                );
                thread::spawn(move || call_on(client, &door, first, &is_over))
            })
            .collect();
        work();
        is_over.store(true, Ordering::Relaxed);
        let kept = Seen::merged(callers.into_iter().map(|caller| caller.join().unwrap()));
        (kept, newcomers.join().unwrap())
    }
}

/// Mints one id at each due time. If a response is slow, the next requests are sent late, and their
/// response times also count as slow.
fn call_on(client: AnyClient, door: &Door, first: Instant, is_over: &AtomicBool) -> Seen {
    let (mut seen, mut client, mut due) = (Seen::default(), Some(client), first);
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let answer = match client.take().map_or_else(|| connect(door), Ok) {
            Ok(mut connected) => {
                let answer = mint_on(&mut connected);
                client = answer.is_ok().then_some(connected);
                answer
            }
            Err(why) => Err(why),
        };
        seen.count(due, answer);
        due += Duration::from_secs(1) * CONNECTIONS / PER_SECOND;
    }
    seen
}

fn call_as_newcomer(door: &Door, begun: Instant, is_over: &AtomicBool) -> Seen {
    let (mut seen, mut due) = (Seen::default(), begun);
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        seen.count(
            due,
            connect(door).and_then(|mut client| mint_on(&mut client)),
        );
        due += NEWCOMER_EVERY;
    }
    Seen::merged([seen])
}

fn connect(door: &Door) -> Result<AnyClient, String> {
    door.try_connect_within(PATIENCE)
        .map_err(|error| format!("not connected: {error}"))
}

fn mint_on(client: &mut AnyClient) -> Result<u16, String> {
    client.send(request("POST /ids/snowflake", "", ""));
    let answer = client
        .try_receive_within(PATIENCE)
        .map_err(|error| error.to_string())?;
    Ok(answer.status)
}
