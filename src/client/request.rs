//! One request, sent until there is an answer.

use std::time::Duration;

use reqwest::RequestBuilder;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use super::error::ClientError;
use super::retry::Retry;

/// A request in the making.
pub(super) struct Request<'a> {
    http: RequestBuilder,
    retry: &'a Retry,
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
    /// A request that changes nothing, so it may be sent again.
    pub(super) fn repeatable(http: RequestBuilder, retry: &'a Retry) -> Request<'a> {
        Request { http, retry, is_repeatable: true }
    }

    /// A request that is sent once, unless it gets a key.
    pub(super) fn once(http: RequestBuilder, retry: &'a Retry) -> Request<'a> {
        Request { http, retry, is_repeatable: false }
    }

    /// With this key what is asked for is done once, however often it must be sent.
    pub(super) fn idempotency_key(self, key: &str) -> Request<'a> {
        Request { http: self.http.header("idempotency-key", key), is_repeatable: true, ..self }
    }

    /// The same request again changes nothing, so it may be sent again.
    pub(super) fn repeatedly(self) -> Request<'a> {
        Request { is_repeatable: true, ..self }
    }

    pub(super) fn query(self, parameters: &impl Serialize) -> Request<'a> {
        Request { http: self.http.query(parameters), ..self }
    }

    pub(super) fn accept(self, media_type: &str) -> Request<'a> {
        Request { http: self.http.header(ACCEPT, media_type), ..self }
    }

    /// How long the service may take for the answer.
    pub(super) fn timeout(self, time_max: Duration) -> Request<'a> {
        Request { http: self.http.timeout(time_max), ..self }
    }

    pub(super) fn body(self, media_type: &str, body: Vec<u8>) -> Request<'a> {
        Request { http: self.http.header(CONTENT_TYPE, media_type).body(body), ..self }
    }

    /// The answer, if it is a success.
    pub(super) async fn send(self) -> Result<Answer<Vec<u8>>, ClientError> {
        let begun = Instant::now();
        let mut attempts = self.retry.begin();
        let mut request = self.http;
        loop {
            // What cannot be copied is no request, and sending it says why.
            let next = if self.is_repeatable { request.try_clone() } else { None };
            let error = match attempt(request).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let Some(next) = next else { return Err(error) };
            let Some(pause) = attempts.next_pause(begun.elapsed(), &error) else { return Err(error) };
            sleep(pause).await;
            request = next;
        }
    }

    /// The JSON of the answer, whatever its status.
    pub(super) async fn send_for_any_status<T: DeserializeOwned>(self) -> Result<T, ClientError> {
        let response = self.http.send().await.map_err(ClientError::Unreachable)?;
        let body = response.bytes().await.map_err(ClientError::Unreachable)?;
        serde_json::from_slice(&body).map_err(ClientError::NotIdmint)
    }
}

impl Answer<Vec<u8>> {
    /// The same, read as JSON.
    pub(super) fn json<T: DeserializeOwned>(self) -> Result<Answer<T>, ClientError> {
        let body = serde_json::from_slice(&self.body).map_err(ClientError::NotIdmint)?;
        Ok(Answer { is_replayed: self.is_replayed, body })
    }
}

async fn attempt(request: RequestBuilder) -> Result<Answer<Vec<u8>>, ClientError> {
    let response = request.send().await.map_err(ClientError::Unreachable)?;
    if !response.status().is_success() {
        return Err(ClientError::read(response).await);
    }
    let is_replayed = response.headers().contains_key("idempotency-replayed");
    let body = response.bytes().await.map_err(ClientError::Unreachable)?;
    Ok(Answer { is_replayed, body: body.into() })
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
                let status = if number < refusals { "503 Service Unavailable" } else { "200 OK" };
                let answer = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{{}}");
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Client::new(url).expect("a client").retrying(Retry::within(Duration::from_secs(60), |_| {}))
    }

    #[tokio::test]
    async fn what_changes_nothing_or_has_a_key_is_sent_until_it_is_answered() {
        assert!(busy_service(2).get("/").send().await.is_ok());
        assert!(busy_service(1).post("/").idempotency_key("k").body("text/plain", vec![1]).send().await.is_ok());
    }

    #[tokio::test]
    async fn what_would_be_done_twice_is_sent_once() {
        assert!(matches!(busy_service(1).post("/").send().await, Err(ClientError::Busy(_))));
    }

    #[tokio::test]
    async fn an_address_that_is_none_is_not_asked_again() {
        let client = Client::new("no such address").expect("a client").retrying(Retry::within(Duration::MAX, |_| {}));
        assert!(matches!(client.get("/").send().await, Err(ClientError::Unreachable(_))));
    }
}
