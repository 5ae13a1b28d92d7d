//! Checks that README, CONTRIBUTING, `docs/`, `config/` and `deploy/` refer only to things that
//! exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use idmint::server::Catalog;
use idmint::server::config::Config;
use regex_lite::Regex;
use tower::ServiceExt;

use crate::service::minting;

/// Returns the path of every Markdown file at the top level of the repository and below `docs`.
fn documents() -> Vec<String> {
    let mut found: Vec<String> = [
        "",
        "docs",
        "docs/formats",
        "docs/internals",
        "docs/internals/decisions",
    ]
    .iter()
    .flat_map(|folder| {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        entries.map(move |entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            Path::new(folder).join(name).to_str().unwrap().to_owned()
        })
    })
    .filter(|path| path.ends_with(".md"))
    .collect();
    found.sort();
    assert!(found.len() > 60, "only {} documents", found.len());
    found
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the text of the first group for every match of the regular expression `pattern`.
fn find_all(pattern: &str, text: &str) -> BTreeSet<String> {
    let pattern = Regex::new(pattern).unwrap();
    pattern
        .captures_iter(text)
        .map(|captures| captures[1].to_owned())
        .collect()
}

/// Returns the text of all Rust files in a folder and its subfolders.
pub(crate) fn code_below(folder: &Path) -> String {
    let mut code = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            code += &code_below(&path);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            code += &fs::read_to_string(&path).unwrap();
        }
    }
    code
}

#[test]
fn every_test_that_the_argument_names_exists() {
    let named = find_all(
        r"`((?:[a-z0-9]+_){2,}[a-z0-9]+)`",
        &read("docs/internals/UNIQUENESS.md"),
    );
    let code: String = ["src", "crates", "tests"]
        .map(|folder| code_below(&root().join(folder)))
        .concat();
    let missing: Vec<_> = named
        .iter()
        .filter(|name| !name.starts_with("idmint_"))
        .filter(|name| !code.contains(&format!("fn {name}(")))
        .collect();
    assert!(
        named.len() > 30,
        "the argument names only {} tests",
        named.len()
    );
    assert!(
        missing.is_empty(),
        "docs/internals/UNIQUENESS.md names tests that there are not: {missing:#?}"
    );
}

/// Returns the anchor that links use for a heading.
pub(crate) fn anchor_of(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let link = Regex::new(r"\]\(([^)\s#]*)(?:#([^)\s]+))?\)").unwrap();
    for document in documents() {
        let text = read(&document);
        for captures in link
            .captures_iter(&text)
            .filter(|captures| !captures[1].contains("://"))
        {
            let target: PathBuf = match &captures[1] {
                "" => PathBuf::from(&document),
                path => Path::new(&document).parent().unwrap().join(path),
            };
            assert!(
                root().join(&target).exists(),
                "{document} links to {}",
                target.display()
            );
            if let Some(anchor) = captures.get(2) {
                let page = read(&target);
                let mut headings = page.lines().filter(|line| line.starts_with('#'));
                let is_there =
                    headings.any(|line| anchor_of(line.trim_start_matches('#')) == anchor.as_str());
                assert!(
                    is_there,
                    "{document} links to {}#{}",
                    target.display(),
                    anchor.as_str()
                );
            }
        }
    }
}

#[test]
fn every_setting_that_a_document_names_exists() {
    let settings = find_all(
        r"(?m)^(?:# )?([a-z]+(?:\.[a-z_]+)+) = ",
        &read("config/default.toml"),
    );
    let sections: BTreeSet<_> = settings
        .iter()
        .filter_map(|setting| setting.split('.').next())
        .collect();
    for document in documents() {
        let text = read(&document);
        let of_variables = find_all(r"IDMINT_([A-Z]+__[A-Z_]*[A-Z])", &text);
        let of_variables = of_variables
            .iter()
            .map(|name| name.to_lowercase().replace("__", "."));
        let named = find_all(r"`([a-z]+(?:\.[a-z_]+)+)(?: = [^`]*)?`", &text)
            .into_iter()
            .chain(of_variables);
        for setting in named.filter(|setting| sections.contains(setting.split('.').next().unwrap()))
        {
            assert!(
                settings.contains(&setting),
                "{document} names {setting}, config/default.toml does not"
            );
        }
    }
}

/// Returns the formats of a configuration that has only these keys.
fn catalog(toml: &str) -> Catalog {
    let flags = toml
        .parse()
        .unwrap_or_else(|error| panic!("{error}\n{toml}"));
    let config = Config::load(None, std::iter::empty(), flags)
        .unwrap_or_else(|error| panic!("{error}\n{toml}"));
    Catalog::of(&config).unwrap_or_else(|error| panic!("{error}\n{toml}"))
}

#[test]
fn every_configuration_in_a_document_is_sound() {
    let mut blocks = 0;
    for document in documents() {
        for block in find_all(r"(?s)```toml\n(.*?)```", &read(&document)) {
            catalog(&block);
            blocks += 1;
        }
    }
    assert!(blocks > 0, "no document shows a configuration");
}

