//! HTTP/1.1 over a socket, byte by byte: the one client of all tests and benchmarks.
//!
//! The client of the commands hides what a test is about: where an answer was cut, what was sent on a connection that is kept
//! alive, half a request. Here the parser and the buffer do no I/O, so a blocking and an asynchronous client share them.
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

pub(crate) use self::{
    answer::{Answer, ReceiveError},
    async_client::AsyncClient,
    client::{Client, Wire},
    parser::{AnswerEnd, AnswerParser},
    request::{post_json, read_request, request},
};
