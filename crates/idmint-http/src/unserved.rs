//! The response to a connection that cannot be served. The response is assembled by hand, because
//! no HTTP server runs on such a connection.

use axum::http::HeaderMap;
use axum::response::IntoResponse;
use bytes::Bytes;

use crate::answer::{Problem, X_REQUEST_ID};
use crate::request::request_id;
use idmint_core::minting::Refusal;

/// Returns a complete HTTP/1.1 response that gives `refusal` as the reason and closes the
/// connection.
pub fn unserved(refusal: Refusal) -> Bytes {
    let request_id = request_id(&HeaderMap::new());
    let problem = Problem::from(refusal);
    let body = problem.body(request_id.to_str().ok());
    let mut response = problem.into_response();
    response.headers_mut().insert(X_REQUEST_ID, request_id);

    let mut bytes = format!("HTTP/1.1 {}\r\n", response.status()).into_bytes();
    for (name, value) in response.headers() {
        bytes.extend_from_slice(
            &[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat(),
        );
    }
    bytes.extend_from_slice(
        format!(
            "content-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        )
        .as_bytes(),
    );
    bytes.extend_from_slice(&body);
    bytes.into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_refusal_is_a_problem_with_its_length_and_the_end_of_the_connection() {
        let answer = unserved(Refusal::ClockBehind {
            behind: Duration::from_millis(1_500),
        });
        let text = str::from_utf8(&answer).expect("an answer in ASCII");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        let lines: Vec<_> = head.split("\r\n").collect();
        assert_eq!(lines[0], "HTTP/1.1 503 Service Unavailable");
        let length = format!("content-length: {}", body.len());
        for line in [
            "content-type: application/problem+json",
            "x-content-type-options: nosniff",
            "retry-after: 2",
            &length,
            "connection: close",
        ] {
            assert!(lines.contains(&line), "{line} is not in {lines:?}");
        }
        let problem: serde_json::Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(problem["type"], "/problems/clock-behind");
        let request_id = problem["instance"].as_str().expect("an id");
        assert!(lines.contains(&format!("x-request-id: {request_id}").as_str()));
    }
}
