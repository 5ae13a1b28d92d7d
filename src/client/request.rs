//! One request, sent until there is an answer.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Method, Request as HttpRequest, Response};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use super::error::ClientError;
use super::retry::Retry;
use super::transport::Transport;

/// How long a service may take for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// What does not stand for itself between two slashes of a path (RFC 3986, unreserved characters).
const NOT_IN_A_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A request in the making.
pub(super) struct Request<'a> {
    transport: &'a Transport,
    retry: &'a Retry,
    url: String,
    http: HttpRequest<Full<Bytes>>,
    timeout: Duration,
    /// Whether the service does the same once if it is asked twice.
    is_repeatable: bool,
}

/// What came back.
#[derive(Debug)]
pub struct Answer<T> {
    /// Whether the same request was done before, so nothing was done now.
    pub is_replayed: bool,
    /// The body.
    pub body: T,
}

impl<'a> Request<'a> {
    /// A request that is sent once, unless it gets a key or may be sent [repeatedly](Request::repeatedly).
    pub(super) fn new(
        transport: &'a Transport,
        retry: &'a Retry,
        method: Method,
        url: String,
    ) -> Request<'a> {
        let mut http = HttpRequest::new(Full::default());
        *http.method_mut() = method;
        Request {
            transport,
            retry,
            url,
            http,
            timeout: ANSWER_TIMEOUT,
            is_repeatable: false,
        }
    }

    /// With this key what is asked for is done once, however often it must be sent.
    ///
    /// # Errors
    /// [`ClientError::NoKey`].
    pub(super) fn idempotency_key(self, key: &str) -> Result<Request<'a>, ClientError> {
        let is_good = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
        let key = is_good
            .then(|| HeaderValue::from_str(key).ok())
            .flatten()
            .ok_or(ClientError::NoKey)?;
        Ok(self
            .header(HeaderName::from_static("idempotency-key"), key)
            .repeatedly())
    }

    /// The same request again changes nothing, so it may be sent again.
    pub(super) fn repeatedly(self) -> Request<'a> {
        Request {
            is_repeatable: true,
            ..self
        }
    }

    pub(super) fn query(mut self, parameters: &impl Serialize) -> Request<'a> {
        let parameters = serde_urlencoded::to_string(parameters)
            .expect("names with texts or numbers always serialize");
        if !parameters.is_empty() {
            self.url
                .push(if self.url.contains('?') { '&' } else { '?' });
            self.url.push_str(&parameters);
        }
        self
    }

    pub(super) fn accept(self, media_type: &'static str) -> Request<'a> {
        self.header(ACCEPT, HeaderValue::from_static(media_type))
    }

    /// How long the service may take for the answer.
    pub(super) fn timeout(self, timeout: Duration) -> Request<'a> {
        Request { timeout, ..self }
    }

    pub(super) fn body(self, media_type: &'static str, body: Vec<u8>) -> Request<'a> {
        let mut request = self.header(CONTENT_TYPE, HeaderValue::from_static(media_type));
        *request.http.body_mut() = body.into();
        request
    }

    pub(super) fn header(mut self, name: HeaderName, value: HeaderValue) -> Request<'a> {
        self.http.headers_mut().insert(name, value);
        self
    }

    /// The answer, if it is a success.
    pub(super) async fn send(mut self) -> Result<Answer<Vec<u8>>, ClientError> {
        self.place()?;
        let begun = Instant::now();
        let mut attempts = self.retry.begin();
        loop {
            let error = match self.attempt().await.and_then(successful) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if !self.is_repeatable {
                return Err(error);
            }
            let Some(pause) = attempts.next_pause(begun.elapsed(), &error) else {
                return Err(error);
            };
            sleep(pause).await;
        }
    }

    /// The JSON of the answer, whatever its status.
    pub(super) async fn send_for_any_status<T: DeserializeOwned>(
        mut self,
    ) -> Result<T, ClientError> {
        self.place()?;
        serde_json::from_slice(self.attempt().await?.body()).map_err(ClientError::NotIdmint)
    }

    /// Puts the address into what is sent.
    fn place(&mut self) -> Result<(), ClientError> {
        *self.http.uri_mut() = self
            .url
            .parse()
            .map_err(|_| ClientError::NotAnAddress(self.url.clone()))?;
        Ok(())
    }

    async fn attempt(&self) -> Result<Response<Bytes>, ClientError> {
        let answered = self.transport.ask(self.http.clone(), self.timeout).await;
        answered.map_err(|cause| ClientError::Unreachable {
            url: self.url.clone(),
            cause,
        })
    }
}

impl Answer<Vec<u8>> {
    /// The same, read as JSON.
    pub(super) fn json<T: DeserializeOwned>(self) -> Result<Answer<T>, ClientError> {
        let body = serde_json::from_slice(&self.body).map_err(ClientError::NotIdmint)?;
        Ok(Answer {
            is_replayed: self.is_replayed,
            body,
        })
    }
}

fn successful(response: Response<Bytes>) -> Result<Answer<Vec<u8>>, ClientError> {
    if !response.status().is_success() {
        return Err(ClientError::of(&response));
    }
    let is_replayed = response.headers().contains_key("idempotency-replayed");
    Ok(Answer {
        is_replayed,
        body: response.into_body().into(),
    })
}

/// A text as it stands between two slashes of a path.
pub(super) fn segment(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, NOT_IN_A_SEGMENT)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::client::Client;

    /// A service that is busy for the first `refusals` requests, and the client to ask it with.
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
    async fn who_does_not_answer_in_time_is_told_with_the_time() {
        let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
        let client =
            Client::new(silent.local_addr().expect("an address").to_string()).expect("a client");
        let error = client
            .get("/")
            .timeout(Duration::from_millis(50))
            .send()
            .await
            .expect_err("no answer");
        let ClientError::Unreachable { url, cause } = error else {
            panic!("{error}")
        };
        assert!(
            url.starts_with("http://127.0.0.1:") && cause.to_string() == "not within 50ms",
            "{url}: {cause}"
        );
    }

    #[tokio::test]
    async fn a_redirection_is_told_and_not_followed() {
        let service = TcpListener::bind("127.0.0.1:0").expect("a port");
        let client =
            Client::new(service.local_addr().expect("an address").to_string()).expect("a client");
        std::thread::spawn(move || {
            let (mut stream, _) = service.accept().expect("a connection");
            let _ = stream.read(&mut [0; 4096]);
            let head = "HTTP/1.1 301 Moved Permanently\r\nlocation: https://there/\r\ncontent-length: 0\r\n\r\n";
            let _ = stream.write_all(head.as_bytes());
        });
        let error = client
            .get("/")
            .send()
            .await
            .expect_err("no answer of the service");
        assert_eq!(
            error.to_string(),
            "301 Moved Permanently: it sends to https://there/, which may be asked in its place"
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
        assert_eq!(
            request.url,
            "http://127.0.0.1:1/ids/x?count=2&prefix=%C3%A4+%26"
        );
    }

    #[test]
    fn no_text_leaves_its_place_in_a_path() {
        assert_eq!(segment("snowflake").to_string(), "snowflake");
        assert_eq!(
            segment("a/b?c#d e%2f").to_string(),
            "a%2Fb%3Fc%23d%20e%252f"
        );
    }
}
