//! Requests to whichever address answers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use tokio::time::sleep;

use super::error::IdsError;
use super::options::IdsOptions;
use crate::client::error::ClientError;
use crate::client::http_client::Client;
use crate::client::request::Request;
use crate::client::tls::Trust;

/// The first pause after no address has answered; each one after it is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The addresses of one service, or of nodes that never mint the same id.
pub(super) struct Addresses {
    addresses: Vec<Address>,
    /// Which one answered last; it is asked first.
    ///
    /// Written by and read by: `ask`. Invariant: a place in `addresses`.
    /// Ordering: `Relaxed`. Another one would do, too.
    /// Tested by: `another_address_answers_and_is_asked_first_from_then_on`.
    first: AtomicUsize,
    timeout: Duration,
}

struct Address {
    url: String,
    client: Client,
    /// Until when it is not asked, and what it said.
    put_off: Mutex<Option<(Instant, IdsError)>>,
}

impl Addresses {
    pub(super) fn new(urls: &[String], options: &IdsOptions) -> Result<Addresses, IdsError> {
        if urls.is_empty() {
            return Err(IdsError::Options("there is no address to ask"));
        }
        let address = |url: &String| {
            let client =
                client_of(url, options).map_err(|cause| IdsError::unanswered(url, cause))?;
            Ok(Address {
                url: url.clone(),
                client,
                put_off: Mutex::new(None),
            })
        };
        let addresses = urls.iter().map(address).collect::<Result<_, IdsError>>()?;
        Ok(Addresses {
            addresses,
            first: AtomicUsize::new(0),
            timeout: options.timeout,
        })
    }

