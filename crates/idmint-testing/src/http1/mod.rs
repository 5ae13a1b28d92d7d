//! HTTP/1.1 clients that work on raw bytes. All tests and benchmarks use them.
//!
//! A normal HTTP client hides details that the tests are about, such as where a response was cut,
//! or which bytes were sent on a persistent connection. A normal client also cannot send half a
//! request. The parser and the buffer do no I/O, so that the blocking and the asynchronous client
//! can share them.
#![allow(
    dead_code,
    unused_imports,
    reason = "each program uses its own part of this, and benchmarks no unit tests"
)]

mod answer;
mod async_client;
mod client;
mod parser;
mod receiver;
mod request;

pub use self::{
    answer::{Answer, ReceiveError},
    async_client::AsyncClient,
    client::{Client, Wire},
    parser::{AnswerEnd, AnswerParser},
    request::{post_json, read_request, request},
};
