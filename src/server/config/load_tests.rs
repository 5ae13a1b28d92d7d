//! Tests of loading the configuration: which layer (file, environment or command line) takes
//! precedence, which values are refused, and with which message.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use toml::Table;

use super::configuration::Config;
use super::error::{ConfigError, Origin};
use super::storage::Engine;
#[cfg(feature = "etcd")]
use super::storage::EngineChoice;
use super::worker::{Assignment, AssignmentKind};

/// A configuration file. Dropping this value removes the file.
struct File {
    path: PathBuf,
    _folder: TempDir,
}

fn file(text: &str) -> File {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("idmint.toml");
    fs::write(&path, text).expect("a file");
    File {
        path,
        _folder: folder,
    }
}

fn toml(text: &str) -> Table {
    text.parse().expect("TOML")
}

fn pairs(env: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
    env.iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect::<Vec<_>>()
        .into_iter()
}

fn load_file(text: &str) -> Result<Config, ConfigError> {
    Config::load(Some(&file(text).path), pairs(&[]), Table::new())
}

fn load_env(env: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Config::load(None, pairs(env), Table::new())
}

/// Returns the key, the layer and the message of the error for a refused setting.
fn refusal_of(result: Result<Config, ConfigError>) -> (String, Origin, String) {
    match result {
        Err(ConfigError::Setting {
            key,
            origin,
            problem,
        }) => (key, origin, problem),
        other => panic!("expected a refused setting: {other:?}"),
    }
}

#[test]
fn nothing_set_is_the_defaults() {
    assert_eq!(
        load_env(&[("PATH", "/bin"), ("HOSTNAME", "idmint-3")]).expect("valid"),
        Config::default()
    );
}

#[test]
fn a_flag_goes_over_a_variable_over_the_file_over_the_default() {
    let file = file("mint = { batch_max = 2, wait_max = \"2s\", lead_max = \"2ms\" }");
    let env = [
        ("IDMINT_MINT__WAIT_MAX", "3s"),
        ("IDMINT_MINT__LEAD_MAX", "3ms"),
    ];
    let flags = toml("mint.lead_max = \"4ms\"");
    let mint = Config::load(Some(&file.path), pairs(&env), flags)
        .expect("valid")
        .mint;

    assert_eq!(mint.on_exhausted, Config::default().mint.on_exhausted);
    assert_eq!(mint.batch_max, 2);
    assert_eq!(mint.wait_max, Duration::from_secs(3));
    assert_eq!(mint.lead_max, Duration::from_millis(4));
}

#[test]
fn tables_are_merged_and_lists_are_replaced() {
    let file = file(
        "siq.domains = [\"a.example\", \"b.example\"]\n[formats.invoice]\ntick = \"1s\"\nepoch = \"x\"",
    );
    let env = [
        ("IDMINT_SIQ__DOMAINS", "[\"c.example\"]"),
        ("IDMINT_FORMATS__INVOICE__EPOCH", "2025-01-01T00:00:00Z"),
    ];
    let config = Config::load(Some(&file.path), pairs(&env), Table::new()).expect("valid");

    assert_eq!(config.siq.domains, ["c.example"]);
    assert_eq!(
        config.formats.definitions["invoice"],
        toml("tick = \"1s\"\nepoch = \"2025-01-01T00:00:00Z\"")
    );
}

#[test]
fn a_variable_keeps_the_letter_case_of_a_designator() {
    let by_variable = load_env(&[("IDMINT_CONJUNCTION__DESIGNATORS__L3972", "90001")]);
    let by_file = load_file("conjunction.designators = { L3972 = 90001 }");
    assert_eq!(
        by_variable.expect("valid").conjunction,
        by_file.expect("valid").conjunction
    );
}

#[test]
fn a_variable_is_toml_where_it_is_toml_and_text_elsewhere() {
    let config = load_env(&[
        ("IDMINT_HTTP__LISTEN", "[::1]:80"),
        ("IDMINT_HTTP__ADMIN_LISTEN", "\"127.0.0.1:9090\""),
        (
            "IDMINT_HTTP__CORS_ORIGINS",
            "['https://a.example', 'https://b.example']",
        ),
        ("IDMINT_MINT__BATCH_MAX", "1_000"),
        ("IDMINT_WORKER", "{ slots = 4, exclusive = true }"),
        ("IDMINT_WORKER__SLOT", "ordinal"),
        ("HOSTNAME", "idmint-3"),
    ])
    .expect("valid");

    assert_eq!(config.http.listen.to_string(), "[::1]:80");
    assert_eq!(
        config.http.admin_listen.map(|address| address.port()),
        Some(9090)
    );
    assert_eq!(config.http.cors_origins.len(), 2);
    assert_eq!(config.mint.batch_max, 1_000);
    assert_eq!(
        config.worker.assignment(),
        Assignment {
            slot: 3,
            slots: 4,
            kind: AssignmentKind::Ordinal
        }
    );
}

