//! Requests that contain many texts, with one request for each case that `openapi.yaml` describes.

use crate::interface::{Call, post};

fn decode_many(query: &str, status: u16) -> Call {
    post("/decode", &format!("/decode{query}"), status)
}

fn inspect(query: &str, status: u16) -> Call {
    post("/inspect", &format!("/inspect{query}"), status)
}

/// Returns the requests. The text `long` makes the path of a request too long.
pub(crate) fn text_calls(long: &str) -> Vec<Call> {
    vec![
        decode_many("", 403).with("origin", "null").sending("[]"),
        inspect("", 403).with("origin", "null").sending("[]"),
        decode_many("", 200).sending("[\"1I9ZC1002\",\"?\",\"175928847299117063\"]"),
        decode_many("?detail=full", 200).sending("[\"1I9ZC1002\",\"?\",\"'1i9zc1002'\"]"),
        decode_many("", 200)
            .with("accept", "text/plain")
            .sending("[\"1I9ZC1002\"]"),
        decode_many("", 200)
            .with("accept", "application/x-ndjson")
            .sending("[\"1I9ZC1002\"]"),
        decode_many("", 200)
            .with("content-type", "text/plain")
            .sending("1I9ZC1002"),
        decode_many("", 400).sending("["),
        decode_many("?format=invoice", 404).sending("[]"),
        decode_many("", 406)
            .with("accept", "text/html")
            .sending("[]"),
        decode_many("", 413).sending(" ".repeat(9_000_000)),
        decode_many(&format!("?{long}"), 414),
        decode_many("", 415)
            .with("content-type", "text/csv")
            .sending("1"),
        decode_many("", 422).sending("[1]"),
        inspect("", 200).sending("[\"1I9ZC1002\",\"?\",\"175928847299117063\"]"),
        inspect("", 200).sending("[\"017f22e2-79b0-7cc3-98c4-dc0c0c07398f\"]"),
        inspect("?format=payment", 200)
            .with("content-type", "text/plain")
            .sending("1I9ZC1002\n1I9ZC1003\n"),
        inspect("", 400).sending("["),
        inspect("?format=invoice", 404).sending("[]"),
        inspect("", 406).with("accept", "text/plain").sending("[]"),
        inspect("", 413).sending(" ".repeat(9_000_000)),
        inspect(&format!("?{long}"), 414),
        inspect("", 415)
            .with("content-type", "text/csv")
            .sending("1"),
        inspect("", 422).sending("[1]"),
    ]
}
