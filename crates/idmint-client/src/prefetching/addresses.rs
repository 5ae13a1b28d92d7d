//! Requests to several addresses with failover.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::de::{DeserializeOwned, Error};
use tokio::time::sleep;

use super::error::IdsError;
use super::options::IdsOptions;
use crate::error::ClientError;
use crate::http_client::Client;
use crate::request::Request;
use crate::tls::Trust;

/// The pause after the first failure. Each later pause is twice as long, up to `PAUSE_MAX`.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The longest wait before a retry that a service can impose. If a service asks for a longer wait,
/// the client waits only this long.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

/// The maximum number of ids in an ordinary request. The service counts a request for more ids as
/// bulk work, which it refuses first when it is busy.
pub(super) const BULK: u32 = 1024;

/// The longest body of a response, in bytes.
const BODY_MAX: usize = 64 << 20;

/// Returns the pause after this number of failures in a row. The pause doubles with each failure up
/// to `PAUSE_MAX`, and is then multiplied by a random factor from 0.5 to 1.
pub(super) fn backoff(failures: u32) -> Duration {
    let pause = match failures {
        0 => Duration::ZERO,
        1..=6 => PAUSE_MIN * (1 << (failures - 1)),
        _ => PAUSE_MAX,
    };
    pause.mul_f64(rand::random_range(0.5..1.0))
}

/// The addresses to which requests are sent. All belong to one service, or to nodes that never mint
/// the same id. For appends, all must belong to one service, because services share no ledgers.
pub(super) struct Addresses {
    addresses: Vec<Address>,
    /// The index of the address that responded last. The next request tries it first.
    ///
    /// Written by and read by: `ask`. Invariant: an index into `addresses`.
    /// Ordering: `Relaxed`, because any other address would work, too.
    /// Tested by: `another_address_answers_and_is_asked_first_from_then_on`.
    first: AtomicUsize,
    /// `true` after a call timed out, until an address responds. While it is `true`, calls fail
    /// without retries.
    ///
    /// Written by and read by: `ask`. Invariant: none, because a stale value costs one retry.
    /// Ordering: `Relaxed`, because it guards no other data.
    /// Tested by: `a_call_fails_at_once_after_one_timed_out`.
    is_away: AtomicBool,
    timeout: Duration,
}

struct Address {
    url: String,
    client: Client,
    /// The pause that all calls share. It follows an error that concerns all calls, such as a
    /// broken connection.
    pause: Pause,
}

/// The time for which an address receives no requests.
#[derive(Default)]
struct Pause(Mutex<Health>);

/// The state of an address: the failures since it last responded.
#[derive(Default)]
struct Health {
    failures: u32,
    /// The last error, and the time before which this address receives no request.
    put_off: Option<(Instant, IdsError)>,
}

impl Addresses {
    pub(super) fn new(urls: &[String], options: &IdsOptions) -> Result<Addresses, IdsError> {
        if urls.is_empty() {
            return Err(IdsError::Options("at least one service address is needed"));
        }
        let address = |url: &String| {
            // Hide the user name and the password, because error messages contain this text.
            let shown = url.rsplit('@').next().expect("there is a last part");
            let client =
                client_of(url, options).map_err(|cause| IdsError::unanswered(shown, cause))?;
            Ok(Address {
                url: url.clone(),
                client,
                pause: Pause::default(),
            })
        };
        let addresses = urls.iter().map(address).collect::<Result<_, IdsError>>()?;
        Ok(Addresses {
            addresses,
            first: AtomicUsize::new(0),
            is_away: AtomicBool::new(false),
            timeout: options.timeout,
        })
    }

