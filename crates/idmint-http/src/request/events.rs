//! Reads ledger events from requests.

use crate::answer::{Problem, Slug};
use idmint_core::id::Rejection;
use idmint_records::ledger::{Event, EventError};
use idmint_wire::EVENT_LEN_MAX;

/// Parses a ledger event. If the request has several events, `index` is the position of the event,
/// and errors contain it.
pub(crate) fn read_event(json: &[u8], index: Option<usize>) -> Result<Event, Problem> {
    if json.len() > EVENT_LEN_MAX {
        let prefix = event_prefix(index);
        let detail = format!(
            "{prefix}the event is {} bytes long; the limit is {EVENT_LEN_MAX}",
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

/// Returns the prefix of an error message about the event at this position.
fn event_prefix(index: Option<usize>) -> String {
    index.map_or_else(String::new, |index| format!("events[{index}]: "))
}