#[test]
fn an_unknown_key_is_refused_in_every_section_and_layer() {
    let sections = [
        "http",
        "mint",
        "worker",
        "clock",
        "storage",
        "etcd",
        "decode",
        "siq",
        "typeid",
        "conjunction",
        "log",
    ];
    for section in sections {
        let key = format!("{section}.nonesuch");
        let (found, _, problem) = refusal_of(load_file(&format!("{key} = 1")));
        assert_eq!(found, key);
        assert!(
            problem.contains("unknown field `nonesuch`, expected"),
            "{problem}"
        );

        let variable = format!("IDMINT_{}__NONESUCH", section.to_uppercase());
        let (found, origin, _) = refusal_of(load_env(&[(&variable, "1")]));
        assert_eq!((found, origin), (key.clone(), Origin::Variable(variable)));

        let (found, origin, _) =
            refusal_of(Config::load(None, pairs(&[]), toml(&format!("{key} = 1"))));
        assert_eq!((found, origin), (key, Origin::Flags));
    }
    assert_eq!(refusal_of(load_file("nonesuch = 1")).0, "nonesuch");
    for variable in [
        "IDMINT_NONESUCH",
        "IDMINT_",
        "IDMINT_HTTP__",
        "IDMINT_HTTP_LISTEN",
        "IDMINT_PORT",
    ] {
        assert_eq!(
            refusal_of(load_env(&[(variable, "1")])).1,
            Origin::Variable(variable.into())
        );
    }
}

#[test]
fn a_refusal_in_the_file_names_line_key_value_and_what_is_accepted() {
    let file = file("# Ours.\n[mint]\nbatch_max = 5\nwait_max = \"61s\"\n");
    let error =
        Config::load(Some(&file.path), pairs(&[]), Table::new()).expect_err("out of bounds");
    assert_eq!(
        error.to_string(),
        format!(
            "{}, line 4: mint.wait_max: invalid value: string \"61s\", expected a duration from \"0s\" to \"1m\", \
             a whole number and one of us, ms, s, m, h, d",
            file.path.display()
        )
    );
}

#[test]
fn a_refusal_names_the_setting_however_it_is_written() {
    for (text, key, line) in [
        ("[mint]\nbatch_max = 0", "mint.batch_max", 2),
        (
            "mint = { lead_max = '1ms', batch_max = 0 }",
            "mint.batch_max",
            1,
        ),
        ("mint.batch_max = 0", "mint.batch_max", 1),
        ("[nonesuch.below]\nbatch_max = 1", "nonesuch", 1),
        (
            "log.level = 'info'\n[mint.batch_max]\nmost = 1",
            "mint.batch_max",
            2,
        ),
        (
            "http.cors_origins = [\n'https://a.example',\n'b.example',\n]",
            "http.cors_origins[1]",
            3,
        ),
        ("formats.invoice = 1", "formats.invoice", 1),
        ("[formats]\ninvoice = 'x'", "formats.invoice", 2),
    ] {
        let (found, origin, problem) = refusal_of(load_file(text));
        let Origin::File {
            line: found_line, ..
        } = origin
        else {
            panic!("{text:?}: {origin:?}")
        };
        assert_eq!(
            (found.as_str(), found_line),
            (key, Some(line)),
            "{text:?}: {problem}"
        );
    }
}

#[test]
fn a_refused_variable_is_named_even_where_a_flag_replaces_it() {
    let flags = toml("http.listen = \"127.0.0.1:1\"");
    let error = Config::load(
        None,
        pairs(&[("IDMINT_HTTP__LISTEN", "localhost:80")]),
        flags,
    )
    .expect_err("no address");
    assert_eq!(
        error.to_string(),
        "environment variable IDMINT_HTTP__LISTEN: http.listen: invalid value: string \"localhost:80\", \
         expected an IP address and a port such as \"127.0.0.1:8080\" or \"[::1]:8080\""
    );
}

