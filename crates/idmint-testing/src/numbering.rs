//! Simulates callers that request numbers, and that repeat a request with the same key until they
//! get a response. Checks all results.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http1::{Answer, Client, post_json, request};
use crate::service::{LONG, Service, StopOnDrop, until};

/// The numbers that callers have received. The key is the name of a series and an idempotency key.
/// The value is the first number and the count.
type Told = HashMap<(String, String), (u64, u64)>;

/// The services to which callers send requests.
pub struct Places {
    /// The addresses of the services. A caller that gets no response sends its request to the next
    /// address.
    addresses: Vec<RwLock<SocketAddr>>,
    stop: AtomicBool,
    asked: AtomicU64,
}

impl Places {
    fn of<'a>(services: impl IntoIterator<Item = &'a Service>) -> Places {
        let addresses = services.into_iter().map(Service::address).map(RwLock::new);
        Places {
            addresses: addresses.collect(),
            stop: AtomicBool::new(false),
            asked: AtomicU64::new(0),
        }
    }

    pub fn stop_at_the_end(&self) -> StopOnDrop<'_> {
        StopOnDrop(&self.stop)
    }

    /// Changes the address at which callers reach a service.
    pub fn move_place(&self, place: usize, address: SocketAddr) {
        *self.addresses[place].write().unwrap() = address;
    }

    fn connection(&self, caller: usize) -> Connection<'_> {
        Connection {
            places: self,
            place: caller % self.addresses.len(),
            client: None,
        }
    }
}

/// A group of callers, and the numbers that they have received.
pub struct Callers {
    /// The number of series that the callers use.
    series: usize,
    /// The maximum count in one request.
    count_max: usize,
    pub places: Places,
    /// The pause of a caller between two requests.
    pause: Duration,
    told: Mutex<Told>,
    /// The reason for each void number. The key is the name of the series and the number.
    voids: Mutex<HashMap<(String, u64), String>>,
}

impl Callers {
    pub fn of<'a>(
        services: impl IntoIterator<Item = &'a Service>,
        series: usize,
        count_max: usize,
    ) -> Callers {
        Callers {
            series,
            count_max,
            places: Places::of(services),
            pause: Duration::ZERO,
            told: Mutex::default(),
            voids: Mutex::default(),
        }
    }

    /// Sets the pause of a caller between two requests.
    #[must_use]
    pub fn pausing(self, pause: Duration) -> Callers {
        Callers { pause, ..self }
    }

    /// Returns the number of different requests that were answered.
    pub fn told(&self) -> usize {
        self.told.lock().unwrap().len()
    }

    /// Sends requests for numbers until the callers are stopped. Most requests have a new
    /// idempotency key. Some repeat an old key, and some void a number.
    pub fn ask(&self, caller: usize) {
        let mut connection = self.places.connection(caller);
        let mut own: Vec<((String, String), u64)> = Vec::new();
        for at in 0.. {
            thread::sleep(self.pause);
            let is_old = at % 5 == 4 && !own.is_empty();
            let ((series, key), count) = if is_old {
                own[at % own.len()].clone()
            } else {
                let place = (
                    format!("series-{}", (caller + at) % self.series),
                    format!("{caller}-{at}"),
                );
                (place, 1 + (caller + 7 * at) as u64 % self.count_max as u64)
            };
            let line = format!("POST /numbers/{series}?count={count}");
            let headers = format!("idempotency-key: {key}\r\n");
            let Some(answer) = connection.insist(|| request(&line, &headers, "")) else {
                return;
            };
            let number: u64 = answer.json()["number"].as_str().unwrap().parse().unwrap();
            let place = (series.clone(), key);
            let before = self
                .told
                .lock()
                .unwrap()
                .insert(place.clone(), (number, count));
            assert!(
                before.is_none_or(|before| before == (number, count)),
                "{place:?} got {before:?}, and now {number}"
            );
            assert!(!is_old || before.is_some());
            own.push((place, count));
            if at % 9 == 8 {
                let reason = format!("by {caller}");
                let target = format!("/numbers/{series}/{number}/void");
                let body = json!({ "reason": reason }).to_string();
                if connection
                    .insist(|| post_json(&target, "", &body))
                    .is_none()
                {
                    return;
                }
                self.voids.lock().unwrap().insert((series, number), reason);
            }
        }
    }

    /// Compares the numbers that the service lists with the numbers that the callers have received.
    /// Returns the count of listed numbers.
    ///
    /// There must be no gap and no duplicate. Each key must still have the numbers that it got
    /// first, and each void number its reason.
    pub fn check(&self, service: &Service, callers: usize) -> u64 {
        let (told, voids) = (self.told.lock().unwrap(), self.voids.lock().unwrap());
        let mut listed = listed(service);
        listed.retain(|series, _| series.starts_with("series-"));
        let mut of_keys: HashMap<(String, String), (u64, u64)> = HashMap::new();
        let (mut total, mut void) = (0, 0);
        for (series, numbers) in &listed {
            for (number, listed) in (1_u64..).zip(numbers) {
                assert_eq!(
                    listed["number"],
                    number.to_string(),
                    "{series} has a hole, or a number twice"
                );
                let place = (series.clone(), listed["key"].as_str().unwrap().to_owned());
                of_keys.entry(place).or_insert((number, 0)).1 += 1;
                let reason = voids.get(&(series.clone(), number));
                assert!(
                    reason.is_none_or(|reason| listed["void"]["reason"] == *reason),
                    "{number} of {series}: {listed}"
                );
                void += reason.iter().len();
                total += 1;
            }
        }
        assert_eq!(
            void,
            voids.len(),
            "every void is of a number that is listed"
        );
        // When a caller is stopped, it may have sent a last request without waiting for the
        // response. The numbers in that response are not in `told`.
        let unheard = of_keys.len() - told.len();
        assert!(
            unheard <= callers,
            "{unheard} keys were given numbers that nobody was told of"
        );
        let mut client = Client::connect(service.address());
        for ((series, key), number) in &*told {
            let line = format!("POST /numbers/{series}?count={}", number.1);
            let headers = format!("idempotency-key: {key}\r\n");
            let answer = answered(&mut client, &request(&line, &headers, ""));
            let again = answer.json()["number"]
                .as_str()
                .map(|number| number.parse().unwrap());
            assert_eq!(
                (answer.status, again),
                (200, Some(number.0)),
                "{series} {key}"
            );
        }
        let of_told: HashMap<(&String, u64), u64> = told
            .iter()
            .map(|((series, _), (number, count))| ((series, *number), *count))
            .collect();
        let of_listed: HashMap<(&String, u64), u64> = of_keys
            .iter()
            .map(|((series, _), (number, count))| ((series, *number), *count))
            .collect();
        assert_eq!(of_told.len(), told.len(), "no two keys have one number");
        assert!(
            of_told
                .iter()
                .all(|(place, count)| of_listed.get(place) == Some(count)),
            "all that was told is listed"
        );
        println!(
            "{total} numbers of {} series for {} keys ({unheard} of them never told), {void} void, {} requests of {callers} callers",
            listed.len(),
            of_keys.len(),
            self.places.asked.load(Ordering::Relaxed)
        );
        assert_eq!(listed.len(), self.series);
        assert!(void > 0, "nothing was made void");
        total
    }
}

