//! `idmint numbers`: numbers without gaps at a running service.

mod command;
mod export;
mod import;
mod list;
mod next;
mod pages;
mod void;

pub(super) use command::Numbers;
