//! Checks the page for browsers: when it is served, which headers it has, and the setting that
//! turns it off.

use crate::service::Service;
use idmint_testing::http1::{Answer, request};

/// The `Accept` header that Chromium and Firefox send when they open a page.
const BROWSER: &str =
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";

const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

async fn ask(service: &Service, method_and_target: &str, headers: &str) -> Answer {
    service
        .exchange(&request(method_and_target, headers, ""))
        .await
}

async fn ask_front(service: &Service, accept: &str) -> Answer {
    ask(service, "GET /", &format!("accept: {accept}\r\n")).await
}

fn header_names(answer: &Answer) -> Vec<&str> {
    answer
        .head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "))
        .map(|(name, _)| name)
        .collect()
}

/// Returns the paths of all files to which a text of the page refers.
fn named_in(text: &str) -> Vec<String> {
    let quoted = text
        .split('"')
        .filter_map(|part| part.strip_prefix("page/").or(part.strip_prefix("./")));
    quoted
        .filter(|name| !name.is_empty())
        .map(|name| format!("/page/{name}"))
        .collect()
}

/// Returns the page and all of its files, each with its path. The files are found in the way in
/// which a browser finds them.
async fn whole_page(service: &Service) -> Vec<(String, Answer)> {
    let mut found = vec![("/".to_owned(), ask_front(service, BROWSER).await)];
    let mut next = 0;
    while next < found.len() {
        for address in named_in(&found[next].1.text()) {
            if found.iter().all(|(known, _)| *known != address) {
                let answer = ask(service, &format!("GET {address}"), "accept: */*\r\n").await;
                assert_eq!(answer.status, 200, "{address}");
                found.push((address, answer));
            }
        }
        next += 1;
    }
    found
}

#[tokio::test]
async fn who_prefers_html_gets_the_page_and_everybody_else_the_cheat_sheet_as_ever() {
    let service = Service::start("").await;
    let sheet = ask(&service, "GET /", "").await;
    assert_eq!(
        (sheet.status, sheet.header("content-type")),
        (200, Some("text/plain; charset=utf-8"))
    );
    let of_old = Service::start("http.page = false").await;
    let old = ask(&of_old, "GET /", "").await.text();
    let here = |service: &Service| format!("http://{}", service.address);
    assert_eq!(
        sheet.text(),
        old.replace(&here(&of_old), &here(&service)),
        "byte for byte as without the page"
    );
    for accept in [
        "*/*",
        "text/plain",
        "text/*",
        "text/html;q=0.5, text/plain",
        "text/html, text/plain",
        "*/*, text/html;q=0",
        "nonsense",
    ] {
        let answer = ask_front(&service, accept).await;
        assert_eq!(
            (answer.status, answer.body == sheet.body),
            (200, true),
            "{accept}: {}",
            answer.text()
        );
        assert_eq!(header_names(&answer), header_names(&sheet), "{accept}");
    }
    for accept in [
        BROWSER,
        "text/html",
        "text/html, text/plain;q=0.9",
        "text/plain;q=0.1, text/html;q=0.2",
        "*/*;q=0.1, text/html",
    ] {
        let answer = ask_front(&service, accept).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some("text/html; charset=utf-8")),
            "{accept}"
        );
        assert!(answer.text().starts_with("<!doctype html>"), "{accept}");
    }
    assert_eq!(ask_front(&service, "image/png").await.status, 406);
}

#[tokio::test]
async fn a_query_that_another_site_adds_to_a_link_opens_the_page_and_is_refused_to_other_callers() {
    let service = Service::start("").await;
    let page = ask_front(&service, BROWSER).await;
    for (query, accept, status) in [
        ("?utm_source=x", BROWSER, 200),
        ("?", BROWSER, 200),
        ("?a=1&a=%ff", "text/html", 200),
        ("?utm_source=x", "*/*", 422),
    ] {
        let headers = format!("accept: {accept}\r\n");
        let answer = ask(&service, &format!("GET /{query}"), &headers).await;
        assert_eq!(answer.status, status, "{query}: {}", answer.text());
        assert_eq!(answer.body == page.body, status == 200, "{query}");
    }
}

