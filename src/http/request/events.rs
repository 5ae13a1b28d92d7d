//! Events as requests send them.

use crate::http::answer::{Problem, Slug};
use crate::id::Rejection;
use crate::ledger::{Event, EventError};
use crate::wire::EVENT_LEN_MAX;

/// Reads an event; `index`: its place in the request, where there are several.
pub(in crate::http) fn read_event(json: &[u8], index: Option<usize>) -> Result<Event, Problem> {
    if json.len() > EVENT_LEN_MAX {
        let prefix = event_prefix(index);
        let detail = format!(
            "{prefix}the event is {} bytes long, it may have {EVENT_LEN_MAX}",
            json.len()
        );
        return Err(
            Problem::new(Slug::PayloadTooLarge, detail).limit(format!("{EVENT_LEN_MAX} bytes"))
        );
    }
    Event::from_json(json).map_err(|error| refuse(index, &error))
}

fn refuse(index: Option<usize>, error: &EventError) -> Problem {
    let slug = if error.rejection() == Rejection::InvalidJson {
        Slug::MalformedRequest
    } else {
        Slug::InvalidEvent
    };
    Problem::new(slug, format!("{}{error}", event_prefix(index))).reason(error.reason())
}

/// What stands before a complaint about the event at that place.
fn event_prefix(index: Option<usize>) -> String {
    index.map_or_else(String::new, |index| format!("events[{index}]: "))
}
