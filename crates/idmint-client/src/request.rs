//! A single request, with its retries.

use std::borrow::Cow;
use std::mem;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use reqwest::{RequestBuilder, StatusCode};
use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};
use tokio::time::{Instant, sleep};

use super::error::{ClientError, TransportError, find_cause};
use super::retry::Retry;

/// The time limit of one attempt.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The characters that are percent-encoded in a path segment. Only the unreserved characters of RFC
/// 3986 are not encoded.
const NOT_IN_A_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A request under construction.
pub(super) struct Request<'a> {
    retry: &'a Retry,
    token: Option<&'a str>,
    http: RequestBuilder,
    timeout: Duration,
    body_max: usize,
    /// `true` if sending the request again has no further effect, so that it may be retried.
    is_repeatable: bool,
}

/// A response whose body has been read.
struct Response {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

/// A successful response.
#[derive(Debug)]
pub struct Answer<T> {
    /// `true` if this request had no effect, because the service had handled the same request
    /// before.
    pub is_replayed: bool,
    /// The body.
    pub body: T,
}

impl<'a> Request<'a> {
    /// Creates a request that is sent once, unless it gets an idempotency key or is marked as [safe
    /// to repeat](Request::repeatedly).
    pub(super) fn new(
        retry: &'a Retry,
        token: Option<&'a str>,
        http: RequestBuilder,
    ) -> Request<'a> {
        Request {
            retry,
            token,
            http: match token {
                Some(token) => http.bearer_auth(token),
                None => http,
            },
            timeout: ANSWER_TIMEOUT,
            body_max: usize::MAX,
            is_repeatable: false,
        }
    }