#[test]
fn the_formats_that_the_default_file_gives_as_examples_are_sound() {
    let file = read("config/default.toml");
    let lines: Vec<_> = file
        .lines()
        .filter_map(|line| line.strip_prefix("# formats."))
        .collect();
    assert!(lines.len() > 2, "the examples are gone");
    let names = catalog(
        &lines
            .iter()
            .map(|line| format!("formats.{line}\n"))
            .collect::<String>(),
    );
    assert!(
        names
            .formats
            .iter()
            .any(|format| format.name == "payment-2022")
    );
}

/// A regular expression for a label matcher in a Prometheus rule, such as `name{label!="value"}`.
const SELECTOR: &str = r#"(idmint_[a-z_]+\{[a-z]+!?="[^"]*")"#;

#[tokio::test]
async fn every_metric_that_a_document_or_an_alert_names_is_there_from_the_first_scrape() {
    let request = Request::builder()
        .uri("/metrics")
        .header("host", "localhost")
        .body(Body::empty())
        .unwrap();
    let answer = minting().await.oneshot(request).await.unwrap();
    let scraped = String::from_utf8(
        answer
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes()
            .to_vec(),
    )
    .unwrap();
    let mut known = find_all(r"(?m)^# TYPE (idmint_[a-z_]+) ", &scraped);
    // This service uses neither tokens nor TLS, so it does not export this metric.
    // tests/process/expiring.rs tests the metric.
    known.insert("idmint_expiry_timestamp_seconds".to_owned());

    let rules = ["alerts.yml", "slis.yml"]
        .map(|file| (file.to_owned(), read(format!("deploy/prometheus/{file}"))));
    let texts = documents()
        .into_iter()
        .map(|document| (document.clone(), read(&document)));
    for (document, text) in texts.chain(rules.clone()) {
        for name in find_all(r"\b(idmint_[a-z_]+[a-z])\b", &text) {
            // Also search the series, because those of a histogram have longer names than the
            // metric, such as `NAME_bucket`.
            let has_series = || {
                let series = format!("{name}{{");
                scraped.lines().any(|line| line.starts_with(&series))
            };
            assert!(
                known.contains(&name) || has_series(),
                "{document} names {name}, which is not scraped"
            );
        }
    }
    let selectors = |(file, text): (String, String)| {
        find_all(SELECTOR, &text)
            .into_iter()
            .map(move |selector| (file.clone(), selector))
    };
    for (file, selector) in rules.into_iter().flat_map(selectors) {
        let (name, label) = selector.split_once('{').unwrap();
        let label = label.replace("!=", "=");
        let is_there = scraped
            .lines()
            .any(|line| line.starts_with(&format!("{name}{{")) && line.contains(&label));
        assert!(
            is_there,
            "{file} looks for {selector}}}, which no series has"
        );
    }
}

#[test]
fn the_changelog_describes_the_version_of_the_crates_or_a_later_one() {
    let changelog = read("CHANGELOG.md");
    let mut sections = changelog.split("\n## ").skip(1).peekable();
    let is_unreleased = |section: &&str| section.starts_with("[Unreleased]\n");
    let unreleased = sections.next_if(is_unreleased);
    let newest = sections.next().expect("a version");
    for section in unreleased.iter().chain([&newest]) {
        assert!(
            section.lines().any(|line| line.starts_with("- ")),
            "{section} names no change"
        );
    }
    let (version, date) = newest
        .lines()
        .next()
        .and_then(|heading| heading.strip_prefix('[')?.split_once("] - "))
        .expect("a heading such as [0.1.0] - 2026-11-29");
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    date.parse::<jiff::civil::Date>()
        .unwrap_or_else(|error| panic!("{version} has the date {date:?}: {error}"));
}

#[tokio::test]
async fn every_request_of_the_cheat_sheet_works() {
    let router = minting().await;
    let ask = async |method: &str, accept: &str, uri: &str| {
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header("host", "localhost")
            .header("accept", accept);
        let answer = router
            .clone()
            .oneshot(request.body(Body::empty()).unwrap())
            .await
            .unwrap();
        assert_eq!(answer.status(), 200, "{method} {uri} ({accept})");
        String::from_utf8_lossy(&answer.into_body().collect().await.unwrap().to_bytes())
            .into_owned()
    };
    let sheet = ask("GET", "*/*", "/").await;
    assert_eq!(sheet.lines().count(), 10, "{sheet}");
    let request =
        Regex::new(r"(-X POST )?(?:-H 'Accept: ([^']+)' )?'?http://localhost:8080(/[^'\s)$]*)")
            .unwrap();
    let mut asked = 0;
    for captures in request.captures_iter(&sheet) {
        let method = if captures.get(1).is_some() {
            "POST"
        } else {
            "GET"
        };
        // The example is a shell command that appends an id to this address.
        let id = if &captures[3] == "/decode/" {
            "175928847299117063"
        } else {
            ""
        };
        let uri = format!("{}{id}", &captures[3]);
        ask(
            method,
            captures.get(2).map_or("*/*", |accept| accept.as_str()),
            &uri,
        )
        .await;
        asked += 1;
    }
    assert_eq!(asked, 9, "{sheet}");
}
