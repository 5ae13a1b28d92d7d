//! Checks the Prometheus rules in `deploy/`. They must be well formed. Each alert must fire and
//! must have a section in the runbook, and each service-level indicator must have a value.

use std::fs;
use std::path::Path;

use crate::tools::promtool;

const RULES: &str = "deploy/prometheus/alerts.yml";
const INDICATORS: &str = "deploy/prometheus/slis.yml";

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path))
        .expect("a file of this repository")
}

/// Returns the rest of each line that begins with `key`.
fn values<'a>(text: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines()
        .filter_map(move |line| line.trim_start().strip_prefix(key))
        .map(str::trim)
}

#[test]
fn prometheus_accepts_the_configuration_and_the_rules() {
    promtool(&["check", "config", "deploy/prometheus.yml"]);
    promtool(&["check", "rules", RULES, INDICATORS]);
}

#[test]
fn every_indicator_is_computed() {
    const CASES: &str = "deploy/prometheus/slis_test.yml";
    promtool(&["test", "rules", CASES]);
    let (rules, cases) = (read(INDICATORS), read(CASES));
    for name in values(&rules, "- record:") {
        let expected = format!("labels: '{name}{{");
        assert!(cases.contains(&expected), "slis_test.yml has no {name}");
    }
}

#[test]
fn every_alert_is_seen_firing() {
    promtool(&["test", "rules", "deploy/prometheus/alerts_test.yml"]);

    let (rules, cases) = (read(RULES), read("deploy/prometheus/alerts_test.yml"));
    for alert in values(&rules, "- alert:") {
        let firing = format!(r#"ALERTS{{alertname="{alert}", alertstate="firing""#);
        assert!(
            cases.contains(&firing),
            "alerts_test.yml does not show {alert} firing"
        );
    }
}

#[test]
fn every_alert_has_its_page_in_the_runbook() {
    let (rules, runbook) = (read(RULES), read("docs/OPERATIONS.md"));
    let headings: Vec<String> = runbook
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            line.trim_start_matches('#')
                .trim()
                .to_lowercase()
                .replace(' ', "-")
        })
        .collect();

    let address = r#"runbook_url: "{{ $externalLabels.docs_url }}/OPERATIONS.md#"#;
    let links: Vec<&str> = values(&rules, address)
        .map(|link| link.trim_end_matches('"'))
        .collect();
    assert_eq!(
        links.len(),
        values(&rules, "- alert:").count(),
        "one link for each alert"
    );
    for link in links {
        assert!(
            headings.iter().any(|heading| heading == link),
            "docs/OPERATIONS.md has no heading for #{link}"
        );
    }
    for configuration in ["deploy/prometheus.yml", "deploy/fleet/prometheus.yml"] {
        let documents: Vec<String> = values(&read(configuration), "docs_url:")
            .map(str::to_owned)
            .collect();
        assert!(
            matches!(&documents[..], [url] if url.starts_with("https://")),
            "{configuration}: {documents:?}"
        );
    }
}
