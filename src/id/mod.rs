//! What an id is: its fields, its encodings, and how it is read back. Pure values, no clock and no I/O.
//!
//! `layout/` packs fields into one number, `encoding/` writes that number as text, `format/` puts both together with a tick
//! and a rule, `decoding/` reads texts whose format is not known, `inspection/` judges a column of them, `reference/` derives what documents say of a format. A
//! folder uses only those before it.
//!
//! ```
//! use idmint::id::Format;
//!
//! let format = Format::built_in("snowflake").expect("a built-in format");
//! let id = format.canonical().read("175928847299117063")?;
//! let parts = format.split(id)?;
//! assert_eq!(parts.time.and_then(|time| time.to_text(3)).as_deref(), Some("2016-04-30T11:18:25.796Z"));
//! assert_eq!(format.canonical().to_text(id), "175928847299117063");
//! # Ok::<(), idmint::id::Rejection>(())
//! ```

mod decoding;
mod domain;
pub mod encoding;
mod format;
mod id_block;
mod inspection;
mod layout;
mod reference;
mod rejection;

pub use decoding::{DecodeFilter, Decoded, Decoder, DecoderAt, KSUID, Match, NearId, OwnNumbers};
pub use domain::DomainHash;
pub use encoding::{
    CheckMethod, Codec, Encoding, EncodingDefinition, EncodingError, EncodingKind, LetterCase, Salt,
};
#[cfg(test)]
pub(crate) use format::preset;
pub use format::{
    FieldsError, Format, FormatDefinition, FormatError, IdOfFields, Monotonic, PRESETS, Parts,
    Prefix, PrefixError, Prefixes, Preset, Rule, StartAfter, TYPE_RULE, Variant, is_type,
};
pub use id_block::{IdBlock, Progression};
pub use inspection::{Candidate, Certainty, Finding, Fingerprint, IdColumn, Untold, Verdict};
pub use layout::{
    CodeWord, Field, FieldDraft, FieldKind, Layout, LayoutBuilder, LayoutError, SuffixCode,
    SuffixCodeError, Width,
};
pub use reference::{
    CollisionOdds, Database, DialectError, EXAMPLE_TIME, IdRange, LayoutDrawing, RangeError,
    SqlDialect, SqlError, StorageAdvice, Stored,
};
pub use rejection::Rejection;
