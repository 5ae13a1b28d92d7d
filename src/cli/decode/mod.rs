//! Ids that are given, offline. `idmint decode`: what they can be. `idmint inspect`: what a column of them is.
//! `idmint encode`: the id of given fields. `idmint range`: the ids of a time span. `idmint formats`: what there is to give.

mod csv_columns;
mod csv_reading;
mod decode;
mod encode;
mod fingerprints;
mod formats;
mod inspect;
mod lines;
mod range;
mod vectors;

pub(super) use decode::Decode;
pub(super) use encode::Encode;
pub(super) use formats::Formats;
pub(super) use inspect::Inspect;
pub(super) use range::Range;
