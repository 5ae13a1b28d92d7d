//! Where a request stands in its caller's trace, to find it again in the logs of both sides.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Two digits of a version, 32 of the trace, 16 of the caller's part of it, two of flags, with hyphens between.
const LEN: usize = 55;

/// The one header of a request that may say so.
pub(in crate::http) fn traceparent_of(headers: &HeaderMap) -> Option<&HeaderValue> {
    let mut all = headers.get_all(TRACEPARENT).iter();
    all.next().filter(|_| all.next().is_none())
}

/// What such a header says, if it is well formed: 55 characters, whatever follows in versions to come.
///
/// Source: W3C Trace Context, Recommendation of 23 November 2021, <https://www.w3.org/TR/trace-context/>, section 3.2.
pub(in crate::http) fn trace_parent(header: &HeaderValue) -> Option<&str> {
    let text = header.to_str().ok()?;
    let (parent, rest) = text.split_at_checked(LEN)?;
    let mut parts = parent.split('-');
    let mut hex = |len: usize| {
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        parts
            .next()
            .filter(|part| part.len() == len && part.bytes().all(is_hex))
    };
    let (version, trace, span, _flags) = (hex(2)?, hex(32)?, hex(16)?, hex(2)?);
    let is_some = |id: &str| id.bytes().any(|byte| byte != b'0');
    let ends_well = if version == "00" {
        rest.is_empty()
    } else {
        rest.is_empty() || rest.starts_with('-')
    };
    (version != "ff" && is_some(trace) && is_some(span) && ends_well).then_some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of section 3.2.2.
    const EXAMPLE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn read(text: &str) -> Option<String> {
        trace_parent(&HeaderValue::from_str(text).expect("a header value")).map(str::to_owned)
    }

    #[test]
    fn what_is_well_formed_is_kept_and_of_later_versions_the_part_that_is_known() {
        assert_eq!(read(EXAMPLE).as_deref(), Some(EXAMPLE));
        let later = EXAMPLE.replacen("00", "cc", 1);
        for more in ["", "-what-the-future-will-be-like"] {
            assert_eq!(
                read(&format!("{later}{more}")).as_deref(),
                Some(later.as_str())
            );
        }
    }

    #[test]
    fn anything_else_is_none() {
        let later = EXAMPLE.replacen("00", "cc", 1);
        for text in [
            "",
            "00",
            &EXAMPLE.to_uppercase(),
            &EXAMPLE.replacen("00", "ff", 1),
            &EXAMPLE.replace('-', "_"),
            &EXAMPLE.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &EXAMPLE.replace("b7ad6b7169203331", &"0".repeat(16)),
            &EXAMPLE.replacen("0af7", "0ag7", 1),
            &EXAMPLE[..54],
            &format!("{EXAMPLE}-more"),
            &format!("{later}.more"),
            &format!(" {EXAMPLE}"),
            &EXAMPLE.replacen("c-b", "-cb", 1),
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
        assert_eq!(
            trace_parent(
                &HeaderValue::from_bytes("é".repeat(60).as_bytes()).expect("a header value")
            ),
            None
        );
    }

    #[test]
    fn a_request_that_says_it_twice_says_nothing() {
        let mut headers = HeaderMap::new();
        assert_eq!(traceparent_of(&headers), None);
        headers.append(TRACEPARENT, HeaderValue::from_static(EXAMPLE));
        assert_eq!(
            traceparent_of(&headers).and_then(trace_parent),
            Some(EXAMPLE)
        );
        headers.append(TRACEPARENT, HeaderValue::from_static(EXAMPLE));
        assert_eq!(traceparent_of(&headers), None);
    }
}
