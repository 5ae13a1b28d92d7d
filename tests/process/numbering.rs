//! Callers of numbers who go on asking with a key until they are answered, and the check of all that they were told.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http1::{Answer, Client, post_json, request};
use crate::service::Service;

/// For how long a node refuses that has its coordinator back, on however slow a machine.
const REFUSED_AT_MOST: Duration = Duration::from_secs(60);

/// What callers were told: by series and key, the number and how many.
type Told = HashMap<(String, String), (u64, u64)>;

/// Callers, and what they are told.
pub(crate) struct Callers {
    /// How many series they ask for numbers of.
    series: usize,
    /// How many numbers they ask for at once, at most.
    count_max: usize,
    /// Where they ask; who is not answered goes to the next one.
    places: Vec<RwLock<SocketAddr>>,
    stop: AtomicBool,
    told: Mutex<Told>,
    /// By series and number, why it is void.
    voids: Mutex<HashMap<(String, u64), String>>,
    asked: AtomicU64,
}

/// Tells callers to stop, also where the test has failed: they would ask for ever.
pub(crate) struct StopAtTheEnd<'a>(&'a AtomicBool);

impl Drop for StopAtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Callers {
    pub(crate) fn of<'a>(
        services: impl IntoIterator<Item = &'a Service>,
        series: usize,
        count_max: usize,
    ) -> Callers {
        Callers {
            series,
            count_max,
            places: services
                .into_iter()
                .map(|service| RwLock::new(service.address()))
                .collect(),
            stop: AtomicBool::new(false),
            told: Mutex::default(),
            voids: Mutex::default(),
            asked: AtomicU64::new(0),
        }
    }

    pub(crate) fn stop_at_the_end(&self) -> StopAtTheEnd<'_> {
        StopAtTheEnd(&self.stop)
    }

    /// One of the places is elsewhere now.
    pub(crate) fn move_place(&self, place: usize, address: SocketAddr) {
        *self.places[place].write().unwrap() = address;
    }

    /// How many requests were answered.
    pub(crate) fn told(&self) -> usize {
        self.told.lock().unwrap().len()
    }

    /// Asks until it is told to stop: mostly with new keys, now and then with an old one, and now and then to make a number void.
    pub(crate) fn ask(&self, caller: usize) {
        let mut connection = Connection {
            callers: self,
            place: caller % self.places.len(),
            client: None,
        };
        let mut own: Vec<((String, String), u64)> = Vec::new();
        for at in 0.. {
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
                let (target, body) = (
                    format!("/numbers/{series}/{number}/void"),
                    json!({ "reason": reason }).to_string(),
                );
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

    /// Checks what is listed, against each other and against all that callers were told: no hole, none doubled, each key its first
    /// numbers, and each reason. Returns how many numbers there are.
    pub(crate) fn check(self, service: &Service, callers: usize) -> u64 {
        let (told, voids) = (
            self.told.into_inner().unwrap(),
            self.voids.into_inner().unwrap(),
        );
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
        // Whoever was told to stop may have sent a last request.
        let unheard = of_keys.len() - told.len();
        assert!(
            unheard <= callers,
            "{unheard} keys were given numbers that nobody was told of"
        );
        let mut client = Client::connect(service.address());
        for ((series, key), number) in &told {
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
            self.asked.into_inner()
        );
        assert_eq!(listed.len(), self.series);
        assert!(void > 0, "nothing was made void");
        total
    }
}

/// One caller on its way from place to place.
struct Connection<'a> {
    callers: &'a Callers,
    place: usize,
    client: Option<Client>,
}

impl Connection<'_> {
    /// Asks the same until it is done; `None` when it is to stop before.
    fn insist(&mut self, request: impl Fn() -> String) -> Option<Answer> {
        while !self.callers.stop.load(Ordering::Relaxed) {
            let address = *self.callers.places[self.place].read().unwrap();
            let connected = match self.client.take() {
                Some(client) => Ok(client),
                None => Client::try_connect_within(address, Duration::from_secs(1)),
            };
            self.callers.asked.fetch_add(1, Ordering::Relaxed);
            let answer = connected.map_err(drop).and_then(|mut client| {
                let answer = client.try_exchange(request()).map_err(drop)?;
                Ok((client, answer))
            });
            match answer {
                Ok((client, answer)) if [200, 201].contains(&answer.status) => {
                    self.client = Some(client);
                    return Some(answer);
                }
                Ok((_, answer)) => {
                    assert!([503, 504].contains(&answer.status), "{}", answer.text())
                }
                Err(()) => {}
            }
            // It starts, or ends, or cannot say: the same elsewhere.
            self.place = (self.place + 1) % self.callers.places.len();
            thread::sleep(Duration::from_millis(5));
        }
        None
    }
}

