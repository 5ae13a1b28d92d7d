//! Checks with a real browser (Debian's Chromium) which requests a page can send to the service.
//! One page has another origin, and one page has an allowed origin.
//!
//! The page writes the outcome of each request into its own text. The service counts requests in
//! its metrics. If the page has no text, its script did not run, and the test fails.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::thread;

use tempfile::TempDir;

use crate::tools::output_of;
use idmint_testing::service::{Home, Service};

/// The page. Its script tries every kind of request that a page can send, and then shows the
/// results.
const SCRIPT: &str = r#"<!doctype html><title>another site</title><pre id="told">nothing yet</pre><script>
const service = "SERVICE";
const told = [];
async function attempt(name, path, options) {
  try {
    const answer = await fetch(service + path, options);
    const text = answer.type === "opaque" ? "unreadable" : await answer.text();
    told.push(name + " = " + answer.type + " " + answer.status + " " + text.slice(0, 60).replace(/\s+/g, " "));
  } catch (error) {
    told.push(name + " = failed");
  }
}
const json = { "content-type": "application/json" };
const genesis = JSON.stringify({ event: "Ledger Created", entities: { ledger: "NAME" }, timestamp: "2024-01-01T00:00:00Z" });
(async () => {
  await attempt("mint", "/ids/snowflake", { method: "POST" });
  await attempt("mint unseen", "/ids/snowflake", { method: "POST", mode: "no-cors" });
  await attempt("mint by form", "/ids/snowflake", { method: "POST", mode: "no-cors", body: new URLSearchParams("a=1") });
  await attempt("mint by beacon text", "/ids/snowflake", { method: "POST", mode: "no-cors", body: "{}" });
  await attempt("create", "/ledgers", { method: "POST", headers: json, body: genesis });
  await attempt("create unseen", "/ledgers", { method: "POST", mode: "no-cors", body: genesis });
  await attempt("read", "/formats", {});
  navigator.sendBeacon(service + "/ids/snowflake", "{}");
  document.getElementById("told").textContent = "script ran from " + location.origin + "\n" + told.join("\n") + "\nend";
})();
</script>"#;

/// A web server of another site. It serves one page for every path.
struct Site {
    address: SocketAddr,
}

impl Site {
    /// Starts a web server at `address` that serves this page.
    fn start(address: &str, page: String) -> Site {
        let listener = TcpListener::bind(address).expect("a loopback address of its own");
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, page) = (stream.unwrap(), page.clone());
                thread::spawn(move || {
                    let mut head = [0; 8_192];
                    let _ = stream.read(&mut head);
                    let len = page.len();
                    let _ = write!(
                        stream,
                        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {len}\r\nconnection: close\r\n\r\n{page}"
                    );
                });
            }
        });
        Site { address }
    }
}

/// Opens a URL in Chromium. Returns the document after its scripts have finished.
fn document_of(url: &str) -> String {
    document_by_rules(url, "")
}

/// Opens a URL in Chromium with additional rules for resolving host names, and returns the
/// document. Chromium resolves no other name, so it sends nothing to other machines.
fn document_by_rules(url: &str, rules: &str) -> String {
    let profile = TempDir::new().unwrap();
    let mut chromium = Command::new("chromium");
    chromium
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--no-proxy-server",
        ])
        .arg(format!(
            "--host-resolver-rules={rules}MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.*"
        ))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--virtual-time-budget=20000", "--dump-dom", url])
        .env("HOME", profile.path());
    let output = output_of(&mut chromium);
    let document = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{url}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    document
}

/// Opens the page of this site, and returns the text with the results.
fn told_by(site: &Site) -> String {
    let document = document_of(&format!("http://{}/", site.address));
    let (_, told) = document
        .split_once("<pre id=\"told\">")
        .unwrap_or_else(|| panic!("no page: {document}"));
    let told = told.split("</pre>").next().unwrap_or_default().to_owned();
    println!("{told}");
    assert!(
        told.starts_with(&format!("script ran from http://{}", site.address)),
        "the script ran to its end: {told}"
    );
    assert!(told.ends_with("end"), "{told}");
    told
}

fn outcome<'a>(told: &'a str, name: &str) -> &'a str {
    let line = told
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
    line.unwrap_or_else(|| panic!("the page says nothing of `{name}`: {told}"))
}

