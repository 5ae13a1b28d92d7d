//! Ids: their fields, their encodings, and how to decode them. The functions of this module depend
//! only on their arguments, not on a clock or on I/O.
//!
//! `layout/` packs fields into one number. `encoding/` writes that number as text. `format/`
//! combines both with a tick and a rule. `decoding/` reads texts of unknown format. `inspection/`
//! determines the format of a column of texts. `reference/` derives data for documents from a
//! format, such as storage advice and SQL functions. Each folder uses only the folders listed
//! before it.
//!
//! ```
//! use idmint_core::id::Format;
//!
//! let format = Format::built_in("snowflake").expect("a built-in format");
//! let id = format.canonical().read("175928847299117063")?;
//! let parts = format.split(id)?;
//! assert_eq!(parts.time.and_then(|time| time.to_text(3)).as_deref(), Some("2016-04-30T11:18:25.796Z"));
//! assert_eq!(format.canonical().to_text(id), "175928847299117063");
//! # Ok::<(), idmint_core::id::Rejection>(())
//! ```

mod decoding;
mod domain;
mod encoding;
mod format;
mod id_block;
mod inspection;
mod layout;
mod named;
mod reference;
mod rejection;

pub(crate) use decoding::ListedId;
pub use decoding::{
    DecodeFilter, Decoded, Decoder, DecoderAt, KSUID, Liberty, Match, NearId, Note, NoteKind,
    OwnNumbers, Shape,
};
pub use domain::DomainHash;
pub use encoding::{
    CheckMethod, Encoding, EncodingDefinition, EncodingError, EncodingKind, LetterCase,
    ParameterError, Salt, mod_97_check,
};
#[cfg(any(test, feature = "testing"))]
pub use format::preset;
pub use format::{
    FieldsError, Format, FormatAlias, FormatDefinition, FormatError, IdOfFields, Monotonic,
    PRESETS, Parts, Prefix, PrefixError, Prefixes, Preset, Rule, StartAfter, TYPE_RULE, Variant,
    is_type, nearest,
};
pub use id_block::{IdBlock, Progression};
pub use inspection::{Candidate, Certainty, Finding, Fingerprint, IdColumn, Untold, Verdict};
pub use layout::{Field, FieldKind, Layout, LayoutBuilder, LayoutError, Width};
pub use reference::{
    CollisionOdds, Database, DialectError, EXAMPLE_TIME, IdRange, LayoutDrawing, RangeError,
    SqlDialect, SqlError, StorageAdvice, Stored,
};
pub use rejection::Rejection;