    /// Sends a request to one address after another, until one responds or the timeout has passed.
    /// Returns the response as converted by `parse`, which returns `None` if the JSON does not come
    /// from idmint. The request must be safe to repeat, because several addresses may receive it.
    ///
    /// If `count` exceeds [`BULK`] and an address responds with 503, each address is tried only
    /// once, and the call fails with that 503.
    pub(super) async fn ask<T: DeserializeOwned, U>(
        &self,
        count: u32,
        request: impl Fn(&Client) -> Request<'_>,
        parse: impl Fn(T) -> Option<U>,
    ) -> Result<U, IdsError> {
        let deadline = Instant::now() + self.timeout;
        // If a service is too busy for a bulk request, which asks for more than 1024 ids, the call
        // fails. The caller can then request fewer ids.
        let is_busy = |error: &IdsError| count > BULK && error.status() == Some(503);
        let mut outcome_unknown = false;
        let mut untrusted = None;
        // If a service cannot handle this request but may handle others, only this call pauses
        // before it uses that service again. The key is the index of the service's address.
        let mut own: HashMap<usize, Pause> = HashMap::new();
        loop {
            let mut failure: Option<IdsError> = None;
            let first = self.first.load(Ordering::Relaxed);
            for place in 0..self.addresses.len() {
                let at = (first + place) % self.addresses.len();
                let address = &self.addresses[at];
                let share = self.share_until(deadline);
                let pause = own.get(&at).unwrap_or(&address.pause);
                let error = match pause.begin(share) {
                    Some(lasting) => lasting,
                    None => {
                        let request = request(&address.client).timeout(share).body_max(BODY_MAX);
                        let parsed = request.send().await.and_then(|answer| {
                            let parsed = parse(answer.json()?.body);
                            parsed.ok_or_else(|| {
                                ClientError::NotIdmint(serde_json::Error::custom("wrong values"))
                            })
                        });
                        let cause = match parsed {
                            Ok(answer) => {
                                address.pause.answers();
                                self.first.store(at, Ordering::Relaxed);
                                self.is_away.store(false, Ordering::Relaxed);
                                return Ok(answer);
                            }
                            Err(cause) => cause,
                        };
                        let retry_after = cause.retry_after().unwrap_or_default();
                        let error = IdsError::unanswered(&address.url, cause);
                        outcome_unknown |= error.outcome_is_unknown();
                        // Do not end the call after an untrusted certificate, because another
                        // address may have a trusted one.
                        let ends_call = !error.is_bad_response() && !error.is_untrusted();
                        if ends_call && !error.is_transient() {
                            address.pause.answers();
                            return Err(error.of_call(outcome_unknown));
                        }
                        if error.is_of_request() {
                            address.pause.answers();
                            self.is_away.store(false, Ordering::Relaxed);
                            own.entry(at).or_default().fails(retry_after, &error);
                        } else {
                            own.remove(&at);
                            address.pause.fails(retry_after, &error);
                        }
                        error
                    }
                };
                if error.is_untrusted() {
                    untrusted = Some(error.clone());
                }
                // Prefer an error that may pass to one that lasts. Prefer an error with a slug,
                // which is the name of a problem, to an error without one. An error without a slug
                // comes from a proxy, or from an address that is down.
                let is_better = |known: &IdsError| {
                    is_busy(&error) || (!known.has_slug() && error.is_of_request())
                };
                if failure.as_ref().is_none_or(|known| {
                    !known.is_transient() || (is_better(known) && !is_busy(known))
                }) {
                    failure = Some(error);
                }
            }
            let failure = failure.expect("there is an address, and it failed or is put off");
            let wait = self.until_one_may_be_asked(&own);
            let is_late = Instant::now() + wait > deadline;
            if self.is_away.load(Ordering::Relaxed)
                || is_late
                || !failure.is_transient()
                || is_busy(&failure)
                || failure.waits_for_operator()
            {
                if is_late && !failure.is_of_request() {
                    self.is_away.store(true, Ordering::Relaxed);
                }
                return Err(failure.of_call(outcome_unknown).beside(untrusted));
            }
            sleep(wait).await;
        }
    }

    /// Returns the timeout of one attempt. With 4 addresses, it is a fifth of the call's time
    /// limit, so that a fifth is left after all addresses were tried. The timeout is shorter near
    /// `deadline`, but at least 50 ms.
    fn share_until(&self, deadline: Instant) -> Duration {
        let addresses = u32::try_from(self.addresses.len()).unwrap_or(u32::MAX);
        let left = deadline.saturating_duration_since(Instant::now());
        (self.timeout / addresses.saturating_add(1))
            .min(left)
            .max(Duration::from_millis(50))
    }

