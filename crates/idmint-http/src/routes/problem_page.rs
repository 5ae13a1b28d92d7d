//! The page that explains a problem and its remedies. The problem's `type` is its address.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, Response, header};
use axum::response::IntoResponse;

use crate::answer::{Answer, MediaType, Page, Problem, Slug, negotiate, no_store};
use crate::request::path_params;

pub(crate) const ROUTE: &str = "/problems/{slug}";

/// Handles `GET /problems/{slug}`: text by default, HTML for a browser, JSON on request.
pub async fn problem_page(request: Request) -> Response<Body> {
    page_of(&request).unwrap_or_else(Problem::into_response)
}

fn page_of(request: &Request) -> Answer {
    let [name] = path_params(ROUTE, request.uri())?;
    let slug = Slug::named(&name).ok_or_else(|| {
        Problem::new(Slug::NotFound, format!("no problem is named {name:?}"))
            .reason("unknown_problem")
    })?;
    let media_type = negotiate(
        request.headers(),
        &[MediaType::Text, MediaType::Html, MediaType::Json],
    )?;
    let page = slug.page();
    let document = match media_type {
        MediaType::Html => html(page),
        MediaType::Json => json(page),
        _ => text(page),
    };
    let mut response = no_store(media_type, document);
    response
        .headers_mut()
        .insert(header::VARY, HeaderValue::from_static("accept"));
    Ok(response)
}

fn text(page: &Page) -> String {
    let Page {
        name,
        status,
        title,
        cause,
        safe_action,
        dangerous_action,
    } = page;
    format!(
        "{status} {name}: {title}\n\nCause\n  {cause}\n\nSafe\n  {safe_action}\n\nDangerous\n  {dangerous_action}\n"
    )
}

fn html(page: &Page) -> String {
    let [title, cause, safe_action, dangerous_action] = [
        page.title,
        page.cause,
        page.safe_action,
        page.dangerous_action,
    ]
    .map(escaped);
    let Page { name, status, .. } = page;
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{status} {name}</title>\n\
         <h1>{title}</h1>\n<p><code>{status} {name}</code></p>\n<h2>Cause</h2>\n<p>{cause}</p>\n\
         <h2>Safe</h2>\n<p>{safe_action}</p>\n<h2>Dangerous</h2>\n<p>{dangerous_action}</p>\n</html>\n"
    )
}

fn json(page: &Page) -> String {
    let value = serde_json::json!({
        "type": format!("/problems/{}", page.name), "status": page.status, "title": page.title,
        "cause": page.cause, "safe_action": page.safe_action, "dangerous_action": page.dangerous_action,
    });
    format!("{value}\n")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(path: &str, accept: Option<&str>) -> Response<Body> {
        let mut request = Request::builder().uri(path);
        if let Some(accept) = accept {
            request = request.header("accept", accept);
        }
        page_of(&request.body(Body::empty()).expect("valid request"))
            .unwrap_or_else(Problem::into_response)
    }

    #[test]
    fn every_kind_has_a_page_in_every_representation() {
        for slug in Slug::ALL {
            for (accept, content_type) in [
                (None, "text/plain; charset=utf-8"),
                (
                    Some("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
                    "text/html; charset=utf-8",
                ),
                (Some("application/json"), "application/json"),
            ] {
                let answer = ask(&format!("/problems/{}", slug.as_str()), accept);
                assert_eq!(answer.status(), 200);
                assert_eq!(answer.headers()["content-type"], content_type);
            }
        }
    }

    #[test]
    fn an_unknown_problem_is_a_problem() {
        assert_eq!(ask("/problems/nonsense", None).status(), 404);
        assert_eq!(ask("/problems/", None).status(), 404);
        assert_eq!(ask("/problems/draining", Some("image/png")).status(), 406);
    }

    #[test]
    fn html_is_escaped() {
        assert!(html(Slug::Unauthorized.page()).contains("Bearer &lt;token&gt;"));
    }
}
