//! Conjunction Data Messages: what they report, and the same bytes again with the id of the conjunction in them.
//!
//! A form reads only what an id is made of: when two objects come closest, and which two. Everything else is somebody
//! else's, and stays as it was sent.

mod document;
mod draft;
mod error;
mod form;
mod kvn;
mod lines;
mod place;
mod space_track;
mod xml;

pub use document::Document;
pub use draft::{Message, Noted};
pub use error::CdmError;
pub use form::CdmForm;
pub use lines::without_bom;

/// What stands before the id of a conjunction, in a comment and as the name of a member.
pub const EVENT_ID_KEY: &str = "CONJUNCTION_EVENT_ID";