#[tokio::test]
async fn every_file_of_the_page_says_what_it_may_and_together_they_are_small() {
    let service = Service::start("").await;
    let page = whole_page(&service).await;
    let len: usize = page.iter().map(|(_, answer)| answer.body.len()).sum();
    println!("{} files, {len} bytes", page.len());
    assert!(page.len() > 10, "only {} files were found", page.len());
    assert!(len < 88 * 1024, "the page weighs {len} bytes");
    for (address, answer) in &page {
        assert_eq!(
            answer.header("content-security-policy"),
            Some(CSP),
            "{address}"
        );
        assert_eq!(
            answer.header("referrer-policy"),
            Some("no-referrer"),
            "{address}"
        );
        assert_eq!(
            answer.header("x-content-type-options"),
            Some("nosniff"),
            "{address}"
        );
        assert_eq!(
            answer.header("cache-control"),
            Some("no-cache"),
            "{address}"
        );
        assert_eq!(
            answer.header("vary"),
            (address == "/").then_some("accept"),
            "{address}"
        );
        let kind = match address.rsplit_once('.') {
            Some((_, "js")) => "text/javascript; charset=utf-8",
            Some((_, "css")) => "text/css; charset=utf-8",
            Some((_, "svg")) => "image/svg+xml",
            _ => "text/html; charset=utf-8",
        };
        assert_eq!(answer.header("content-type"), Some(kind), "{address}");
    }
}

#[tokio::test]
async fn what_a_browser_has_it_does_not_get_again() {
    let service = Service::start("").await;
    let page = whole_page(&service).await;
    for (address, answer) in &page {
        let etag = answer.header("etag").unwrap();
        let known = format!("accept: {BROWSER}\r\nif-none-match: {etag}\r\n");
        let again = ask(&service, &format!("GET {address}"), &known).await;
        assert_eq!(
            (again.status, again.body.len(), again.header("etag")),
            (304, 0, Some(etag)),
            "{address}"
        );
        assert_eq!(
            again.header("content-security-policy"),
            Some(CSP),
            "{address}"
        );
        let other = format!("accept: {BROWSER}\r\nif-none-match: \"0123456789abcdef\"\r\n");
        let other = ask(&service, &format!("GET {address}"), &other).await;
        assert_eq!(
            (other.status, &other.body),
            (200, &answer.body),
            "{address}"
        );
    }
    let tags: std::collections::BTreeSet<_> = page
        .iter()
        .map(|(_, answer)| answer.header("etag"))
        .collect();
    assert_eq!(tags.len(), page.len(), "each file has a tag of its own");
}

#[tokio::test]
async fn without_the_page_a_browser_is_answered_as_ever() {
    let service = Service::start("http.page = false").await;
    assert_eq!(ask_front(&service, "text/html").await.status, 406);
    let answer = ask_front(&service, BROWSER).await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("text/plain; charset=utf-8"))
    );
    for name in ["main.js", "style.css", "icon.svg"] {
        let answer = service.get(&format!("/page/{name}")).await;
        assert_eq!(
            (answer.status, &answer.json()["type"]),
            (404, &"/problems/not-found".into()),
            "{name}"
        );
    }
}

#[tokio::test]
async fn the_page_has_no_other_file_and_takes_no_parameter() {
    let service = Service::start("").await;
    for (target, status) in [
        ("GET /page/nonsense.js", 404),
        ("GET /page/page.html", 404),
        ("GET /page/..%2fpage_file.rs", 404),
        ("GET /page/", 404),
        ("GET /page/main.js?x=1", 422),
        ("POST /page/main.js", 405),
        ("POST /", 405),
    ] {
        let headers = if target.starts_with("POST") {
            "content-type: application/json\r\n"
        } else {
            ""
        };
        assert_eq!(
            ask(&service, target, headers).await.status,
            status,
            "{target}"
        );
    }
}
