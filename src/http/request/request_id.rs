//! One name for each request, to find it again in the logs of both sides.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderValue};

use crate::http::answer::X_REQUEST_ID;

const CALLERS_LEN_MAX: usize = 128;
const PREFIX_LEN: usize = 12;

/// Names this process among all that share a log: random, so that a restart does not repeat ids.
static PREFIX: LazyLock<[u8; PREFIX_LEN]> = LazyLock::new(|| {
    let random: u64 = rand::random();
    std::array::from_fn(|place| b"0123456789abcdef"[(random >> (4 * place) & 0xf) as usize])
});

/// How many ids were made here.
/// Written and read by: `made_here`, by increment. Invariant: only grows, so no two requests get the same number.
/// Ordering: `Relaxed`, nothing else depends on it. Tested by: `ids_made_here_differ`.
static MADE: AtomicU64 = AtomicU64::new(0);

/// The id of this request: the caller's if it is 1 to 128 visible ASCII characters, else one made here.
///
/// Making one asks nothing of the kernel, and allocates nothing but the header value.
pub(crate) fn request_id(headers: &HeaderMap) -> HeaderValue {
    match headers.get(X_REQUEST_ID) {
        Some(callers) if is_usable(callers.as_bytes()) => callers.clone(),
        _ => made_here(),
    }
}

// Visible ASCII only: it goes into logs and JSON, and must not be able to forge a line there.
fn is_usable(id: &[u8]) -> bool {
    (1..=CALLERS_LEN_MAX).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}

fn made_here() -> HeaderValue {
    const SEPARATOR: u8 = b'-';
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(number).as_bytes();
    let mut id = [SEPARATOR; PREFIX_LEN + 1 + 20];
    id[..PREFIX_LEN].copy_from_slice(&*PREFIX);
    let len = PREFIX_LEN + 1 + digits.len();
    id[PREFIX_LEN + 1..len].copy_from_slice(digits);
    HeaderValue::from_bytes(&id[..len])
        .expect("hexadecimal digits, a dash and decimal digits are visible ASCII")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn answer_to(callers: &[u8]) -> HeaderValue {
        let mut headers = HeaderMap::new();
        headers.insert(
            X_REQUEST_ID,
            HeaderValue::from_bytes(callers).expect("a header value"),
        );
        request_id(&headers)
    }

    #[test]
    fn the_callers_id_is_kept_when_it_is_visible_ascii() {
        for id in [
            "a",
            "0af7651916cd43dd8448eb211c80319c",
            "~!{}",
            &"x".repeat(128),
        ] {
            assert_eq!(answer_to(id.as_bytes()), id);
        }
    }

    #[test]
    fn any_other_id_is_replaced() {
        for id in [
            &b""[..],
            b"two words",
            b"tab\there",
            "é".as_bytes(),
            &[b'x'; 129],
        ] {
            let answer = answer_to(id);
            assert_ne!(answer.as_bytes(), id);
            assert!(is_usable(answer.as_bytes()));
        }
    }

    #[test]
    fn ids_made_here_differ() {
        let ids: HashSet<_> = (0..10_000).map(|_| request_id(&HeaderMap::new())).collect();
        assert_eq!(ids.len(), 10_000);
    }
}
