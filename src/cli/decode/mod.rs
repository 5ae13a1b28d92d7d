//! Offline commands about formats and existing ids.
//!
//! - `idmint decode`: the possible readings of ids
//! - `idmint inspect`: the format of a column of ids
//! - `idmint encode`: the id with the given field values
//! - `idmint range`: the ids of a time span
//! - `idmint formats`: the available formats

mod csv_columns;
mod csv_reading;
mod decode;
mod encode;
mod fingerprints;
mod formats;
mod inspect;
mod lines;
mod range;
mod text_input;
mod vectors;

pub(super) use decode::{Decode, HYPHEN_MARK};
pub(super) use encode::Encode;
pub(super) use formats::Formats;
pub(super) use inspect::Inspect;
pub(super) use range::Range;