/// One caller, which can switch between services.
struct Connection<'a> {
    places: &'a Places,
    place: usize,
    client: Option<Client>,
}

impl Connection<'_> {
    /// Repeats a request until it succeeds. Returns `None` if the callers are stopped before that.
    fn insist(&mut self, request: impl Fn() -> String) -> Option<Answer> {
        while !self.places.stop.load(Ordering::Relaxed) {
            let address = *self.places.addresses[self.place].read().unwrap();
            let client = self.client.take();
            let client =
                client.or_else(|| Client::try_connect_within(address, Duration::from_secs(1)).ok());
            self.places.asked.fetch_add(1, Ordering::Relaxed);
            let answer = client.and_then(|mut client| {
                let answer = client.try_exchange(request()).ok()?;
                Some((client, answer))
            });
            match answer {
                Some((client, answer)) if [200, 201].contains(&answer.status) => {
                    self.client = Some(client);
                    return Some(answer);
                }
                Some((_, answer)) => {
                    assert!([503, 504].contains(&answer.status), "{}", answer.text())
                }
                None => {}
            }
            // The service is starting, stopping or cannot respond. Repeat the request at the next
            // address.
            self.place = (self.place + 1) % self.places.addresses.len();
            thread::sleep(Duration::from_millis(5));
        }
        None
    }
}

/// Returns all numbers that the service lists, for each series.
pub fn listed(service: &Service) -> BTreeMap<String, Vec<Value>> {
    let mut client = Client::connect(service.address());
    let mut listed = BTreeMap::new();
    for info in all_pages(&mut client, "/numbers?", "series") {
        let series = info["series"].as_str().unwrap();
        let numbers = all_pages(
            &mut client,
            &format!("/numbers/{series}?limit=1000&"),
            "numbers",
        );
        let last = numbers.last().unwrap();
        assert_eq!(&info["last"], last.get("last").unwrap_or(&last["number"]));
        listed.insert(series.to_owned(), numbers);
    }
    listed
}

/// Returns the items from all pages of a list. `member` is the name of the list in a page. `target`
/// must end where a query parameter can be appended.
fn all_pages(client: &mut Client, target: &str, member: &str) -> Vec<Value> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let page = answered(client, &request(&format!("GET {target}{after}"), "", "")).json();
        all.extend_from_slice(page[member].as_array().unwrap());
        match page["next"].as_str() {
            Some(next) => after = format!("after={next}"),
            None => return all,
        }
    }
}

/// Repeats a request until the node no longer refuses it, and returns the response. A node that was
/// cut off from its coordinator (etcd) needs a moment to recover.
fn answered(client: &mut Client, request: &str) -> Answer {
    let begin = Instant::now();
    loop {
        let answer = client.exchange(request);
        if answer.status != 503 {
            return answer;
        }
        assert!(begin.elapsed() < LONG, "still refused: {}", answer.text());
        thread::sleep(Duration::from_millis(50));
    }
}

