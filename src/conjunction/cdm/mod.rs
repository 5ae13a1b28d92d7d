//! Conjunction Data Messages: the reports in them, and the same bytes again with the id of the conjunction in each.
//!
//! Of a message only the time of closest approach, the two objects and the id are read. All other bytes stay as they were.

mod document;
mod draft;
mod error;
mod form;
mod insertion;
mod kvn;
mod lines;
mod outcomes;
mod read_rule;
mod space_track;
mod transcoded;
mod version;
mod xml;

pub use document::Document;
pub use draft::{ExistingId, Message};
pub use error::CdmError;
pub use form::CdmForm;
pub use lines::without_bom;
pub use read_rule::ReadRule;
pub use version::{CdmVersion, NoteForm};
