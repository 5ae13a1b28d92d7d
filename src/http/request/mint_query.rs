//! What the query of a mint request says, whatever the ids are made of.

use std::num::NonZeroU32;

use super::query::Query;
use crate::http::answer::{MediaType, Problem, Slug};
use crate::id::{Format, Prefix, PrefixError};
use crate::wire::MintRequest;

/// How many ids are wanted: one unless the query or the body says a number.
pub(in crate::http) fn count(
    query: &Query<'_>,
    in_body: &MintRequest,
    batch_max: u32,
) -> Result<NonZeroU32, Problem> {
    let refuse = |given: &str| {
        Problem::new(
            Slug::InvalidParameter,
            format!("count is {given}, it must be a whole number from 1 to {batch_max}"),
        )
        .reason("count")
        .limit(batch_max.to_string())
    };
    let given = match (query.get("count"), in_body.count) {
        (Some(_), Some(_)) => {
            let detail = "count is given twice, in the address and in the body: give it once";
            return Err(Problem::new(Slug::InvalidParameter, detail).reason("repeated_parameter"));
        }
        (None, None) => return Ok(NonZeroU32::MIN),
        (None, Some(count)) => count.to_string(),
        (Some(count), None) => count.to_owned(),
    };
    let is_plain = !given.is_empty() && given.bytes().all(|byte| byte.is_ascii_digit());
    let count = given
        .parse::<NonZeroU32>()
        .ok()
        .filter(|count| is_plain && count.get() <= batch_max);
    count.ok_or_else(|| refuse(if given.is_empty() { "empty" } else { &given }))
}

/// The position of the encoding that is asked for, among those of the format.
pub(in crate::http) fn encoding(query: &Query<'_>, format: &Format) -> Result<usize, Problem> {
    let Some(name) = query.get("encoding") else {
        return Ok(0);
    };
    format
        .encodings
        .iter()
        .position(|encoding| encoding.name() == name)
        .ok_or_else(|| {
            let names: Vec<_> = format
                .encodings
                .iter()
                .map(|encoding| encoding.name())
                .collect();
            Problem::new(
                Slug::InvalidParameter,
                format!("encoding {name:?} is not one of {}", names.join(", ")),
            )
            .reason("encoding")
        })
}

/// What stands before each id. In what is no canonical text a type is checked all the same and not written, like one that the
/// bits of an id tell; a prefix, which is asked for to be written, is refused.
pub(in crate::http) fn prefix(
    query: &Query<'_>,
    format: &Format,
    encoding: usize,
    media: MediaType,
) -> Result<Option<Prefix>, PrefixError> {
    if let Some(given) = query.get("prefix") {
        let written = match encoding {
            _ if matches!(media, MediaType::OctetStream | MediaType::Rows) => {
                Some(media.content_type())
            }
            0 => None,
            _ => Some(format.encodings[encoding].name()),
        };
        return format.prefix(given, written).map(Some);
    }
    if !format.prefixes.are_types() {
        return Ok(None);
    }
    let prefix = format.prefix_of_type(query.get("type").unwrap_or_default())?;
    Ok(Some(prefix).filter(|prefix| !prefix.as_str().is_empty()))
}

/// That nothing is said which means something only where callers want a number of ids: here each is minted from one `item`.
pub(in crate::http) fn refuse_count(
    query: &Query<'_>,
    item: &str,
    format: &Format,
) -> Result<(), Problem> {
    for name in ["count", "type", "domain"] {
        if query.get(name).is_some() {
            let detail = format!(
                "{name} does not go with {item}s: {} mints one id for each {item} in the body",
                format.name
            );
            return Err(Problem::new(Slug::InvalidParameter, detail).reason(name));
        }
    }
    Ok(())
}