    /// Sets an idempotency key. The request then takes effect only once, however often it is sent.
    ///
    /// # Errors
    /// Returns [`ClientError::NoKey`] if the key is empty or not visible ASCII.
    pub(super) fn idempotency_key(self, key: &str) -> Result<Request<'a>, ClientError> {
        let is_good = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_good {
            return Err(ClientError::NoKey);
        }
        Ok(self.header("idempotency-key", key).repeatedly())
    }

    /// Marks the request as safe to repeat.
    pub(super) fn repeatedly(self) -> Request<'a> {
        Request {
            is_repeatable: true,
            ..self
        }
    }

    pub(super) fn query(self, parameters: &impl Serialize) -> Request<'a> {
        self.with(|http| http.query(parameters))
    }

    pub(super) fn accept(self, media_type: &str) -> Request<'a> {
        self.header(ACCEPT.as_str(), media_type)
    }

    /// Sets the time limit of each attempt, from connecting to the last byte of the response.
    pub(super) fn timeout(self, timeout: Duration) -> Request<'a> {
        Request { timeout, ..self }
    }

    /// Limits the length of the body of the response in bytes.
    pub(super) fn body_max(self, body_max: usize) -> Request<'a> {
        Request { body_max, ..self }
    }

    pub(super) fn body(self, media_type: &str, body: Vec<u8>) -> Request<'a> {
        self.header(CONTENT_TYPE.as_str(), media_type)
            .with(|http| http.body(body))
    }

    fn header(self, name: &str, value: &str) -> Request<'a> {
        self.with(|http| http.header(name, value))
    }

    fn with(self, change: impl FnOnce(RequestBuilder) -> RequestBuilder) -> Request<'a> {
        Request {
            http: change(self.http),
            ..self
        }
    }

    /// Sends the request and returns the response if its status is a success.
    pub(super) async fn send(self) -> Result<Answer<Vec<u8>>, ClientError> {
        let begun = Instant::now();
        let mut attempts = self.retry.begin();
        loop {
            let outcome = self.attempt().await;
            let error = match outcome.and_then(|response| self.successful(response)) {
                Err(error) if self.is_repeatable => error,
                final_outcome => return final_outcome,
            };
            let Some(pause) = attempts.next_pause(begun.elapsed(), &error) else {
                return Err(error);
            };
            sleep(pause).await;
        }
    }

    /// Sends the request once and parses the JSON of the response, whatever its status. If the body
    /// is not a JSON value of type `T`, returns the error for the status, or
    /// [`ClientError::NotIdmint`] if the status is a success.
    pub(super) async fn send_for_any_status<T: DeserializeOwned>(self) -> Result<T, ClientError> {
        let response = self.attempt().await?;
        match serde_json::from_slice(&response.body) {
            Ok(value) => Ok(value),
            Err(error) => self
                .successful(response)
                .and(Err(ClientError::not_idmint(error))),
        }
    }

    /// Sends the request once and reads the whole response.
    async fn attempt(&self) -> Result<Response, ClientError> {
        let http = self.http.try_clone();
        let http = http.expect("the parts of the request are valid, and its body is no stream");
        let (client, request) = http.timeout(self.timeout).build_split();
        let request = request.expect("adding a timeout cannot fail");
        let url = request.url().to_string();
        let exchange = async {
            let mut response = client.execute(request).await?;
            let mut body = Vec::new();
            while let Some(part) = response.chunk().await? {
                body.extend_from_slice(&part);
                if body.len() > self.body_max {
                    return Ok(None);
                }
            }
            Ok(Some(Response {
                status: response.status(),
                headers: mem::take(response.headers_mut()),
                body,
            }))
        };
        let error: reqwest::Error = match exchange.await {
            Ok(Some(response)) => return Ok(response),
            Ok(None) => {
                let cause = "the body is too long".into();
                return Err(ClientError::Unreachable { url, cause });
            }
            Err(error) => error,
        };
        if error.is_builder() {
            return Err(ClientError::NotAnAddress(url));
        }
        if error.is_timeout() {
            let cause = format!("no complete response within {:?}", self.timeout).into();
            return Err(ClientError::Unreachable { url, cause });
        }
        let transport = TransportError(error);
        Err(match find_cause(&transport) {
            Some(distrust @ rustls::Error::InvalidCertificate(_)) => ClientError::Untrusted {
                url,
                cause: distrust.clone(),
            },
            _ => ClientError::Unreachable {
                url,
                cause: transport.into(),
            },
        })
    }

    fn successful(&self, response: Response) -> Result<Answer<Vec<u8>>, ClientError> {
        let (status, headers) = (response.status, &response.headers);
        if status.is_informational() {
            let error = serde_json::Error::custom("the response is not a final one");
            return Err(ClientError::NotIdmint(error));
        }
        if !status.is_success() {
            let error = ClientError::from_response(status, headers, &response.body, self.token);
            return Err(error);
        }
        Ok(Answer {
            is_replayed: headers.contains_key("idempotency-replayed"),
            body: response.body,
        })
    }
}

impl Answer<Vec<u8>> {
    /// Parses the body as JSON.
    pub(super) fn json<T: DeserializeOwned>(self) -> Result<Answer<T>, ClientError> {
        let body = serde_json::from_slice(&self.body).map_err(ClientError::not_idmint)?;
        Ok(Answer {
            is_replayed: self.is_replayed,
            body,
        })
    }
}

