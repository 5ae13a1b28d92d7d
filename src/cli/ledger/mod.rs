//! `idmint ledger`: events whose ids chain by checksum.

mod append;
mod command;
mod create;
mod event_file;
mod import;
mod verify;

pub(super) use command::Ledger;
