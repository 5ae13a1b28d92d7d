//! The core of idmint: formats of ids, decoding, and minting. This crate does no I/O and needs no
//! async runtime.
//!
//! * [`time`] reads the wall clock and converts instants to ticks. No other module of idmint reads
//!   the wall clock.
//! * [`id`] describes formats: the fields of an id, its encodings, and how texts of unknown format
//!   are decoded.
//! * [`minting`] hands out ids from lock-free sequences. No id is minted beyond the horizon, which
//!   is the time up to which a process may mint. The caller stores the horizon on disk.
//! * [`InProcess`] is the simplest way to mint ids inside a program, without a disk.
//!
//! To see how an id is minted, start reading at [`minting::Mint`]. To see how an id is decoded,
//! start at [`id::Decoder`].
//!
//! This example mints an id in process, marks where a program would write to disk, and decodes the
//! id:
//!
//! ```
//! use std::num::NonZeroU32;
//! use std::sync::Arc;
//! use std::time::Duration;
//! use idmint_core::id::{DecodeFilter, Decoder, Format};
//! use idmint_core::minting::{Durable, LaneCount, LaneRule, Lanes, Mint, MintSettings, SessionStart};
//! use idmint_core::time::Clock;
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
//! // A session begins above every id of earlier sessions: at the horizon on disk or at the clock,
//! // whichever is later.
//! let session = mint.prepare(SessionStart::at(clock.now()));
//! let plan = session.plan_extension(clock.now(), clock.now());
//! // A real program writes the plan to disk and syncs it here. No id above the horizon on disk can
//! // be minted.
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

pub mod id;
pub mod minting;
#[cfg_attr(
    not(test),
    expect(
        clippy::disallowed_methods,
        reason = "the one module that reads the wall clock"
    )
)]
pub mod time;

mod in_process;
mod sync;
pub use in_process::{InProcess, InProcessError};
