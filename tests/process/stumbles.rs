//! Repeats mistakes that stopped users on their first day. Each error message must name the mistake
//! and the remedy.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use idmint_testing::service::{Ended, Home, Service, idmint, run};

fn check(home: &Home, toml: &str) -> Ended {
    let file = home.path("checked.toml");
    fs::write(&file, toml).unwrap();
    run(idmint(&["check", "--config", file.to_str().unwrap()]))
}

#[test]
fn check_warns_of_formats_that_mint_nothing_and_of_one_that_is_not_the_built_in_one() {
    let home = Home::new();
    let other_fields = "fields = [{ name = 'time', kind = 'time', bits = 41 }, { name = 'sequence', kind = 'sequence', bits = 9 }]";
    let worker_first = "fields = [{ name = 'worker', kind = 'worker', digits = 1, radix = 36 }, \
        { name = 'time', kind = 'time', digits = 6, radix = 36 }, \
        { name = 'sequence', kind = 'sequence', digits = 2, radix = 36 }]";
    for (toml, words) in [
        (
            "[formats.later]\nlike = 'payment'\nepoch = '2200-01-01T00:00:00Z'",
            "later begins at 2200-01-01T00:00:00",
        ),
        (
            "[formats.over]\nlike = 'payment'\ntick = '1ms'",
            "over ended at 2024-01-26",
        ),
        (
            "[numbers.inv]\npattern = 'inv-*'\ntext = 'INV-{n:05}'",
            "numbers.inv writes the same text for numbers of different series",
        ),
        (
            &format!("[formats.twitter]\n{other_fields}"),
            "twitter is a configured format, which replaces the built-in format of that name",
        ),
        (
            "[formats.twitter]\nepoch = '2024-01-01T00:00:00Z'",
            "twitter is a configured format, which replaces the built-in format of that name",
        ),
        (
            &format!("[formats.mine]\nlike = 'payment'\n{worker_first}"),
            "mine: field `worker` stands above the time",
        ),
    ] {
        let ended = check(&home, toml);
        ended.assert(0, &[]);
        assert!(
            ended.out.contains(&format!("warning: {words}")),
            "{words}: {}",
            ended.out
        );
        assert!(
            ended.out.ends_with("valid, with 1 warning\n"),
            "{}",
            ended.out
        );
    }
    let names_series = "[numbers.inv]\npattern = 'inv-*'\ntext = 'INV-{series}-{n:05}'";
    let ended = check(
        &home,
        &format!("[formats.mine]\nlike = 'payment'\n{names_series}"),
    );
    assert!(
        ended.out.ends_with("the configuration is valid\n"),
        "{}",
        ended.out
    );
}

#[test]
fn a_wrong_format_names_its_file_and_the_page_that_has_the_keys() {
    let home = Home::new();
    let ended = check(
        &home,
        "# Mine\n[formats.mine]\nlike = 'payment'\nepok = '2024-01-01T00:00:00Z'",
    );
    ended.assert(
        78,
        &[
            "checked.toml, line 4: format `mine`: epok: unknown key; did you mean `epoch`?",
            "docs/CUSTOM-FORMATS.md",
        ],
    );
}

/// A user made these mistakes after reading only docs/CUSTOM-FORMATS.md.
#[test]
fn three_mistakes_in_an_own_format_each_lead_to_their_key() {
    let home = Home::new();
    let right = "# Orders
[formats.order]
summary   = 'Order code'
rule      = 'sequenced'
tick      = '1s'
epoch     = '2025-01-01T00:00:00Z'
fields    = [
    { name = 'time', kind = 'time', digits = 7, radix = 20 },
    { name = 'worker', kind = 'worker', digits = 1, radix = 20 },
    { name = 'sequence', kind = 'sequence', digits = 2, radix = 20 },
]
encodings = [{ kind = 'radix', name = 'code', alphabet = '346789BCDFGHJKMPQRTW', check = 'mod97' }]
";
    check(&home, right).assert(0, &[]);
    for (from, to, line, words) in [
        (
            "digits = 2,",
            "digit = 2,",
            10,
            ["field `sequence`: digit: unknown key", "`digits`"],
        ),
        (
            "kind = 'worker'",
            "kind = 'node'",
            9,
            ["field `worker`: kind: `node` is not", "`worker`"],
        ),
        (
            "check = 'mod97'",
            "check = 'luhn'",
            12,
            ["encoding `code`: check: `luhn` is not", "`mod97`"],
        ),
        (
            "check = 'mod97'",
            "length = 9",
            12,
            ["length is 9", "must be 10 to 255"],
        ),
        (
            "'346789BCDFGHJKMPQRTW'",
            "'346789BCD'",
            12,
            [
                "check is mod97",
                "needs an alphabet of at least 10 letters, got 9",
            ],
        ),
        ("tick      = '1s'", "", 2, ["tick", "order"]),
    ] {
        assert_eq!(right.matches(from).count(), 1, "{from}");
        let ended = check(&home, &right.replace(from, to));
        ended.assert(
            78,
            &[
                &format!("checked.toml, line {line}: format `order`: "),
                "docs/CUSTOM-FORMATS.md",
                words[0],
                words[1],
            ],
        );
        println!("{}", ended.err);
    }
}

