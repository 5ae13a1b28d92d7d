//! Offers twenty times as much long work as the service can do, at a fixed rate.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::bodies::{MIB, ids};
use crate::door::Door;
use crate::honest::{Honest, Seen};
use crate::outcome::{IS_OPTIMISED, P99_FLOOR};
use crate::{ROUNDS_MAX, time_of_each};
use idmint_testing::http1::{AnswerParser, request};
use idmint_testing::service::{Home, Service};

/// The offered load as a multiple of the capacity.
const TIMES: f64 = 20.0;

/// The number of callers that measure the capacity. Each waits for a response before it sends its
/// next request. Two callers keep two cores busy.
const CALLERS: usize = 2;

/// The maximum response time of a refusal that counts as immediate.
const AT_ONCE: Duration = Duration::from_millis(5);

/// A request. The body is sent only after the service asks for it with `100 Continue`.
struct Request {
    head: Vec<u8>,
    body: Vec<u8>,
}

/// Returns two requests to send alternately. The first mints 10 000 ids as JSON, and the second
/// decodes 1 MiB of ids. The body is sent only after `100 Continue`, as curl does for long bodies.
fn long_requests() -> [Request; 2] {
    let body = ids(MIB);
    let headers = format!(
        "content-type: application/json\r\nexpect: 100-continue\r\ncontent-length: {}\r\n",
        body.len()
    );
    [
        Request {
            head: request("POST /ids/snowflake?count=10000", "", "").into_bytes(),
            body: Vec::new(),
        },
        Request {
            head: request("POST /decode", &headers, "").into_bytes(),
            body,
        },
    ]
}

/// The state of the load generator: the requests, the idle connections, and the responses so far.
struct Offer {
    service: Service,
    requests: [Request; 2],
    idle: Mutex<Vec<TcpStream>>,
    answers: Mutex<Answers>,
}

/// The response times for each outcome. A response time is counted from the start of the request to
/// the end of the response.
#[derive(Default)]
struct Answers {
    accepted: Vec<Duration>,
    overloaded: Vec<Duration>,
    /// The errors, and the statuses other than 200 and 503.
    failed: Vec<String>,
}

impl Answers {
    fn all(&self) -> usize {
        self.accepted.len() + self.overloaded.len() + self.failed.len()
    }
}

impl Offer {
    async fn ask(&self, number: usize) {
        let asked = Instant::now();
        let outcome = self
            .exchange(&self.requests[number % self.requests.len()])
            .await;
        let answers = &mut *self.answers.lock().unwrap();
        match outcome {
            Ok(200) => answers.accepted.push(asked.elapsed()),
            Ok(503) => answers.overloaded.push(asked.elapsed()),
            Ok(status) => answers.failed.push(status.to_string()),
            Err(error) => answers.failed.push(error.to_string()),
        }
    }

