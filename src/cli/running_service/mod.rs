//! How commands reach a running service.

mod access_args;
mod asking;
mod idempotency_key;
mod retry_args;

pub(super) use access_args::{AccessArgs, service_url};
pub(super) use asking::{ask_once, block_on};
pub(super) use idempotency_key::{key_of, parse_key};
pub(super) use retry_args::RetryArgs;