#[test]
fn a_variable_that_goes_over_the_file_is_told() {
    let home = Home::new();
    let mut command =
        home.serve_with("log.level = 'warn'\nmint.batch_max = 7\nmint.wait_max = '1s'");
    command
        .env("IDMINT_MINT__BATCH_MAX", "9")
        .env("IDMINT_MINT__WAIT_MAX", "1s");
    let service = Service::start(command);
    let log = service.log_once_it_says(
        "the environment variable IDMINT_MINT__BATCH_MAX overrides mint.batch_max of",
    );
    assert!(
        !log.contains("IDMINT_MINT__WAIT_MAX"),
        "the same value goes over nothing: {log}"
    );
}

#[test]
fn a_server_needs_no_scheme_and_may_end_in_a_slash() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    for server in [service.address().to_string(), format!("{}/", service.url())] {
        run(idmint(&["mint", "payment", "--server", &server])).assert(0, &[]);
    }
}

#[test]
fn an_address_to_listen_on_is_an_ip_address_and_a_port() {
    let ended = run(idmint(&["serve", "--listen", "localhost:8080"]));
    ended.assert(
        64,
        &[
            "localhost:8080",
            "an IP address and a port",
            "127.0.0.1:8080",
        ],
    );
}

#[test]
fn a_backup_into_a_folder_that_has_one_names_the_folder_and_blames_no_disk() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let (folder, data_dir) = (home.path("copy"), home.data_dir());
    let back_up = |folder: &Path| {
        run(idmint(&[
            "backup",
            folder.to_str().unwrap(),
            "--data-dir",
            data_dir.to_str().unwrap(),
        ]))
    };
    back_up(&folder).assert(0, &[]);
    let again = back_up(&folder);
    again.assert(74, &["copy is not empty: name an empty folder"]);
    assert!(!again.err.contains("disk"), "{}", again.err);
}

#[test]
fn a_token_names_formats_that_there_are() {
    let home = Home::new();
    let file = home.path("tokens.toml");
    let new = |formats: &str| {
        let arguments = [
            "token",
            "new",
            "--name",
            "one",
            "--scopes",
            "mint",
            "--formats",
            formats,
            "--file",
        ];
        let mut command = idmint(&arguments);
        command.arg(&file);
        command
    };
    run(new("payment,nosuch")).assert(64, &["nosuch", "choose from", "snowflake", "--config"]);
    assert!(!file.exists(), "nothing is written");
    let mine = home.path("mine.toml");
    fs::write(&mine, "[formats.nosuch]\nlike = 'payment'").unwrap();
    let mut command = new("payment,nosuch");
    command.arg("--config").arg(mine);
    run(command).assert(0, &[]);
}

#[test]
fn a_token_that_a_service_would_refuse_is_not_made() {
    let home = Home::new();
    let file = home.path("tokens.toml");
    let new = |arguments: &[&str]| {
        let mut command = idmint(&["token", "new", "--scopes", "ledger,number", "--file"]);
        command.arg(&file).args(arguments);
        run(command)
    };
    let pasted = format!("idmint_{}", "a".repeat(52));
    for (arguments, word) in [
        (
            ["--name", "one", "--ledgers", "AA77F99C"],
            "\"AA77F99C\" must be 8 lower-case",
        ),
        (
            ["--name", "one", "--ledgers", "aa77f99d"],
            "the last one 0, 4, 8 or c",
        ),
        (
            ["--name", "one", "--ledgers", &pasted],
            "must be 8 lower-case",
        ),
        (
            ["--name", "one", "--series", "*-2026"],
            "series \"*-2026\" must be",
        ),
        (
            ["--name", &pasted, "--series", "acme-*"],
            "name contains a token",
        ),
    ] {
        let refused = new(&arguments);
        refused.assert(64, &[word]);
        assert!(!refused.err.contains(&pasted), "{}", refused.err);
        assert!(refused.out.is_empty() && !file.exists(), "{arguments:?}");
    }
    let right = [
        "--name",
        "one",
        "--ledgers",
        "aa77f99c",
        "--series",
        "acme-*",
    ];
    new(&right).assert(0, &[]);
    check(&home, &format!("http.tokens = {file:?}")).assert(0, &[]);
}

