//! `idmint ledger`: events whose ids chain by checksum.

mod append;
mod command;
mod create;
mod event_file;
mod idempotency_key;
mod import;
mod service_args;
mod verify;

pub(super) use command::Ledger;