/// Encodes a text as one segment of a path.
///
/// URL parsers remove the segments `.` and `..`, even if the dots are written as `%2E`, so a
/// request for an id `..` would reach another resource. The dots are therefore encoded twice, and
/// the service responds that no such resource exists.
pub(super) fn segment(text: &str) -> Cow<'_, str> {
    match text {
        "." => "%252E".into(),
        ".." => "%252E%252E".into(),
        _ => utf8_percent_encode(text, NOT_IN_A_SEGMENT).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::Client;

    /// Starts a service that is busy for the first `refusals` requests, and returns a client for
    /// it.
    fn busy_service(refusals: usize) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let mut stream = stream.expect("a connection");
                let _ = stream.read(&mut [0; 4096]);
                let status = if number < refusals {
                    "503 Service Unavailable"
                } else {
                    "200 OK"
                };
                let answer = format!(
                    "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{{}}"
                );
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Client::new(url)
            .expect("a client")
            .retrying(Retry::within(Duration::from_secs(60), |_| {}))
    }

    #[tokio::test]
    async fn what_changes_nothing_or_has_a_key_is_sent_until_it_is_answered() {
        assert!(busy_service(2).get("/").send().await.is_ok());
        let service = busy_service(1);
        let keyed = service
            .post("/")
            .idempotency_key("k")
            .expect("a key")
            .body("text/plain", vec![1]);
        assert!(keyed.send().await.is_ok());
    }

    #[tokio::test]
    async fn what_would_be_done_twice_is_sent_once() {
        assert!(matches!(
            busy_service(1).post("/").send().await,
            Err(ClientError::Busy(_))
        ));
    }

    #[tokio::test]
    async fn a_refused_connection_is_reported_without_the_layers_of_reqwest() {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr());
        let client = Client::new(free.expect("a port").to_string()).expect("a client");
        let error = client.get("/").send().await.expect_err("no service");
        let ClientError::Unreachable { cause, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(cause.to_string(), "client error (Connect)");
        assert!(cause.source().is_some());
    }

    /// Returns a client for a service that sends these responses on its only connection, which
    /// stays open.
    fn client_of(responses: &'static [&'static str]) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            for response in responses {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(response.as_bytes());
            }
            let _ = stream.read_to_end(&mut Vec::new());
        });
        Client::new(address.to_string()).expect("a client")
    }

    #[tokio::test]
    async fn the_timeout_covers_the_head_and_the_body_of_a_response() {
        let half: &[&str] = &["HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n{}"];
        for responses in [&[], half] {
            let client = client_of(responses);
            let request = client.get("/").timeout(Duration::from_millis(50));
            let error = request.send().await.expect_err("no whole response");
            let ClientError::Unreachable { url, cause } = error else {
                panic!("{error}")
            };
            assert!(url.starts_with("http://127.0.0.1:"), "{url}");
            assert_eq!(cause.to_string(), "no complete response within 50ms");
        }
    }

    #[tokio::test]
    async fn a_connection_is_kept_for_the_next_request() {
        let client = client_of(&["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"; 2]);
        for _ in 0..2 {
            client.get("/").send().await.expect("a response");
        }
    }

    #[tokio::test]
    async fn a_redirection_is_told_and_not_followed() {
        let client = client_of(&[
            "HTTP/1.1 301 Moved Permanently\r\nlocation: https://there/\r\ncontent-length: 0\r\n\r\n",
        ]);
        let error = client
            .get("/")
            .send()
            .await
            .expect_err("no answer of the service");
        assert_eq!(
            error.to_string(),
            "301 Moved Permanently: the service redirects to https://there/; use that address"
        );
    }

    #[test]
    fn a_key_that_cannot_be_sent_is_told_and_not_cut_short() {
        let client = Client::new("127.0.0.1:1").expect("a client");
        for key in ["", "two words", "two\nlines", "ключ"] {
            let refused = client.post("/").idempotency_key(key).err().expect(key);
            assert!(matches!(refused, ClientError::NoKey), "{refused}");
        }
    }

    #[test]
    fn parameters_follow_one_another() {
        let client = Client::new("127.0.0.1:1").expect("a client");
        let request = client
            .post("/ids/x")
            .query(&[("count", 2)])
            .query(&[("a", ""); 0])
            .query(&[("prefix", "ä &")]);
        let url = request.http.build().expect("a request").url().to_string();
        assert_eq!(url, "http://127.0.0.1:1/ids/x?count=2&prefix=%C3%A4+%26");
    }

    #[test]
    fn no_text_leaves_its_place_in_a_path() {
        assert_eq!(segment("snowflake").to_string(), "snowflake");
        assert_eq!(
            segment("a/b?c#d e%2f").to_string(),
            "a%2Fb%3Fc%23d%20e%252f"
        );
        let client = Client::new("127.0.0.1:1/below").expect("a client");
        for text in [".", "..", "%2e%2E", ".%2e"] {
            let request = client.get(&format!("/ids/{}", segment(text)));
            let url = request.http.build().expect("a request").url().to_string();
            let rest = url.strip_prefix("http://127.0.0.1:1/below/ids/");
            assert!(rest.is_some_and(|rest| !rest.is_empty()), "{url}");
        }
    }
}
