//! Mints identifiers of many layouts and decodes them back; no id is ever minted twice.
//!
//! Without its features (`server`, `client`, `cli`) the library is values and arithmetic: formats and their ids ([`id`]), minting
//! ([`minting`]), chained events ([`ledger`]) and conjunctions ([`conjunction`]), without I/O and without a runtime. [`InProcess`] is
//! the short way to ids without a disk. This mints in process, with a place for the disk, and reads the id back:
//!
//! ```
//! use std::num::NonZeroU32;
//! use std::sync::Arc;
//! use std::time::Duration;
//! use idmint::id::{DecodeFilter, Decoder, Format};
//! use idmint::minting::{Durable, LaneCount, LaneRule, Lanes, Mint, MintSettings, SessionStart};
//! use idmint::time::Clock;
//!
//! let format = Arc::new(Format::built_in("snowflake").expect("a built-in format"));
//! let clock = Arc::new(Clock::system());
//! let settings = MintSettings {
//!     wait_max: Duration::from_millis(250),
//!     lead_max: Duration::from_millis(5),
//!     window: Duration::from_secs(3),
//!     shard: 0,
//! };
//! let mut mint = Mint::new(Arc::clone(&clock), settings);
//! let lanes = Lanes::of(&format, &LaneRule { slot: 0, slots: 1, lanes: LaneCount::UpTo(1), shard: 0 })?;
//! let minter = mint.add_sequenced(Arc::clone(&format), lanes);
//!
//! // A session begins above every id of earlier ones: at the horizon that is on disk, or at the clock if that shows more.
//! let session = mint.prepare(SessionStart::at(clock.now()));
//! let plan = session.plan_extension(clock.now(), clock.now());
//! // A program writes the plan to a disk here, and syncs it. Nothing can be minted above what is durable.
//! let horizon = Durable::write(plan, |_plan| Ok::<(), std::io::Error>(()))?;
//! session.raise(&horizon, clock.now());
//! mint.begin(session);
//!
//! let one = minter.request(NonZeroU32::MIN, None)?;
//! let mut granted = minter.reserve(&one).expect("the first id of a session is free at once");
//! let mut id = [0; 1];
//! assert_eq!(granted.batch.fill(&mut id), 1);
//!
//! let text = format.canonical().to_text(id[0]);
//! let decoder = Decoder::new(vec![format]);
//! let found = decoder.at(clock.now()).decode(&text, DecodeFilter::default());
//! assert_eq!(found.matches[0].id(), id[0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod conjunction;
pub mod id;
pub mod ledger;
pub mod minting;
#[cfg_attr(
    not(test),
    expect(
        clippy::disallowed_methods,
        reason = "the one folder that reads the wall clock"
    )
)]
pub mod time;
pub mod wire;

mod in_process;
pub use in_process::{InProcess, InProcessError};

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "server")]
pub mod cluster;
#[cfg(feature = "server")]
pub mod http;
#[cfg(feature = "server")]
pub mod net;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod service;
#[cfg(feature = "server")]
#[cfg_attr(
    not(test),
    expect(clippy::disallowed_methods, reason = "the folder that writes files")
)]
pub mod storage;
