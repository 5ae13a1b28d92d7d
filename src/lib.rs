//! Mints identifiers of many layouts and decodes them back; no id is ever minted twice.

pub mod conjunction;
pub mod id;
pub mod ledger;
pub mod minting;
pub mod time;
pub mod wire;

#[cfg(all(feature = "server", feature = "client"))]
pub mod cli;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "server")]
pub mod http;
#[cfg(feature = "server")]
pub mod net;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod service;
#[cfg(feature = "server")]
pub mod storage;
