//! How a body comes: in chunks at most, and coded in no other way. Source: RFC 9112, sections 6.1 and 7.

use axum::http::{HeaderMap, header};

use crate::http::answer::{Problem, Slug};

/// Whether a body comes by a transfer coding that is read, which is `chunked` alone.
///
/// # Errors
/// 400 `malformed-request` if it is chunked twice, 501 `unknown-transfer-coding` for any other coding.
pub(in crate::http) fn check_transfer_coding(headers: &HeaderMap) -> Result<(), Problem> {
    let fields = headers.get_all(header::TRANSFER_ENCODING).iter();
    let codings = fields
        .flat_map(|field| field.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii);
    let mut is_chunked = false;
    for coding in codings.filter(|coding| !coding.is_empty()) {
        if !coding.eq_ignore_ascii_case(b"chunked") {
            let coding = String::from_utf8_lossy(coding);
            let detail =
                format!("the transfer coding {coding:?} is not read here; `chunked` alone is");
            return Err(Problem::new(Slug::UnknownTransferCoding, detail).limit("chunked"));
        }
        if std::mem::replace(&mut is_chunked, true) {
            return Err(Problem::new(
                Slug::MalformedRequest,
                "Transfer-Encoding says `chunked` twice; a body is chunked once",
            ));
        }
    }
    Ok(())
}