/// Returns the number of ids that were minted so far, and the number of ledgers.
fn changes(service: &Service) -> (f64, usize) {
    let ledgers = service.get("/ledgers").text().matches("\"ledger\"").count();
    (
        service.metric("idmint_ids_minted_total{format=\"snowflake\"}"),
        ledgers,
    )
}

fn requests(service: &Service, route: &str, status: u16) -> f64 {
    let series = format!(
        "idmint_http_requests_total{{method=\"POST\",route=\"{route}\",status=\"{status}\"}}"
    );
    let text = service.get("/metrics").text();
    text.lines()
        .find_map(|line| line.strip_prefix(&series)?.trim().parse().ok())
        .unwrap_or(0.0)
}

fn page_about(service: &str, ledger: &str) -> String {
    SCRIPT.replace("SERVICE", service).replace("NAME", ledger)
}

#[test]
fn a_page_of_another_origin_can_neither_mint_nor_create_a_ledger_nor_read_an_answer() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    // Test three cases: another site, the same site at another port, and the same machine by
    // another name.
    let by_name = format!("http://localhost:{}", service.address().port());
    for (at, url) in [
        ("127.0.0.2:0", service.url()),
        ("127.0.0.1:0", service.url()),
        ("127.0.0.1:0", by_name),
    ] {
        let (before, refused) = (changes(&service), requests(&service, "/ids/{format}", 403));
        let site = Site::start(at, page_about(&url, "stolen"));
        let told = told_by(&site);
        assert_eq!(
            changes(&service),
            before,
            "nothing was minted or created for {}: {told}",
            site.address
        );
        assert!(
            requests(&service, "/ids/{format}", 403) >= refused + 3.0,
            "its requests came and were refused: {told}"
        );
        for name in ["mint", "create", "read"] {
            assert_eq!(outcome(&told, name), "failed", "{told}");
        }
        for name in [
            "mint unseen",
            "mint by form",
            "mint by beacon text",
            "create unseen",
        ] {
            assert_eq!(outcome(&told, name), "opaque 0 unreadable", "{told}");
        }
    }
}

#[test]
fn a_page_of_an_allowed_origin_mints_creates_and_reads() {
    let home = Home::new();
    let port = TcpListener::bind("127.0.0.2:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let service = Service::start(
        home.serve_with(&format!("http.cors_origins = ['http://127.0.0.2:{port}']")),
    );
    service.wait_until_ready();
    let before = changes(&service);
    let site = Site::start(
        &format!("127.0.0.2:{port}"),
        page_about(&service.url(), "of the page"),
    );
    let told = told_by(&site);
    assert!(
        outcome(&told, "mint").starts_with("cors 200 {\"format\":\"snowflake\",\"count\":1"),
        "{told}"
    );
    assert!(
        outcome(&told, "create").starts_with("cors 201 {\"ledger\":"),
        "{told}"
    );
    assert!(outcome(&told, "read").starts_with("cors 200"), "{told}");
    let (minted, ledgers) = changes(&service);
    assert!(minted > before.0 && ledgers == before.1 + 1, "{told}");

    let other = Site::start("127.0.0.3:0", page_about(&service.url(), "stolen"));
    let before = changes(&service);
    let told = told_by(&other);
    assert_eq!(
        (outcome(&told, "mint"), outcome(&told, "read")),
        ("failed", "failed"),
        "{told}"
    );
    assert_eq!(changes(&service), before, "{told}");
}

#[test]
fn a_link_to_the_service_from_another_site_opens() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let target = format!("{}/problems/draining", service.url());
    let page = format!(
        "<!doctype html><a id=go href=\"{target}\">go</a><script>document.getElementById('go').click()</script>"
    );
    let site = Site::start("127.0.0.2:0", page);
    let document = document_of(&format!("http://{}/", site.address));
    assert!(
        document.contains("This node is shutting down"),
        "the link led to the page of the service: {document}"
    );
}

#[test]
fn a_name_that_another_site_has_pointed_here_is_answered_nothing() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let port = service.address().port();
    let document = |name: &str| {
        let url = format!("http://{name}:{port}/formats/flax");
        document_by_rules(&url, "MAP rebound.example.net 127.0.0.1, ")
    };
    let rebound = document("rebound.example.net");
    assert!(
        rebound.contains("unknown-host") && !rebound.contains("base64_lex"),
        "{rebound}"
    );
    let ours = document("localhost");
    assert!(
        ours.contains("base64_lex"),
        "the control: by its own name it is answered: {ours}"
    );
}