    async fn exchange(&self, request: &Request) -> std::io::Result<u16> {
        let idle = self.idle.lock().unwrap().pop();
        let mut stream = match idle {
            Some(stream) => stream,
            None => TcpStream::connect(self.service.address()).await?,
        };
        stream.write_all(&request.head).await?;
        let (mut unread, mut buffer, mut parser) =
            (Vec::new(), vec![0; 64 * 1024], AnswerParser::new());
        let mut is_pending = !request.body.is_empty();
        loop {
            let len = stream.read(&mut buffer).await?;
            unread.extend_from_slice(&buffer[..len]);
            if is_pending && unread.windows(4).any(|end| end == b"\r\n\r\n") {
                is_pending = false;
                if unread.starts_with(b"HTTP/1.1 100") {
                    unread.clear();
                    stream.write_all(&request.body).await?;
                    continue;
                }
            }
            let (used, end) = parser
                .parse(&unread, |_| {})
                .map_err(std::io::Error::other)?;
            unread.drain(..used);
            if let Some(end) = end {
                // Keep the connection, unless the service refused a request without reading its
                // body. In that case, the service closes the connection.
                if end.status == 200 || request.body.is_empty() {
                    self.idle.lock().unwrap().push(stream);
                }
                return Ok(end.status);
            }
            if len == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Measures the capacity in responses per second, with `CALLERS` callers that each wait for
    /// their response.
    async fn measure(self: &Arc<Self>, time: Duration) -> f64 {
        let (begun, mut callers) = (Instant::now(), JoinSet::new());
        for caller in 0..CALLERS {
            let offer = Arc::clone(self);
            callers.spawn(async move {
                for number in caller.. {
                    offer.ask(number).await;
                    if begun.elapsed() >= time {
                        break;
                    }
                }
            });
        }
        callers.join_all().await;
        self.taken_answers().accepted.len() as f64 / begun.elapsed().as_secs_f64()
    }

    /// Sends `per_second` requests per second for `time`. Each request is sent when it is due, even
    /// if earlier ones have no response yet. A request that is late is sent at once, even after
    /// `time`.
    async fn offer(self: &Arc<Self>, per_second: f64, time: Duration) -> Answers {
        let (begun, mut asked, mut asking) = (Instant::now(), 0_u32, JoinSet::new());
        let mut ticks = interval(Duration::from_millis(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let all = (per_second * time.as_secs_f64()).ceil();
        while f64::from(asked) < all {
            ticks.tick().await;
            let due = all.min(begun.elapsed().as_secs_f64() * per_second);
            while f64::from(asked) < due {
                let (offer, number) = (Arc::clone(self), asked);
                asking.spawn(async move { offer.ask(number as usize).await });
                asked += 1;
            }
            while asking.try_join_next().is_some() {}
        }
        asking.join_all().await;
        self.taken_answers()
    }

    fn taken_answers(&self) -> Answers {
        std::mem::take(&mut *self.answers.lock().unwrap())
    }
}

/// Returns the response time that `percent` percent of the responses did not exceed.
fn percentile(durations: &[Duration], percent: usize) -> Duration {
    let mut durations = durations.to_vec();
    durations.sort_unstable();
    let rank = (durations.len() * percent).div_ceil(100);
    durations
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

/// The results of one round: first with half of the capacity as load, and then with the overload.
struct Round {
    half: Answers,
    overload: Answers,
    single: Seen,
}

impl Round {
    fn carry_out(runtime: &Runtime, offer: &Arc<Offer>, time: Duration) -> Round {
        let most = runtime.block_on(offer.measure(time));
        let half = runtime.block_on(offer.offer(most / 2.0, time));
        let mut overload = Answers::default();
        let honest = Honest::connect(&Door::in_the_clear(offer.service.address()));
        let (single, _) =
            honest.call_during(|| overload = runtime.block_on(offer.offer(most * TIMES, time)));
        assert!(
            overload.all() as f64 >= 0.9 * TIMES * most * time.as_secs_f64(),
            "not enough was offered"
        );
        println!("{most:.0} long requests a second can be done");
        Round {
            half,
            overload,
            single,
        }
    }

    fn is_fast_enough(&self) -> bool {
        let (half, overload) = (
            percentile(&self.half.accepted, 99),
            percentile(&self.overload.accepted, 99),
        );
        let is_at_once = percentile(&self.overload.overloaded, 99) <= AT_ONCE;
        !IS_OPTIMISED || overload <= P99_FLOOR.max(2 * half) && is_at_once
    }

    fn print(&self) {
        let Round {
            half,
            overload,
            single,
        } = self;
        println!(
            "  at half of that: {} of {} done, p99 {:?}\n  at {TIMES} times: {} of {} done, p99 {:?}; {} refused, p99 {:?}\n  \
             single mints meanwhile: {} of {}, p99 {:?}",
            half.accepted.len(),
            half.all(),
            percentile(&half.accepted, 99),
            overload.accepted.len(),
            overload.all(),
            percentile(&overload.accepted, 99),
            overload.overloaded.len(),
            percentile(&overload.overloaded, 99),
            single.is_answered(),
            single.asked(),
            single.p99(),
        );
    }
}

#[test]
fn of_too_much_long_work_some_is_done_as_fast_as_ever_and_the_rest_is_refused_at_once() {
    let runtime = Runtime::new().unwrap();
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let (idle, answers) = (Mutex::default(), Mutex::default());
    let offer = Arc::new(Offer {
        service,
        requests: long_requests(),
        idle,
        answers,
    });
    let mut rounds: Vec<Round> = Vec::new();
    while rounds.len() < ROUNDS_MAX && !rounds.last().is_some_and(Round::is_fast_enough) {
        let round = Round::carry_out(&runtime, &offer, time_of_each());
        round.print();
        let Round {
            half,
            overload,
            single,
        } = &round;
        assert!(
            half.failed.is_empty() && overload.failed.is_empty(),
            "{:?} {:?}",
            half.failed,
            overload.failed
        );
        assert!(
            !overload.accepted.is_empty() && !overload.overloaded.is_empty(),
            "some is done and some refused"
        );
        assert!(
            single.is_answered() * 100 >= single.asked() * 99,
            "{:?}",
            single.refusals()
        );
        rounds.push(round);
    }
    assert!(
        rounds.last().is_some_and(Round::is_fast_enough),
        "too slow in {} rounds",
        rounds.len()
    );
}