    /// Returns the time until this call may send a request to at least one address. If `own` has a
    /// pause for an address, that pause counts instead of the pause that all calls share.
    fn until_one_may_be_asked(&self, own: &HashMap<usize, Pause>) -> Duration {
        let pauses = self.addresses.iter().enumerate();
        let pauses = pauses.map(|(at, address)| own.get(&at).unwrap_or(&address.pause));
        pauses.map(Pause::left).min().unwrap_or_default()
    }
}

impl Pause {
    /// Returns `None` if the caller may send one request to this address now, with the timeout
    /// `share`. Otherwise returns the last error of the address. After a failure, only one caller
    /// tries the address again, and other callers do not use it for the time `share`.
    fn begin(&self, share: Duration) -> Option<IdsError> {
        let mut health = self.health();
        let (end, error) = health.put_off.as_mut()?;
        if Instant::now() < *end {
            return Some(error.clone());
        }
        *end = Instant::now() + share;
        None
    }

    fn answers(&self) {
        *self.health() = Health::default();
    }

    fn fails(&self, retry_after: Duration, error: &IdsError) {
        let mut health = self.health();
        health.failures = health.failures.saturating_add(1);
        let wait = retry_after
            .min(RETRY_AFTER_MAX)
            .max(backoff(health.failures));
        health.put_off = Some((Instant::now() + wait, error.clone()));
    }

    fn left(&self) -> Duration {
        let end = self.health().put_off.as_ref().map(|(end, _)| *end);
        end.map_or(Duration::ZERO, |end| {
            end.saturating_duration_since(Instant::now())
        })
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn client_of(url: &str, options: &IdsOptions) -> Result<Client, ClientError> {
    let trust = match &options.authorities {
        Some(pem) => Trust::default().in_authorities(pem)?,
        None => Trust::default(),
    };
    let client = Client::trusting(trust, url)?;
    match &options.token {
        Some(token) => client.with_token(token.trim()),
        None => Ok(client),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::thread;

    use rustls::crypto::ring;
    use rustls::pki_types::PrivateKeyDer;
    use rustls::{ServerConfig, ServerConnection};
    use serde_json::Value;

    use super::*;

    /// Starts a service that sends `answers` in order and then repeats the last one. Also returns
    /// the heads of the requests that it has received.
    pub(in crate::prefetching) fn service(
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
        addresses.ask(1, |client| client.get("/"), Some).await
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
    async fn a_call_fails_at_once_after_one_timed_out() {
        let busy = r#"{"retry_after_ms":18446744073709551615}"#.to_owned();
        let (url, answers) = service(vec![("503 Service Unavailable", busy)]);
        let addresses = Addresses::new(&[url], &IdsOptions::default()).expect("addresses");
        for _ in 0..100 {
            assert!(ask(&addresses).await.expect_err("busy").is_transient());
        }
        assert_eq!(asked(&answers), 1);
    }

    #[tokio::test]
    async fn a_503_about_one_request_keeps_no_other_request_from_the_address() {
        let busy = "503 Service Unavailable";
        let held = r#"{"type":"/problems/numbers-held"}"#.to_owned();
        let importing = r#"{"type":"/problems/ledger-importing"}"#.to_owned();
        let behind = r#"{"type":"/problems/clock-behind","retry_after_ms":20000}"#.to_owned();
        let done = ("200 OK", "{}".to_owned());
        let (url, answers) = service(vec![
            (busy, held),
            done.clone(),
            (busy, behind),
            done.clone(),
            ("409 Conflict", importing),
            done.clone(),
            ("408 Request Timeout", "{}".to_owned()),
            done,
        ]);
        let addresses = Addresses::new(&[url], &IdsOptions::default()).expect("addresses");
        for _ in 0..3 {
            assert!(ask(&addresses).await.expect_err("busy").is_transient());
            ask(&addresses).await.expect("an answer");
        }
        assert_eq!(
            asked(&answers),
            6,
            "two wait for an operator, and the other one longer than the timeout"
        );
        ask(&addresses).await.expect("an answer to the retry");
        assert_eq!(asked(&answers), 8, "a 408 is retried");
    }

    #[tokio::test]
    async fn a_503_that_needs_an_operator_ends_a_call_although_another_address_is_down() {
        let held = r#"{"type":"/problems/numbers-held"}"#.to_owned();
        let proxy = service(vec![("502 Bad Gateway", String::new())]).0;
        for down in ["127.0.0.1:1".to_owned(), proxy] {
            let (url, answers) = service(vec![
                ("503 Service Unavailable", held.clone()),
                ("200 OK", "{}".to_owned()),
            ]);
            let addresses = Addresses::new(&[down, url], &IdsOptions::default());
            let addresses = addresses.expect("addresses");
            let error = ask(&addresses).await.expect_err("numbers are held");
            assert_eq!((error.status(), asked(&answers)), (Some(503), 1), "{error}");
            ask(&addresses).await.expect("an answer");
        }
    }

    #[tokio::test]
    async fn another_address_answers_for_one_that_is_no_idmint_service() {
        let (other, _) = service(vec![("200 OK", "<html>".to_owned())]);
        let (url, _) = service(vec![("200 OK", "{}".to_owned())]);
        let addresses = Addresses::new(&[other.clone(), url], &IdsOptions::default());
        ask(&addresses.expect("addresses"))
            .await
            .expect("an answer");
        let addresses = Addresses::new(&[other], &IdsOptions::default()).expect("an address");
        let error = ask(&addresses).await.expect_err("no service");
        assert!(
            error.is_bad_response() && error.outcome_is_unknown(),
            "{error}"
        );
    }

    /// Starts a service whose certificate no client trusts.
    fn untrusted_service() -> String {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a pair");
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key);
        let config = Arc::new(config.expect("a certificate and its key"));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("https://{}", listener.local_addr().expect("an address"));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut tls = ServerConnection::new(Arc::clone(&config)).expect("a connection");
                let _ = tls.complete_io(&mut stream.expect("a connection"));
            }
        });
        url
    }