/// By series, everything that is listed.
pub(crate) fn listed(service: &Service) -> BTreeMap<String, Vec<Value>> {
    let mut client = Client::connect(service.address());
    let mut listed = BTreeMap::new();
    for info in all_pages(&mut client, "/numbers?", "series") {
        let series = info["series"].as_str().unwrap();
        let numbers = all_pages(
            &mut client,
            &format!("/numbers/{series}?limit=1000&"),
            "numbers",
        );
        assert_eq!(info["last"], numbers.last().unwrap()["number"]);
        listed.insert(series.to_owned(), numbers);
    }
    listed
}

/// What all pages of a list have under this member; `target` ends where a parameter may follow.
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

/// The answer to a request that is sent again while the node refuses: whoever was cut off a moment ago is not back at once.
fn answered(client: &mut Client, request: &str) -> Answer {
    let begin = Instant::now();
    loop {
        let answer = client.exchange(request);
        if answer.status != 503 {
            return answer;
        }
        assert!(
            begin.elapsed() < REFUSED_AT_MOST,
            "still refused: {}",
            answer.text()
        );
        thread::sleep(Duration::from_millis(50));
    }
}

/// How the series of blocks is configured that [`BlockCallers`] ask for.
pub(crate) const BLOCK_RULES: &str =
    "[numbers.rows]\npattern = 'rows'\nkind = 'blocks'\nreserve = 1000";

/// Callers for numbers of one series of blocks, and what they are told.
pub(crate) struct BlockCallers {
    places: Vec<RwLock<SocketAddr>>,
    stop: AtomicBool,
    /// From which number on how many.
    told: Mutex<Vec<(u64, u64)>>,
}

impl BlockCallers {
    pub(crate) fn of<'a>(services: impl IntoIterator<Item = &'a Service>) -> BlockCallers {
        let places = services
            .into_iter()
            .map(|service| RwLock::new(service.address()))
            .collect();
        BlockCallers {
            places,
            stop: AtomicBool::new(false),
            told: Mutex::default(),
        }
    }

    pub(crate) fn stop_at_the_end(&self) -> StopAtTheEnd<'_> {
        StopAtTheEnd(&self.stop)
    }

    pub(crate) fn move_place(&self, place: usize, address: SocketAddr) {
        *self.places[place].write().unwrap() = address;
    }

    pub(crate) fn told(&self) -> usize {
        self.told.lock().unwrap().len()
    }

    /// Asks until it is told to stop, for up to 300 numbers at once.
    pub(crate) fn ask(&self, caller: usize) {
        let mut place = caller;
        let mut connection: Option<Client> = None;
        for at in 0.. {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            place %= self.places.len();
            let (address, count) = (*self.places[place].read().unwrap(), 1 + (caller + at) % 300);
            let client = connection
                .take()
                .or_else(|| Client::try_connect_within(address, Duration::from_secs(1)).ok());
            let answered = client.and_then(|mut client| {
                let asked = request(&format!("POST /numbers/rows?count={count}"), "", "");
                let answer = client.try_exchange(asked).ok()?;
                Some((client, answer))
            });
            match answered {
                Some((client, answer)) if answer.status == 201 => {
                    let first = answer.json()["first"].as_str().unwrap().parse().unwrap();
                    self.told.lock().unwrap().push((first, count as u64));
                    connection = Some(client);
                    continue;
                }
                Some((_, answer)) => {
                    assert!([503, 504].contains(&answer.status), "{}", answer.text())
                }
                None => {}
            }
            place += 1;
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Checks that no number was told twice; returns how many were, and how many below the last one were told to nobody.
    pub(crate) fn check(self) -> (u64, u64) {
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
