//! Ledgers and events as requests name them: in the path, in parameters, in bodies.

use super::query::Query;
use crate::http::answer::{Problem, Slug};
use crate::id::Rejection;
use crate::ledger::{EventId, ImportPart, LedgerId};

/// Reads the id of a ledger.
///
/// # Errors
/// 422 `invalid-parameter`.
pub(in crate::http) fn ledger_id(text: &str) -> Result<LedgerId, Problem> {
    LedgerId::from_text(text).map_err(|rejection| {
        let detail =
            format!("ledger is {text:?}, it must be 8 lower-case hexadecimal digits, the last one 0, 4, 8 or c");
        invalid(detail, rejection)
    })
}

/// Reads the id of an event, given under that name.
///
/// # Errors
/// 422 `invalid-parameter`.
pub(in crate::http) fn event_id(name: &str, text: &str) -> Result<EventId, Problem> {
    EventId::from_text(text).map_err(|rejection| {
        let detail = format!(
            "{name} is {text:?}, it must be the id of an event, 32 lower-case hexadecimal digits"
        );
        invalid(detail, rejection)
    })
}

/// Reads the id of an event after which something begins, in that ledger.
///
/// # Errors
/// 422 `invalid-parameter`.
pub(in crate::http) fn event_before(text: &str, ledger: LedgerId) -> Result<EventId, Problem> {
    let after = event_id("after", text)?;
    if after.ledger() != ledger {
        let detail = format!(
            "after is {after}, an event of ledger {}, and not of {ledger}",
            after.ledger()
        );
        return Err(invalid(detail, Rejection::LedgerMismatch));
    }
    Ok(after)
}

/// Reads the part of an import that a request is, if it says that it is one.
///
/// # Errors
/// 422 `invalid-parameter`.
pub(in crate::http) fn import_part(query: &Query<'_>) -> Result<Option<ImportPart>, Problem> {
    let Some(name) = query.get("import") else {
        return Ok(None);
    };
    match ImportPart::NAMED.iter().find(|(known, _)| *known == name) {
        Some((_, part)) => Ok(Some(*part)),
        None => {
            let detail = format!(
                "import is {name:?}, it must be \"more\", or \"last\" for the last part of an import"
            );
            Err(Problem::new(Slug::InvalidParameter, detail).reason("import"))
        }
    }
}

/// A parameter that names nothing there can be.
pub(in crate::http) fn invalid(detail: String, rejection: Rejection) -> Problem {
    Problem::new(Slug::InvalidParameter, detail).reason(rejection.code())
}
