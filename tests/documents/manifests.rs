//! What runs the service elsewhere: callers there find it by its name, and one command starts what its file says.

use idmint::http::Slug;
use regex_lite::Regex;

use crate::references::{read, root};

#[test]
fn every_manifest_names_the_hosts_that_its_callers_use_and_the_refusal_says_where() {
    let quoted = Regex::new(r#""([a-z0-9.-]+)""#).unwrap();
    for (file, setting, callers) in [
        ("docker-compose.yml", "IDMINT_HTTP__HOSTS: '", &["idmint"][..]),
        ("docker-compose.fleet.yml", "IDMINT_HTTP__HOSTS: '", &["idmint", "nodes", "idmint-1", "idmint-2", "idmint-3"]),
        ("deploy/kubernetes/config.yaml", "http.hosts = ", &["idmint", "idmint.ids", "idmint.ids.svc"]),
    ] {
        let text = read(file);
        let line = text.lines().find_map(|line| line.trim().strip_prefix(setting));
        let line = line.unwrap_or_else(|| panic!("{file} does not set http.hosts"));
        let hosts: Vec<&str> = quoted.captures_iter(line).map(|host| host.get(1).unwrap().as_str()).collect();
        assert!(callers.iter().all(|caller| hosts.contains(caller)), "{file}: {hosts:?}");
    }
    let page = Slug::ALL.iter().map(|slug| slug.page()).find(|page| page.name == "unknown-host").unwrap();
    assert!(page.safe_action.contains("http.hosts"), "{}", page.safe_action);
}

/// Versions of compose differ in which of `.env`, the environment and `--profile` goes over which, and whether `down` ends what is of
/// a profile.
#[test]
fn compose_has_a_file_for_each_way_to_run_and_neither_profiles_nor_an_env_file() {
    for file in ["docker-compose.yml", "docker-compose.fleet.yml"] {
        assert!(!read(file).contains("profiles"), "{file}");
        assert!(read(file).lines().take(8).any(|line| line.contains("down")), "{file} says how to end it");
    }
    assert!(!root().join(".env").exists());
}
