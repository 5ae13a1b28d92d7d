//! Parses the ids of ledgers and events in paths, parameters and bodies.

use super::head::Query;
use crate::answer::{Problem, Slug};
use idmint_core::id::Rejection;
use idmint_records::ledger::{EventId, ImportPart, LedgerId};

/// Parses the id of a ledger.
///
/// # Errors
/// Returns 422 `invalid-parameter` if the text is not a ledger id.
pub(crate) fn ledger_id(text: &str) -> Result<LedgerId, Problem> {
    LedgerId::from_text(text).map_err(|rejection| {
        let detail =
            format!("ledger is {text:?}, but must be 8 lower-case hexadecimal digits, the last one 0, 4, 8 or c");
        invalid(detail, rejection)
    })
}

/// Parses the id of an event. `name` is the parameter that contains it.
///
/// # Errors
/// Returns 422 `invalid-parameter` if the text is not an event id.
pub(crate) fn event_id(name: &str, text: &str) -> Result<EventId, Problem> {
    EventId::from_text(text).map_err(|rejection| {
        let detail = format!(
            "{name} is {text:?}, but must be the id of an event, 32 lower-case hexadecimal digits"
        );
        invalid(detail, rejection)
    })
}

/// Parses the parameter `after`, the id of an event of this ledger. The events that the request
/// asks for, or contains in its body, continue after that event.
///
/// # Errors
/// Returns 422 `invalid-parameter` if the text is not an event id, or the event belongs to another
/// ledger.
pub(crate) fn event_before(text: &str, ledger: LedgerId) -> Result<EventId, Problem> {
    let after = event_id("after", text)?;
    if after.ledger() != ledger {
        let detail = format!(
            "after is {after}, an event of ledger {}, not of {ledger}",
            after.ledger()
        );
        return Err(invalid(detail, Rejection::LedgerMismatch));
    }
    Ok(after)
}

/// Parses the parameter `import`, which marks a request as a part of an import of events into a
/// ledger.
///
/// # Errors
/// Returns 422 `invalid-parameter` if the value is unknown.
pub(crate) fn import_part(query: &Query<'_>) -> Result<Option<ImportPart>, Problem> {
    let Some(name) = query.get("import") else {
        return Ok(None);
    };
    match ImportPart::NAMED.iter().find(|(known, _)| *known == name) {
        Some((_, part)) => Ok(Some(*part)),
        None => {
            let detail = format!(
                "import is {name:?}, but must be \"more\", or \"last\" for the last part of an import"
            );
            Err(Problem::parameter("import", detail))
        }
    }
}

/// Returns the problem for a parameter that is not a valid ledger or event id.
pub(crate) fn invalid(detail: String, rejection: Rejection) -> Problem {
    Problem::new(Slug::InvalidParameter, detail).reason(rejection.code())
}