/// Callers that take one number for each order. The numbers come from three series, `series-0` to
/// `series-2`. No number of a series may belong to two orders.
#[derive(Default)]
pub struct Orders {
    begun: AtomicUsize,
    of_numbers: Mutex<BTreeMap<(String, u64), usize>>,
}

impl Orders {
    /// Takes numbers until `is_over` is set or the service is gone.
    pub fn take_numbers(&self, address: SocketAddr, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            let order = self.begun.fetch_add(1, Ordering::Relaxed);
            let series = format!("series-{}", order % 3);
            let headers = format!("idempotency-key: order-{order}\r\n");
            let line = format!("POST /numbers/{series}");
            let ask = || {
                let mut client = Client::try_connect(address).ok()?;
                client.try_exchange(request(&line, &headers, "")).ok()
            };
            let Some(mut answer) = ask() else { return };
            // Status 504 means that the disk was too slow, so it is unknown whether a number was
            // issued. A request with the same key returns that number.
            let is_repeated = answer.status == 504;
            while answer.status == 504 && !is_over.load(Ordering::Relaxed) {
                let Some(next) = ask() else { return };
                answer = next;
            }
            if answer.status == 201 || is_repeated && answer.status == 200 {
                let number: u64 = answer.json()["number"].as_str().unwrap().parse().unwrap();
                let before = self
                    .of_numbers
                    .lock()
                    .unwrap()
                    .insert((series, number), order);
                assert_eq!(before, None, "{line}: {number} was given to another order");
            } else {
                let is_refused = answer.status == 503 || is_repeated && answer.status == 504;
                assert!(is_refused, "{}: {}", answer.status, answer.text());
            }
        }
    }

    /// Takes at least this many numbers with two callers.
    pub fn take_at_least(&self, least: usize, address: SocketAddr) {
        let (wanted, is_over) = (self.taken() + least, AtomicBool::new(false));
        thread::scope(|scope| {
            let _over = StopOnDrop(&is_over);
            let takers = [(); 2].map(|()| scope.spawn(|| self.take_numbers(address, &is_over)));
            self.wait_for(wanted, || takers.iter().all(ScopedJoinHandle::is_finished));
        });
    }

    /// Waits until callers have taken this many numbers, or until `are_finished` is true.
    pub fn wait_for(&self, wanted: usize, are_finished: impl Fn() -> bool) {
        until("callers take numbers", || {
            (self.taken() >= wanted || are_finished()).then_some(())
        });
    }

    /// Returns how many numbers were taken.
    pub fn taken(&self) -> usize {
        self.of_numbers.lock().unwrap().len()
    }

    /// Returns the highest number of a series, or 0.
    pub fn highest_of(&self, series: &str) -> u64 {
        let of_numbers = self.of_numbers.lock().unwrap();
        let numbers = of_numbers.keys().filter(|(of, _)| of == series);
        numbers.map(|(_, number)| *number).max().unwrap_or(0)
    }
}

/// The configuration of the series of the kind `blocks` that [`BlockCallers`] use.
pub const BLOCK_RULES: &str = "[numbers.rows]\npattern = 'rows'\nkind = 'blocks'\nreserve = 1000";

/// A group of callers for one series of the kind `blocks`, in which each request gets a block of
/// numbers, and the numbers that the callers have received.
pub struct BlockCallers {
    pub places: Places,
    /// The first number and the count of each response.
    told: Mutex<Vec<(u64, u64)>>,
}

impl BlockCallers {
    pub fn of<'a>(services: impl IntoIterator<Item = &'a Service>) -> BlockCallers {
        BlockCallers {
            places: Places::of(services),
            told: Mutex::default(),
        }
    }

    pub fn told(&self) -> usize {
        self.told.lock().unwrap().len()
    }

    /// Requests up to 300 numbers at a time until the callers are stopped.
    pub fn ask(&self, caller: usize) {
        let mut connection = self.places.connection(caller);
        for at in 0.. {
            let count = 1 + (caller + at) % 300;
            let line = format!("POST /numbers/rows?count={count}");
            let Some(answer) = connection.insist(|| request(&line, "", "")) else {
                return;
            };
            assert_eq!(answer.status, 201, "{}", answer.text());
            let first = answer.json()["first"].as_str().unwrap().parse().unwrap();
            self.told.lock().unwrap().push((first, count as u64));
        }
    }

    /// Asserts that no number was issued twice. Returns the count of issued numbers, and the count
    /// of numbers below the last one that no caller has received.
    pub fn check(self) -> (u64, u64) {
        let mut told = self.told.into_inner().unwrap();
        told.sort_unstable();
        let (mut next, mut lost) = (1, 0);
        for (first, count) in &told {
            assert!(*first >= next, "{first} was given twice");
            lost += first - next;
            next = first + count;
        }
        let numbers = next - 1 - lost;
        println!(
            "{numbers} numbers in {} blocks, {lost} others below the last one",
            told.len()
        );
        (numbers, lost)
    }
}