    /// The JSON of an answer to a request that may be sent more than once.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        request: impl Fn(&Client) -> Request<'_>,
    ) -> Result<T, IdsError> {
        let deadline = Instant::now() + self.timeout;
        let mut pause = PAUSE_MIN;
        loop {
            let mut failure = None;
            let first = self.first.load(Ordering::Relaxed);
            for place in 0..self.addresses.len() {
                let at = (first + place) % self.addresses.len();
                let address = &self.addresses[at];
                if let Some(refusal) = address.refusal_that_lasts() {
                    failure.get_or_insert(refusal);
                    continue;
                }
                let sent = request(&address.client)
                    .timeout(self.share_until(deadline))
                    .send()
                    .await;
                match sent.and_then(|answer| answer.json()) {
                    Ok(answer) => {
                        self.first.store(at, Ordering::Relaxed);
                        return Ok(answer.body);
                    }
                    Err(cause) => {
                        let retry_after = cause.retry_after().unwrap_or_default();
                        let error = IdsError::unanswered(&address.url, cause);
                        if !error.is_transient() {
                            return Err(error);
                        }
                        *address.put_off() = Some((Instant::now() + retry_after, error.clone()));
                        failure = Some(error);
                    }
                }
            }
            let wait = self
                .until_one_may_be_asked()
                .max(pause.mul_f64(rand::random_range(0.5..1.0)));
            if Instant::now() + wait > deadline {
                return Err(failure.expect("there is an address, and it failed or is put off"));
            }
            sleep(wait).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Each address gets its share of the time.
    fn share_until(&self, deadline: Instant) -> Duration {
        let addresses = u32::try_from(self.addresses.len()).unwrap_or(u32::MAX);
        let left = deadline.saturating_duration_since(Instant::now());
        (self.timeout / addresses.saturating_add(1))
            .min(left)
            .max(Duration::from_millis(50))
    }

    fn until_one_may_be_asked(&self) -> Duration {
        let until = |address: &Address| {
            let end = address.put_off().as_ref().map(|(end, _)| *end);
            end.map_or(Duration::ZERO, |end| {
                end.saturating_duration_since(Instant::now())
            })
        };
        self.addresses.iter().map(until).min().unwrap_or_default()
    }
}

impl Address {
    fn refusal_that_lasts(&self) -> Option<IdsError> {
        self.put_off()
            .as_ref()
            .filter(|(end, _)| Instant::now() < *end)
            .map(|(_, refusal)| refusal.clone())
    }

    fn put_off(&self) -> MutexGuard<'_, Option<(Instant, IdsError)>> {
        self.put_off.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn client_of(url: &str, options: &IdsOptions) -> Result<Client, ClientError> {
    let trust = match &options.authorities {
        Some(pem) => Trust::default().in_authorities(pem)?,
        None => Trust::default(),
    };
    let client = Client::trusting(trust, url)?;
    match &options.token {
        Some(token) => client.with_token(token),
        None => Ok(client),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::thread;

    use serde_json::Value;

    use super::*;

    /// A service that answers each request with what comes next, the last answer again and again; and the heads of the requests.
    pub(in crate::client::prefetching) fn service(
        answers: Vec<(&'static str, String)>,
    ) -> (String, Arc<Mutex<Vec<String>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let heard = Arc::new(Mutex::new(Vec::new()));
        let requests = Arc::clone(&heard);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let mut head = [0; 4096];
                let length = stream.read(&mut head).unwrap_or(0);
                let mut requests = requests.lock().expect("no panic");
                let (status, body) = &answers[requests.len().min(answers.len() - 1)];
                requests.push(String::from_utf8_lossy(&head[..length]).to_lowercase());
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
                );
                let _ = stream.write_all((head + body).as_bytes());
            }
        });
        (url, heard)
    }

    fn asked(heard: &Mutex<Vec<String>>) -> usize {
        heard.lock().expect("no panic").len()
    }

    async fn ask(addresses: &Addresses) -> Result<Value, IdsError> {
        addresses.ask(|client| client.get("/")).await
    }

    #[tokio::test]
    async fn another_address_answers_and_is_asked_first_from_then_on() {
        let (busy, refusals) = service(vec![(
            "503 Service Unavailable",
            r#"{"retry_after_ms":0}"#.to_owned(),
        )]);
        let (free, answers) = service(vec![("200 OK", "{}".to_owned())]);
        let addresses = Addresses::new(&[busy, free], &IdsOptions::default()).expect("addresses");
        for _ in 0..3 {
            ask(&addresses).await.expect("an answer");
        }
        assert_eq!((asked(&refusals), asked(&answers)), (1, 3));
    }

    #[tokio::test]
    async fn no_address_is_asked_before_the_time_that_it_says() {
        let busy = (
            "503 Service Unavailable",
            r#"{"retry_after_ms":700,"detail":"full"}"#.to_owned(),
        );
        let (url, answers) = service(vec![busy, ("200 OK", "{}".to_owned())]);
        let addresses = Addresses::new(&[url], &IdsOptions::default()).expect("addresses");
        let begun = Instant::now();
        ask(&addresses).await.expect("an answer");
        assert!(
            begun.elapsed() >= Duration::from_millis(700) && asked(&answers) == 2,
            "{:?}",
            begun.elapsed()
        );
    }

    #[tokio::test]
    async fn what_is_refused_is_not_sent_again_and_says_what_to_mend() {
        for (status, words) in [
            ("401 Unauthorized", "http.tokens"),
            ("403 Forbidden", "http.tokens"),
            ("421 Misdirected Request", "http.hosts"),
            (
                "422 Unprocessable Content",
                "this works: POST /ids/siq?type=user",
            ),
        ] {
            let body = r#"{"detail":"no","example":"POST /ids/siq?type=user"}"#.to_owned();
            let (url, answers) = service(vec![(status, body)]);
            let addresses = Addresses::new(&[url], &IdsOptions::default()).expect("addresses");
            let error = ask(&addresses).await.expect_err("a refusal");
            assert!(
                error.to_string().contains(words) && !error.is_transient(),
                "{error}"
            );
            assert_eq!(
                (error.status(), asked(&answers)),
                (status[..3].parse().ok(), 1)
            );
        }
    }

    #[tokio::test]
    async fn it_gives_up_when_the_time_is_up() {
        let options = IdsOptions {
            timeout: Duration::from_millis(300),
            ..IdsOptions::default()
        };
        let addresses = Addresses::new(&["127.0.0.1:1".to_owned()], &options).expect("addresses");
        let error = ask(&addresses).await.expect_err("nobody answers");
        assert!(error.is_transient() && error.status().is_none(), "{error}");
    }
}