    #[tokio::test]
    async fn an_untrusted_certificate_keeps_no_call_from_another_address() {
        let (url, answers) = service(vec![("200 OK", "{}".to_owned())]);
        let untrusted = untrusted_service();
        let open = |urls: &[&str], timeout| {
            let urls: Vec<String> = urls.iter().copied().map(str::to_owned).collect();
            let options = IdsOptions {
                timeout: Duration::from_secs(timeout),
                ..IdsOptions::default()
            };
            Addresses::new(&urls, &options).expect("addresses")
        };
        let addresses = open(&[&untrusted, &url], 60);
        for _ in 0..3 {
            ask(&addresses).await.expect("an answer");
        }
        assert_eq!(asked(&answers), 3);

        // This timeout would pass before the call ended if the client retried.
        let alone = open(&[&untrusted], 86_400);
        for _ in 0..2 {
            let error = ask(&alone).await.expect_err("no trust");
            let is_refused = !error.is_transient() && !error.is_bad_response();
            let text = error.to_string();
            assert!(
                is_refused && text.matches("authorities").count() == 1,
                "{text}"
            );
            assert!(!error.outcome_is_unknown(), "{text}");
        }

        let down = "http://127.0.0.1:1";
        for urls in [[&untrusted, down], [down, &untrusted]] {
            let error = ask(&open(&urls, 1)).await.expect_err("nobody answers");
            let text = error.to_string();
            assert!(
                error.is_transient() && text.contains("set authorities"),
                "{text}"
            );
        }
    }

    #[test]
    fn no_error_repeats_the_password_of_a_url() {
        for url in ["http://user:hunter2@127.0.0.1", "ftp://user:hunter2@x:port"] {
            let refused = Addresses::new(&[url.to_owned()], &IdsOptions::default());
            let error = refused.err().expect("a password");
            let told = format!("{error} {error:?}");
            assert!(!told.contains("hunter2"), "{told}");
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
