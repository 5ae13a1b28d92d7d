//! Conjunction Data Messages (CDM): reads the reports in a document, and returns the document with
//! a conjunction id in each message.
//!
//! Only four parts of a message are interpreted: the time of closest approach, the two objects, and
//! an existing id. All other bytes stay unchanged.

mod csv;
mod document;
mod draft;
mod error;
mod flat;
mod form;
mod insertion;
mod kvn;
mod lines;
mod outcomes;
mod space_track;
mod transcoded;
mod version;
mod xml;

pub use document::Document;
pub use draft::{ExistingId, Message};
pub use error::CdmError;
pub use form::CdmForm;
pub use lines::without_bom;
pub use outcomes::ReadRule;
pub use version::{CdmVersion, NoteForm};