#[test]
fn a_format_that_is_off_is_said_to_be_off_and_how_to_turn_it_on() {
    let home = Home::new();
    let service = home.start();
    let answer = service.post("/ids/payment-wide");
    assert_eq!(answer.status, 404);
    let body = String::from_utf8(answer.body).unwrap();
    assert!(
        body.contains(r#"is disabled: set formats.payment-wide.enabled = true"#),
        "{body}"
    );
}

#[test]
fn check_finds_what_would_end_the_next_start_and_leaves_the_running_node_alone() {
    let home = Home::new();
    let data_dir = format!("storage.data_dir = {:?}\n", home.data_dir());
    let format = "[formats.mine]\nlike = 'payment'\n";
    let numbers = "[numbers.inv]\npattern = 'inv-*'\n";
    let right = format!("{data_dir}{format}{numbers}");
    let first = check(&home, &right);
    first.assert(0, &[]);
    assert!(
        first.out.contains("no ids were minted yet"),
        "{}",
        first.out
    );
    assert!(!home.data_dir().exists());

    let service = Service::start(home.serve_with(&right));
    service.wait_until_ready();
    let series = [
        "numbers",
        "next",
        "inv-1",
        "--key",
        "one",
        "--server",
        &service.url(),
    ];
    run(idmint(&series)).assert(0, &[]);
    let mut ids = service.mint("mine?count=3");
    let compare = || {
        let agrees = check(&home, &right);
        agrees.assert(0, &[]);
        assert!(
            agrees
                .out
                .contains("matches the configuration, reserved until"),
            "{}",
            agrees.out
        );
        for (wrong, words) in [
            (
                format!("{data_dir}{format}tick = '2s'\n{numbers}"),
                ["\"mine\" has changed", "tick: stored 1s, configured 2s"],
            ),
            (format!("{right}kind = 'blocks'\n"), ["inv-1", "blocks"]),
            (
                format!("{right}[worker]\nslots = 2\nslot = 0\nexclusive = true\n"),
                ["worker.slots is 2", "minted with 1"],
            ),
        ] {
            check(&home, &wrong).assert(78, &words);
        }
        let other_slot = format!("{right}[worker]\nslots = 2\nslot = 1\nexclusive = true\n");
        check(&home, &other_slot).assert(65, &["slot 0", "slot 1 is configured"]);
    };
    compare();
    ids.extend(service.mint("mine?count=3"));
    let distinct: HashSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), 6, "{ids:?}");
    service.kill();
    compare();
    let service = Service::start(home.serve_with(&right));
    service.wait_until_ready();
    assert_eq!(service.mint("mine").len(), 1);
}

#[test]
fn check_refuses_a_public_address_without_credentials_as_serve_does() {
    let home = Home::new();
    let public = "http.listen = '0.0.0.0:0'\nworker.exclusive = true\n";
    check(&home, public).assert(78, &["http.listen = 0.0.0.0:0", "--insecure-public"]);
    let file = home.path("checked.toml");
    let file = file.to_str().unwrap();
    run(idmint(&["check", "--config", file, "--insecure-public"])).assert(0, &[]);
}

#[test]
fn notes_about_formats_that_the_file_does_not_name_are_one_line() {
    let home = Home::new();
    let checked = check(&home, "[formats.mine]\nlike = 'snowflake'");
    let notes = checked
        .out
        .lines()
        .filter(|line| line.contains(" may look like "));
    let notes: Vec<&str> = notes.collect();
    assert!(
        notes[0].starts_with("an id of mine may look like one of "),
        "{notes:?}"
    );
    assert!(
        notes[1].starts_with("ids of these formats may look like ids of others: "),
        "{notes:?}"
    );
    assert!(
        notes[1].contains("twitter") && notes.len() == 2,
        "{notes:?}"
    );
}

#[test]
fn serve_logs_which_file_it_has_read_or_that_it_has_read_none() {
    let home = Home::new();
    let service = Service::start(home.serve_with(""));
    let file = home.path("idmint.toml");
    service.log_once_it_says(&format!("the configuration file is {}", file.display()));
    service.kill();
    let mut command = home.serve();
    command.current_dir(file.parent().unwrap());
    let service = Service::start(command);
    service.log_once_it_says("no configuration file was read: ./idmint.toml exists");
    service.kill();
    let service = home.start();
    service.log_once_it_says("no configuration file was read: --config was not given");
}