#[test]
fn a_file_that_is_not_toml_is_refused_with_its_line() {
    for (text, expected) in [
        ("\n\nhttp = ", 3),
        ("a = 1\n[http\n", 2),
        ("log.level = 'info'\nlog.level = 'warn'", 2),
    ] {
        match load_file(text) {
            Err(ConfigError::NotToml { line, .. }) => assert_eq!(line, expected, "{text:?}"),
            other => panic!("{text:?}: {other:?}"),
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_refusal_of() {
    let file = file("");
    let missing = file.path.with_file_name("other.toml");
    let error = Config::load(Some(&missing), pairs(&[]), Table::new()).expect_err("no such file");
    assert!(matches!(error, ConfigError::Unreadable { .. }), "{error}");
}

#[test]
fn every_number_and_duration_is_accepted_at_its_bounds_and_refused_one_past_them() {
    let bounds = [
        ("http.connections_max", "1", "1_000_000", "0", "1_000_001"),
        (
            "http.connections_per_peer",
            "1",
            "1_000_000",
            "0",
            "1_000_001",
        ),
        (
            "http.connection_age_max",
            "'1s'",
            "'30d'",
            "'999ms'",
            "'31d'",
        ),
        ("http.in_flight_max", "2", "1_000_000", "1", "1_000_001"),
        (
            "http.memory_max",
            "'32MiB'",
            "'1048576MiB'",
            "'31MiB'",
            "'128'",
        ),
        ("etcd.quota", "'16MiB'", "'1048576MiB'", "'15MiB'", "'2GiB'"),
        ("http.header_timeout", "'1ms'", "'1h'", "'999us'", "'3601s'"),
        ("http.body_timeout", "'1ms'", "'1h'", "'0s'", "'3600001ms'"),
        ("http.idle_timeout", "'1ms'", "'60m'", "'0ms'", "'61m'"),
        ("mint.batch_max", "1", "10_000_000", "0", "10_000_001"),
        ("mint.wait_max", "'0s'", "'60s'", "'-1s'", "'60001ms'"),
        ("mint.lead_max", "'0ms'", "'1s'", "5", "'1001ms'"),
        ("worker.slots", "1", "4_294_967_295", "0", "4_294_967_296"),
        ("worker.lanes", "1", "4_294_967_295", "0", "'many'"),
        (
            "worker.shard",
            "0",
            "9_223_372_036_854_775_807",
            "-1",
            "'0'",
        ),
        ("clock.max_ahead", "'0s'", "'1h'", "''", "'3601s'"),
        ("clock.skew_max", "'1ms'", "'1h'", "'0s'", "'1d'"),
        ("storage.window", "'100ms'", "'1h'", "'99ms'", "'3601s'"),
        ("siq.local_id", "1", "256", "0", "257"),
        ("conjunction.analysis_reach", "'0s'", "'1d'", "''", "'25h'"),
        (
            "conjunction.retention",
            "'1d'",
            "'36500d'",
            "'23h'",
            "'36501d'",
        ),
    ];
    for (key, min, max, below, above) in bounds {
        for value in [min, max] {
            assert!(
                load_file(&format!("{key} = {value}")).is_ok(),
                "{key} = {value}"
            );
        }
        for value in [below, above] {
            assert_eq!(
                refusal_of(load_file(&format!("{key} = {value}"))).0,
                key,
                "{key} = {value}"
            );
        }
    }
}

#[test]
fn every_choice_is_accepted_and_anything_else_refusal_of() {
    let choices = [
        ("mint.on_exhausted", ["wait", "refuse"].as_slice()),
        ("worker.lanes", &["auto"]),
        ("storage.engine", &["memory", "embedded"]),
        ("conjunction.mode", &["grouped", "pure"]),
        ("conjunction.pair_order", &["reported", "unordered"]),
        ("conjunction.note", &["comment", "conjunction_id"]),
        ("log.format", &["text", "json"]),
        ("log.level", &["error", "warn", "info", "debug", "trace"]),
    ];
    for (key, words) in choices {
        for word in words {
            assert!(
                load_file(&format!("{key} = {word:?}")).is_ok(),
                "{key} = {word}"
            );
        }
        for value in ["\"nonesuch\"", "\"\"", "\"Auto\"", "1.5", "true"] {
            assert_eq!(
                refusal_of(load_file(&format!("{key} = {value}"))).0,
                key,
                "{key} = {value}"
            );
        }
    }
}

#[test]
fn texts_and_lists_are_checked_where_they_are_read() {
    for (setting, key) in [
        ("http.listen = \"127.0.0.1\"", "http.listen"),
        ("http.admin_listen = 9090", "http.admin_listen"),
        (
            "http.cors_origins = [\"*\", \"https://a.example/\"]",
            "http.cors_origins[1]",
        ),
        (
            "http.cors_origins = [\"https://a.example:443\"]",
            "http.cors_origins[0]",
        ),
        (
            "http.hosts = [\"*\", \"ids.example.com:8080\"]",
            "http.hosts[1]",
        ),
        (
            "http.hosts = [\"https://ids.example.com\"]",
            "http.hosts[0]",
        ),
        ("http.drain_delay = \"61m\"", "http.drain_delay"),
        ("storage.data_dir = \"\"", "storage.data_dir"),
        ("siq.type = \"\"", "siq.type"),
        ("siq.domains = [\"Example.com\"]", "siq.domains[0]"),
        ("siq.domains = [\"münchen.example\"]", "siq.domains[0]"),
        ("siq.domains = \"example.com\"", "siq.domains"),
        (
            "siq.domains = [\"a.example\", \"a.example\"]",
            "siq.domains",
        ),
        ("typeid.types = [\"user\", \"User\"]", "typeid.types[1]"),
        ("typeid.types = [\"user\", \"user\"]", "typeid.types"),
        ("typeid.types = [\"user_\"]", "typeid.types[0]"),
        (
            "decode.order = [\"flax\", \"ulid\", \"flax\"]",
            "decode.order",
        ),
        ("formats.enabled = [\"flax\", \"flax\"]", "formats.enabled"),
        ("formats.flax = true", "formats.flax"),
        ("worker.exclusive = \"yes\"", "worker.exclusive"),
        ("worker.slot = \"first\"", "worker.slot"),
        ("worker.slot = -1", "worker.slot"),
    ] {
        assert_eq!(refusal_of(load_file(setting)).0, key, "{setting}");
    }
}

#[cfg(not(feature = "etcd"))]
#[test]
fn etcd_is_refused_by_a_build_without_it() {
    let (key, _, problem) = refusal_of(load_file("storage.engine = \"etcd\""));
    assert_eq!(key, "storage.engine");
    assert!(
        problem.contains("not built in: build with --features etcd"),
        "{problem}"
    );
}

#[cfg(feature = "etcd")]
#[test]
fn in_a_fleet_the_window_is_longer_and_nobody_vouches_for_a_slot() {
    const FLEET: &str = "storage.engine = \"etcd\"\nworker.slots = 32\n[etcd]\nendpoints = [\"http://127.0.0.1:2379\"]";
    let fleet = file(FLEET);
    let kubernetes = [("KUBERNETES_SERVICE_HOST", "10.0.0.1")];
    let config = Config::load(Some(&fleet.path), pairs(&kubernetes), Table::new()).expect("valid");
    assert_eq!(config.storage.window(), Duration::from_secs(60));
    assert_eq!(
        config.worker.assignment(),
        Assignment {
            slot: 0,
            slots: 32,
            kind: AssignmentKind::Leased
        }
    );
    assert_eq!(
        config.engine_choice(),
        EngineChoice::Etcd(config.etcd.checked())
    );

    let shorter = Config::load(
        Some(&fleet.path),
        pairs(&[("IDMINT_STORAGE__WINDOW", "20s")]),
        Table::new(),
    );
    assert_eq!(
        shorter.expect("valid").storage.window(),
        Duration::from_secs(20)
    );
    let chosen = Config::load(
        Some(&fleet.path),
        pairs(&[("IDMINT_WORKER__SLOT", "3")]),
        Table::new(),
    );
    assert_eq!(refusal_of(chosen).0, "worker.slot");
    assert_eq!(
        refusal_of(load_file("storage.engine = \"etcd\"")).0,
        "etcd.endpoints"
    );

    let of_share = |share| {
        Config::load(
            Some(&fleet.path),
            pairs(&[("IDMINT_CLUSTER__SLOTS", share)]),
            Table::new(),
        )
    };
    assert_eq!(
        of_share("16-31").expect("valid").slot_share().to_string(),
        "16-31 of 32"
    );
    let (key, _, problem) = refusal_of(of_share("16-32"));
    assert_eq!(
        (key.as_str(), problem.contains("beyond worker.slots = 32")),
        ("cluster.slots", true),
        "{problem}"
    );
}

#[test]
fn a_share_of_slots_is_refused_where_nobody_leases_them() {
    let (key, _, problem) = refusal_of(load_file("cluster.slots = \"0-15\""));
    assert_eq!(
        (key.as_str(), problem.contains("storage.engine = \"etcd\"")),
        ("cluster.slots", true),
        "{problem}"
    );
}

#[test]
fn a_node_that_is_alone_reserves_three_seconds() {
    assert_eq!(Config::default().storage.engine, Engine::Embedded);
    assert_eq!(Config::default().storage.window(), Duration::from_secs(3));
}

#[test]
fn a_slot_that_does_not_go_with_the_rest_names_the_layer_that_set_it() {
    let file = file("worker = { slots = 4, exclusive = true, slot = 3 }");
    let loaded = |env: &[(&str, &str)]| Config::load(Some(&file.path), pairs(env), Table::new());
    assert_eq!(
        loaded(&[]).expect("valid").worker.assignment(),
        Assignment {
            slot: 3,
            slots: 4,
            kind: AssignmentKind::Configured
        }
    );

    let of_variable = refusal_of(loaded(&[("IDMINT_WORKER__SLOT", "4")]));
    assert_eq!(
        (of_variable.0.as_str(), of_variable.1),
        (
            "worker.slot",
            Origin::Variable("IDMINT_WORKER__SLOT".into())
        )
    );
    assert!(
        of_variable
            .2
            .contains("slot 4 is not below worker.slots = 4"),
        "{}",
        of_variable.2
    );

    let of_file = refusal_of(loaded(&[("IDMINT_WORKER__SLOTS", "3")]));
    assert_eq!(
        of_file.1,
        Origin::File {
            path: file.path.clone(),
            line: None
        }
    );
    let unvouched = refusal_of(loaded(&[("IDMINT_WORKER__EXCLUSIVE", "false")]));
    assert!(
        unvouched.2.contains("worker.exclusive = true"),
        "{}",
        unvouched.2
    );
}

#[test]
fn under_kubernetes_the_operator_must_vouch_for_the_slot() {
    let kubernetes = ("KUBERNETES_SERVICE_HOST", "10.0.0.1");
    let (key, origin, problem) = refusal_of(load_env(&[kubernetes]));
    assert_eq!(
        (key.as_str(), origin),
        ("worker.exclusive", Origin::Default)
    );
    assert!(problem.contains("Kubernetes"), "{problem}");
    assert!(load_env(&[kubernetes, ("IDMINT_WORKER__EXCLUSIVE", "true")]).is_ok());
}

#[test]
fn a_command_that_runs_no_node_needs_neither_a_promise_nor_an_ordinal() {
    let file = file("worker = { slots = 4, slot = \"ordinal\" }");
    let load = |env: &[(&str, &str)]| Config::load_without_slot(Some(&file.path), pairs(env));
    let in_pod = [
        ("KUBERNETES_SERVICE_HOST", "10.0.0.1"),
        ("HOSTNAME", "laptop"),
    ];
    let config = load(&in_pod).expect("valid");
    assert_eq!(
        config.worker.assignment(),
        Assignment {
            slot: 0,
            slots: 4,
            kind: AssignmentKind::Ordinal
        }
    );
    assert_eq!(
        refusal_of(load(&[("IDMINT_WORKER__SLOT", "4")])).0,
        "worker.slot",
        "a slot that no node can have is an error of the file"
    );
}

#[test]
fn the_environment_alone_may_lack_the_settings_of_a_file_but_not_be_wrong() {
    let load = |name, value| Config::from_environment(pairs(&[(name, value)]));
    let config = load("IDMINT_HTTP__TLS__KEY", "/etc/idmint/tls.key").expect("half of a pair");
    assert_eq!(config.http.tls.key, Some("/etc/idmint/tls.key".into()));
    let name = "IDMINT_HTTP__LISTEN";
    assert_eq!(
        refusal_of(load(name, "8080")).1,
        Origin::Variable(name.into())
    );
}

#[test]
fn what_kubernetes_says_about_a_service_of_our_name_is_no_setting() {
    let links = [
        ("KUBERNETES_SERVICE_HOST", "10.0.0.1"),
        ("IDMINT_WORKER__EXCLUSIVE", "true"),
        ("IDMINT_SERVICE_HOST", "10.0.0.2"),
        ("IDMINT_SERVICE_PORT", "8080"),
        ("IDMINT_SERVICE_PORT_HTTP", "8080"),
        ("IDMINT_PORT", "tcp://10.0.0.2:8080"),
        ("IDMINT_PORT_8080_TCP", "tcp://10.0.0.2:8080"),
        ("IDMINT_PORT_8080_TCP_ADDR", "10.0.0.2"),
        ("IDMINT_ADMIN_SERVICE_HOST", "10.0.0.3"),
        ("IDMINT_ADMIN_PORT_9090_TCP_PROTO", "tcp"),
    ];
    assert!(load_env(&links).is_ok());
    assert_eq!(
        refusal_of(load_env(&[links[0], links[1], ("IDMINT_NONESUCH", "1")])).0,
        "nonesuch"
    );
    assert_eq!(
        refusal_of(load_env(&[links[0], links[1], ("IDMINT_HTTP__PORT", "1")])).0,
        "http.port"
    );
}
