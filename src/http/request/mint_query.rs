//! What the query of a mint request says, whatever the ids are made of.

use super::query::Query;
use crate::http::answer::{Problem, Slug};
use crate::id::Format;

/// The position of the encoding that is asked for, among those of the format.
pub(in crate::http) fn encoding(query: &Query<'_>, format: &Format) -> Result<usize, Problem> {
    let Some(name) = query.get("encoding") else { return Ok(0) };
    format.encodings.iter().position(|encoding| encoding.name() == name).ok_or_else(|| {
        let names: Vec<_> = format.encodings.iter().map(|encoding| encoding.name()).collect();
        Problem::new(Slug::InvalidParameter, format!("encoding {name:?} is not one of {}", names.join(", ")))
            .reason("encoding")
    })
}

/// That nothing is said which means something only where callers want a number of ids: here each is minted from one `item`.
pub(in crate::http) fn refuse_count(query: &Query<'_>, item: &str, format: &Format) -> Result<(), Problem> {
    for name in ["count", "type", "domain"] {
        if query.get(name).is_some() {
            let detail =
                format!("{name} does not go with {item}s: {} mints one id for each {item} in the body", format.name);
            return Err(Problem::new(Slug::InvalidParameter, detail).reason(name));
        }
    }
    Ok(())
}
