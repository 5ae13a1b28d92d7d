//! A file of the page as an answer, which a browser keeps and asks again about.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use super::page_file::PageFile;

/// The page runs its own scripts alone, asks its own service alone, and is shown inside no other page.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// The file, or 304 if the caller has it already.
pub(in crate::http) fn answer(file: &'static PageFile, headers: &HeaderMap) -> Response<Body> {
    let is_known = is_known(&file.etag, headers);
    let mut response = Response::new(if is_known {
        Body::empty()
    } else {
        Body::from(file.text)
    });
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let told = response.headers_mut();
    if !is_known {
        told.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(file.content_type),
        );
    }
    told.insert(header::ETAG, file.etag.clone());
    // Kept, and asked about each time: another version of the service has another page.
    told.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    told.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(CONTENT_SECURITY_POLICY),
    );
    told.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    if file.name.is_empty() {
        told.insert(header::VARY, HeaderValue::from_static("accept"));
    }
    response
}

/// Whether `If-None-Match` has this tag: compared weakly, as RFC 9110 section 13.1.2 says.
fn is_known(etag: &HeaderValue, headers: &HeaderMap) -> bool {
    let values = headers
        .get_all(header::IF_NONE_MATCH)
        .into_iter()
        .filter_map(|value| value.to_str().ok());
    let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::page::front;

    #[test]
    fn what_the_caller_has_already_is_not_sent_again() {
        let etag = front().etag.to_str().expect("a tag in ASCII");
        for (sent, status) in [
            (None, 200),
            (Some(etag.to_owned()), 304),
            (Some(format!("W/{etag}")), 304),
            (Some(format!("\"other\", {etag}")), 304),
            (Some("*".to_owned()), 304),
            (Some("\"other\"".to_owned()), 200),
            (Some(etag.trim_matches('"').to_owned()), 200),
            (Some(String::new()), 200),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(sent) = &sent {
                headers.insert(
                    header::IF_NONE_MATCH,
                    HeaderValue::from_str(sent).expect("a value"),
                );
            }
            let answer = answer(front(), &headers);
            assert_eq!(answer.status(), status, "{sent:?}");
            assert_eq!(answer.headers()[header::ETAG], etag);
        }
    }
}
