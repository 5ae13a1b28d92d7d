//! Events and their ids: parsing events, the bytes that a checksum covers, and ids as text.

mod event;
mod event_form;
mod event_id;
mod event_parts;
mod event_time;
mod ledger_id;
mod message;

pub use event::Event;
pub(super) use event_form::{EventForm, Member, missing_member};
pub use event_id::EventId;
pub(super) use event_parts::{EventParts, bad_id};
pub use event_time::EventTime;
pub use ledger_id::LedgerId;
pub use message::ChecksumStep;
pub(super) use message::{Message, checksum_steps};
