//! The header `Idempotency-Key`. It identifies a request, so that a retry does not repeat its
//! effect.

use axum::http::HeaderMap;

use crate::answer::{Problem, Slug};

const HEADER: &str = "idempotency-key";

/// The maximum length of a key, in characters.
const LEN_MAX: usize = 255;

/// Returns the idempotency key of a request, or `None` if the header is missing.
///
/// # Errors
/// Returns 400 `malformed-request` if the request has two keys, or if the key is empty, too long,
/// or not visible ASCII.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let refuse =
        |detail: String| Problem::new(Slug::MalformedRequest, detail).reason("idempotency_key");
    let mut keys = headers.get_all(HEADER).iter();
    let Some(key) = keys.next() else {
        return Ok(None);
    };
    if keys.next().is_some() {
        return Err(refuse(
            "the header Idempotency-Key is given more than once".to_owned(),
        ));
    }
    let is_visible = key.as_bytes().iter().all(u8::is_ascii_graphic);
    if !is_visible || key.is_empty() || key.len() > LEN_MAX {
        let detail = format!(
            "Idempotency-Key has {} bytes, but must have 1 to {LEN_MAX} visible ASCII characters",
            key.len()
        );
        return Err(refuse(detail).limit(LEN_MAX.to_string()));
    }
    Ok(Some(key.to_str().expect("visible ASCII is text")))
}

/// Returns the problem for a missing idempotency key. `what` names the kind of request, such as an
/// append, whose retry would otherwise repeat its effect.
pub(crate) fn key_required(what: &str) -> Problem {
    let detail =
        format!("{what} needs the header Idempotency-Key, so that a retry is not applied twice");
    Problem::new(Slug::IdempotencyKeyRequired, detail).reason("idempotency_key")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn of(keys: &[&[u8]]) -> Result<Option<String>, Slug> {
        let mut headers = HeaderMap::new();
        for key in keys {
            headers.append(
                HEADER,
                HeaderValue::from_bytes(key).expect("a header value"),
            );
        }
        idempotency_key(&headers)
            .map(|key| key.map(str::to_owned))
            .map_err(|problem| problem.slug())
    }

    #[test]
    fn a_key_is_1_to_255_visible_characters() {
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&[b"!~\"7"]), Ok(Some("!~\"7".to_owned())));
        assert_eq!(of(&[&[b'k'; 255]]), Ok(Some("k".repeat(255))));
        for keys in [
            &[&b""[..]][..],
            &[b"a b"],
            &[b"\xc3\xa9"],
            &[&[b'k'; 256]],
            &[b"a", b"a"],
        ] {
            assert_eq!(of(keys), Err(Slug::MalformedRequest), "{keys:?}");
        }
    }
}
