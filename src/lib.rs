//! Mints identifiers of many layouts and decodes them back; no id is ever minted twice.
//!
//! This package is the program `idmint`. Its library contains the parts that a Rust program can
//! use:
//!
//! - [`id`] describes formats, decodes ids, and encodes them.
//! - [`InProcess`] mints ids of one format inside your program, without a service and without a
//!   disk.
//! - `client`, with the feature of that name, gets ids from a running service and prefetches the
//!   next ones.
//! - [`time`] contains the points in time that ids use.
//!
//! With `default-features = false` only these modules are built. The crate `idmint-core` offers
//! more, for example minting with a horizon that your program makes durable.
//!
//! ```
//! use idmint::InProcess;
//! use idmint::id::{DecodeFilter, Decoder, Format};
//! use idmint::time::Clock;
//!
//! let ids = InProcess::new(Format::built_in("snowflake").expect("a built-in format"), 7)?;
//! let text = ids.format().canonical().to_text(ids.next()?);
//!
//! let decoder = Decoder::new(vec![Format::built_in("snowflake").expect("a built-in format").into()]);
//! let found = decoder.at(Clock::system().now()).decode(&text, DecodeFilter::default());
//! assert_eq!(found.matches[0].format().name, "snowflake");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
// `println!` and `eprintln!` panic if the output fails, so commands print with the functions of
// cli/print.rs.
#![cfg_attr(not(test), warn(clippy::print_stderr, clippy::print_stdout))]

pub use idmint_core::{InProcess, InProcessError};

#[cfg(feature = "client")]
pub use idmint_client as client;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod server;

/// Formats, id fields, encodings, and the decoding of unknown texts.
pub mod id {
    pub use idmint_core::id::{
        Candidate, Certainty, CollisionOdds, DecodeFilter, Decoded, Decoder, DecoderAt, DomainHash,
        Encoding, EncodingError, Field, FieldKind, FieldsError, Finding, Format, FormatDefinition,
        FormatError, IdColumn, IdOfFields, IdRange, Layout, LayoutBuilder, LayoutError, Match,
        NearId, PRESETS, Parts, Prefix, PrefixError, Prefixes, Preset, RangeError, Rejection, Rule,
        SqlDialect, SqlError, StorageAdvice, Untold, Variant, Verdict, Width,
    };
}

/// Instants, ticks and the clock.
pub mod time {
    pub use idmint_core::time::{
        Clock, Rfc3339Text, Tick, TickError, UnixNanos, UnixTime, UnixTimeError,
    };
}
