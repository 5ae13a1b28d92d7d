//! Checks the output and the exit codes of all commands except `serve`.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use crate::memory::peak_kib;
use idmint_testing::ids::{SEQUENCED, SNOWFLAKE};
use idmint_testing::service::{Ended, Home, Service, idmint, run};

fn ready() -> (Home, Service) {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    (home, service)
}

fn run_idmint(args: &[&str]) -> Ended {
    run(idmint(args))
}

#[test]
fn mint_prints_one_id_a_line() {
    let (_home, service) = ready();
    let url = service.url();
    let ended = run_idmint(&["mint", "snowflake", "-n", "5", "--server", &url]);
    ended.assert(0, &[]);
    let ids: Vec<u128> = ended
        .out
        .lines()
        .map(|id| SEQUENCED[SNOWFLAKE].value(id))
        .collect();
    assert!(
        ids.len() == 5 && ids.is_sorted_by(|one, next| one < next),
        "{}",
        ended.out
    );

    let ended = run_idmint(&[
        "mint",
        "siq",
        "--type",
        "message",
        "--encoding",
        "uuid8",
        "--server",
        &url,
    ]);
    ended.assert(0, &[]);
    assert_eq!(ended.out.trim_end().len(), 36, "{}", ended.out);

    let report = [
        "--tca",
        "2024-032T00:00:00",
        "--primary",
        "25544",
        "--secondary",
        "48274",
    ];
    let ended = run_idmint(&[&["mint", "conjunction", "--server", &url], &report[..]].concat());
    ended.assert(0, &[]);
    assert_eq!(ended.out, "zwwqlzz-pjjmxmd-lkpvwq\n");
}

#[test]
fn random_ids_are_minted_offline() {
    let home = Home::new();
    for (args, len, count) in [
        (&["flax"] as &[_], 16, 1),
        (&["flax", "-n", "5000"], 16, 5_000),
        (&["ulid", "-n", "3", "--encoding", "uuid"], 36, 3),
        (&["typeid", "--type", "user", "-n", "2"], 31, 2),
    ] {
        let ended = run_idmint(&[&["mint", "--offline"], args].concat());
        ended.assert(0, &[]);
        let ids: HashSet<&str> = ended.out.lines().collect();
        assert_eq!(ids.len(), count, "{args:?}");
        assert!(
            ids.iter().all(|id| id.len() == len),
            "{args:?}: {}",
            ended.out
        );
        let decoded = run_idmint(&["decode", ids.iter().next().unwrap()]);
        decoded.assert(0, &[]);
    }
    // `mint --offline` accepts only random formats, because only these need neither a worker number
    // nor stored state.
    for (args, named) in [
        (&["snowflake"] as &[_], "snowflake is not one; choose from"),
        (&["nothing"], "nothing is not one; choose from"),
        (&["flax", "-n", "0"], "--count is 0"),
        (
            &["flax", "--encoding", "roman"],
            "--encoding roman is unknown",
        ),
        (&["flax", "--prefix", "a_"], "prefix"),
        (&["flax", "--type", "user"], "has no types"),
        (&["flax", "--server", "http://127.0.0.1:1"], "--server"),
    ] {
        run_idmint(&[&["mint", "--offline"], args].concat()).assert(64, &[named]);
    }
    let config = home.path("own.toml");
    let own = "[formats.own]\nsummary = 'Random'\nrule = 'random'\n\
        fields = [{ name = 'random', kind = 'random', bits = 60 }]\nencodings = ['hex_padded']\n";
    fs::write(&config, own).unwrap();
    let config = config.to_str().unwrap();
    let ended = run_idmint(&["mint", "own", "--offline", "--config", config]);
    ended.assert(0, &[]);
    assert_eq!(ended.out.len(), 16, "{}", ended.out);
}

#[test]
fn output_that_cannot_be_written_is_74_and_a_closed_pipe_is_0() {
    let (home, service) = ready();
    let url = service.url();
    let pure = home.path("pure.toml");
    fs::write(&pure, "conjunction.mode = 'pure'").unwrap();
    let report = "mint conjunction --tca 2024-032T00:00:00 --primary 25544 --secondary 48274";
    let document = home.path("one.json");
    // The document has no newline, which would flush standard output.
    let message = r#"[{"TCA":"2024-02-01T00:00:00","SAT_1_ID":"25544","SAT_2_ID":"48274"}]"#;
    fs::write(&document, message).unwrap();
    for line in [
        "mint flax --offline",
        "mint flax --offline -n 100000",
        &format!("mint snowflake --server {url}"),
        &format!("{report} --config {}", pure.display()),
        &format!("cdm {}", document.display()),
        "formats",
        "--help",
        "--version",
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let exit_with = |output: Stdio| {
            let ended = idmint(&args).stdout(output).output().unwrap();
            (
                ended.status.code(),
                String::from_utf8(ended.stderr).unwrap(),
            )
        };
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (code, said) = exit_with(full.into());
        assert_eq!(code, Some(74), "{line}: {said}");
        assert!(said.starts_with("idmint: standard output: "), "{said}");
        let (reader, closed) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(exit_with(closed.into()), (Some(0), String::new()), "{line}");
    }
}

#[test]
fn encode_siq_takes_the_name_of_a_domain() {
    let home = Home::new();
    let local = home.path("local.toml");
    fs::write(&local, "siq.local_id = 1\n").unwrap();
    for (args, hash) in [
        (&["domain=example.com"] as &[_], "2261653831"),
        (&["domain=2261653831"], "2261653831"),
        (
            &["domain=example.com", "--config", local.to_str().unwrap()],
            "30284103",
        ),
        (&["domain=0"], "0"),
    ] {
        let ended = run_idmint(&[&["encode", "siq", "type=message"], args].concat());
        ended.assert(0, &[]);
        let field = format!(r#""name":"domain","kind":"object","value":"{hash}""#);
        assert!(ended.out.contains(&field), "{}", ended.out);
    }
    for domain in ["Example.com", "größe.de", "two words"] {
        run_idmint(&["encode", "siq", &format!("domain={domain}")])
            .assert(64, &["`domain` is", "lower-case ASCII"]);
    }
    run_idmint(&["encode", "siq", "domain="]).assert(64, &["`domain`"]);
}

#[test]
fn mint_exits_1_when_refused_and_69_when_nobody_answers() {
    let (_home, service) = ready();
    let url = service.url();
    run_idmint(&["mint", "nonesuch", "--server", &url]).assert(1, &["404", "nonesuch"]);
    run_idmint(&["mint", "snowflake", "-n", "0", "--server", &url])
        .assert(1, &["422", "count is 0"]);
    run_idmint(&["mint", "siq", "--server", &url]).assert(1, &["422", "type"]);
    run_idmint(&["mint", "conjunction", "--server", &url]).assert(1, &["422", "report"]);
    run_idmint(&["mint", "conjunction", "-n", "2", "--server", &url])
        .assert(1, &["422", "one id for each report"]);
    run_idmint(&[
        "mint",
        "conjunction",
        "--tca",
        "2024-032T00:00:00",
        "--server",
        &url,
    ])
    .assert(64, &["--primary"]);
    run_idmint(&["mint", "snowflake", "-n", "many", "--server", &url]).assert(64, &["many"]);
    service.kill();
    run_idmint(&["mint", "snowflake", "--server", &url]).assert(69, &["Connection refused"]);
}

#[test]
fn decode_says_what_an_id_can_be() {
    let ended = run_idmint(&[
        "decode",
        "--text",
        "--format",
        "snowflake",
        "175928847299117063",
        "0",
    ]);
    ended.assert(0, &[]);
    for words in [
        "snowflake (decimal)",
        "= 2015-01-01T00:00:00Z + 41944705796 × 1ms",
        "└─ worker",
        "\n\n0\n",
    ] {
        assert!(
            ended.out.contains(words),
            "{words:?} is not in {}",
            ended.out
        );
    }
    assert!(
        !ended.out.contains('\x1b'),
        "colours are for terminals: {}",
        ended.out
    );
    for args in [&["decode"][..], &["decode", "--json"]] {
        let ended = run_idmint(&[args, &["--format", "snowflake", "175928847299117063"]].concat());
        ended.assert(0, &[]);
        let answer: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(answer["matches"][0]["fields"][0]["value"], "41944705796");
    }
}

#[test]
fn decode_exits_1_for_what_is_no_id_and_64_for_an_unknown_format_or_encoding() {
    let ended = run_idmint(&["decode", "--text", "not-an-id", "1I9ZC1002"]);
    ended.assert(1, &["1 of 2"]);
    let brief = run_idmint(&[
        "decode",
        "--brief",
        "hello",
        "1I9ZC1002",
        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    ]);
    brief.assert(1, &["1 of 3"]);
    let fields = "payment\tbase36\t2026-11-21T03:36:01Z\ttime=91164961\tworker=0\tsequence=2";
    assert!(
        brief
            .out
            .starts_with(&format!("hello\t-\t-\t-\n1I9ZC1002\t{fields}\n01ARZ")),
        "{}",
        brief.out
    );
    assert_eq!(brief.out.lines().count(), 3);
    run_idmint(&["decode", "--brief", "--json", "1I9ZC1002"]).assert(64, &["--brief", "--json"]);
    run_idmint(&["decode", "hello"]).assert(1, &["1 of 1"]);
    run_idmint(&["decode", "--format", "snowflake", "hello"]).assert(0, &[]);
    assert!(
        ended
            .out
            .starts_with("not-an-id\nno format reads this text\n\n  conjunction "),
        "{}",
        ended.out
    );
    let near = run_idmint(&["decode", "--strict", "--text", "1i9zc1002"]);
    near.assert(1, &["1 of 1"]);
    assert!(
        near.out
            .starts_with("1i9zc1002\nno format reads this text\n"),
        "{}",
        near.out
    );
    let drawing =
        "\na similar text that is an id\n1I9ZC1002\npayment (base36)  2026-11-21T03:36:01Z";
    assert!(
        near.out.contains(drawing) && near.out.contains("└─ sequence"),
        "{}",
        near.out
    );
    let piped = run_idmint(&["decode", "--strict", "1i9zc1002"]);
    piped.assert(1, &["1 of 1"]);
    assert!(
        piped.out.contains(r#""did_you_mean":["1I9ZC1002"]"#),
        "{}",
        piped.out
    );
    let lenient = run_idmint(&["decode", "--lenient", "--brief", "1i9zc1002"]);
    lenient.assert(0, &[]);
    assert_eq!(
        lenient.out,
        format!("1i9zc1002\t{fields}\tas_given=false\tcanonical=1I9ZC1002\n")
    );
    let drawn = run_idmint(&["decode", "--lenient", "--text", "1i9zc1002"]);
    drawn.assert(0, &[]);
    assert!(
        drawn.out.starts_with(
            "1i9zc1002\nno format reads the text as given; this is a reading of 1I9ZC1002\npayment"
        ),
        "{}",
        drawn.out
    );
    run_idmint(&["decode", "--format", "nonesuch", "175928847299117063"]).assert(64, &["nonesuch"]);
    for args in [
        &["--encoding", "bse36"][..],
        &["--encoding", "base36", "--format", "snowflake"],
        &["--encoding", "bse36", "--csv", "--column", "id"],
    ] {
        let ended = run_idmint(&[&["decode", "1I9ZC1002"], args].concat());
        ended.assert(64, &["none of the tried formats has an encoding", args[1]]);
    }
    run_idmint(&[
        "decode",
        "1I9ZC1002",
        "--format",
        "twitter",
        "--encoding",
        "hex",
    ])
    .assert(
        64,
        &["; their encodings are decimal, hashids, hex_padded, sqids\n"],
    );
    run_idmint(&["decode", "--json", "--text", "1I9ZC1002"]).assert(64, &["--json", "--text"]);
}

#[test]
fn decode_without_ids_reads_lines_and_answers_each_before_it_waits_for_more() {
    let mut command = idmint(&["decode", "--format", "payment"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut lines, mut told) = (
        child.stdin.take().unwrap(),
        BufReader::new(child.stdout.take().unwrap()).lines(),
    );
    for (line, id, matches) in [
        ("1I9ZC1002\n", "1I9ZC1002", 1),
        ("\n", "", 0),
        ("1I9ZC1003\r\n", "1I9ZC1003", 1),
        ("\u{e9} \n", "\u{e9} ", 0),
    ] {
        lines.write_all(line.as_bytes()).unwrap();
        let answer: serde_json::Value =
            serde_json::from_str(&told.next().unwrap().unwrap()).unwrap();
        assert_eq!(
            (&answer["id"], answer["matches"].as_array().unwrap().len()),
            (&id.into(), matches),
            "{answer}"
        );
    }
    drop(lines);
    assert!(told.next().is_none());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn decode_reads_a_long_file_in_little_memory() {
    const LINES: usize = 600_000;
    let home = Home::new();
    let file = home.path("ids");
    let ids: String = (0..LINES)
        .map(|at| format!("zz175928847299{at:06}\n"))
        .collect();
    assert!(ids.len() > 10 << 20);
    std::fs::write(&file, ids).unwrap();

    let mut command = idmint(&["decode", "--format", "payment", "--encoding", "base36"]);
    command
        .stdin(File::open(&file).unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap()).lines();
    for at in 0..LINES {
        let line = told.next().expect("an answer for each line").unwrap();
        assert!(
            line.starts_with(&format!("{{\"id\":\"zz175928847299{at:06}\"")),
            "{line}"
        );
        // The command is still running, because nobody has read the rest of its output. Check its
        // peak memory now.
        if at == LINES / 10 * 9 {
            let peak_kib = peak_kib(child.id());
            assert!(peak_kib < 16 * 1024, "{peak_kib} KiB");
        }
    }
    assert!(told.next().is_none());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn decode_stops_at_a_line_that_is_no_line() {
    let home = Home::new();
    let file = home.path("ids");
    for (len, code) in [(8_192, 1), (8_193, 1), (1 << 20, 1)] {
        std::fs::write(&file, format!("1I9ZC1002\n{}\n", "1".repeat(len))).unwrap();
        let mut command = idmint(&["decode", "--format", "payment"]);
        command.stdin(File::open(&file).unwrap());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        let words = if len == 8_192 {
            "1 of 2 texts are not ids of any format"
        } else {
            "line 2 is longer than 8192 bytes"
        };
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn range_prints_the_ids_of_a_time_span_as_the_service_answers_them() {
    let (_home, service) = ready();
    let span = ["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"];
    let mut answered = 0;
    for format in ["payment", "snowflake", "siq", "ulid", "evently", "flax"] {
        let ended = run_idmint(&["range", format, span[0], span[1], "--json"]);
        ended.assert(0, &[]);
        let answer = service.get(&format!(
            "/formats/{format}/range?from={}&to={}",
            span[0], span[1]
        ));
        assert_eq!((answer.status, ended.out), (200, answer.text()));
        answered += 1;
    }
    assert_eq!(answered, 6);
    let ended = run_idmint(&["range", "payment", span[0], span[1]]);
    ended.assert(0, &[]);
    assert!(
        ended.out.contains("base36       11LPC0000  1373ZZZZZ"),
        "{}",
        ended.out
    );
    run_idmint(&["range", "uuid4", span[0], span[1]]).assert(64, &["uuid4"]);
    run_idmint(&["range", "payment", span[1], span[0]]).assert(64, &["payment"]);
    run_idmint(&["range", "nonesuch", span[0], span[1]]).assert(64, &["nonesuch"]);
}

#[test]
fn formats_prints_a_line_for_each_format_or_all_about_one() {
    let ended = run_idmint(&["formats"]);
    ended.assert(0, &[]);
    let line = ended
        .out
        .lines()
        .find(|line| line.starts_with("payment "))
        .unwrap();
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!(
        words[..6],
        ["payment", "sequenced", "47", "9", "1296", "2092-12-23"],
        "{}",
        ended.out
    );

    let ended = run_idmint(&["formats", "payment"]);
    ended.assert(0, &[]);
    for word in [
        "| 6 digits of base 36 | 1 digits of base 36 | 2 digits of base 36 |",
        "each worker number has 1296 ids per tick, which is 1296 per second",
        "2092-12-23T05:45:36Z",
        "Strictly increasing",
        "11LPC0007",
        "^[0-9A-Z]{9}$",
        r#"postgresql  char(9) COLLATE "C""#,
        "SELECT id FROM example WHERE id BETWEEN",
        "how many were minted before it",
    ] {
        assert!(ended.out.contains(word), "{word:?} is not in {}", ended.out);
    }
    let ended = run_idmint(&["formats", "flax"]);
    assert!(
        ended.out.contains("even odds with 316000000"),
        "{}",
        ended.out
    );
}

#[test]
fn formats_reads_the_configuration_and_exits_64_for_a_format_there_is_not() {
    let home = Home::new();
    let file = home.path("mine.toml");
    std::fs::write(&file, "[formats.mine]\nlike = 'flax'\nsummary = 'all mine'").unwrap();
    let file = file.to_str().unwrap();
    let ended = run_idmint(&["formats", "--config", file]);
    ended.assert(0, &[]);
    assert!(ended.out.contains("all mine"), "{}", ended.out);
    run_idmint(&["formats", "mine", "--config", file]).assert(0, &[]);
    run_idmint(&["formats", "mine"]).assert(64, &["mine", "snowflake"]);
}

/// Returns the formats that the line names as similar to others, or `None` if it names none.
fn rivals_of(line: &str) -> Option<Vec<&str>> {
    let (_, names) = line.split_once(" may look like ids of others: ")?;
    Some(names.split_once("; ")?.0.split(", ").collect())
}

#[test]
fn check_prints_what_a_configuration_means_or_exits_78() {
    let home = Home::new();
    let ended = run_idmint(&["check"]);
    ended.assert(0, &[]);
    for word in [
        "127.0.0.1:8080",
        "snowflake",
        "ids/s",
        "the configuration is valid",
    ] {
        assert!(ended.out.contains(word), "{word:?} is not in {}", ended.out);
    }
    let rivals: Vec<Vec<&str>> = ended.out.lines().filter_map(rivals_of).collect();
    let is_told_once = |names: &Vec<&str>| {
        names
            .iter()
            .enumerate()
            .all(|(at, name)| !names[..at].contains(name))
    };
    assert!(
        rivals.len() == 1 && rivals[0].len() > 3 && rivals.iter().all(is_told_once),
        "{rivals:?}"
    );
    for (toml, word) in [
        ("worker.lanes = 99", "lane"),
        ("http.listen = 8080", "http.listen"),
        (
            "http.admin_listen = '127.0.0.1:8080'",
            "http.admin_listen: 127.0.0.1:8080 is also http.listen",
        ),
        ("log.audit = ''", "log.audit: must be a path"),
        (
            "http.admin_listen = '0.0.0.0:9090'",
            "http.admin_listen = 0.0.0.0:9090 is reachable",
        ),
        ("formats.x.like = \"y\"", "y"),
    ] {
        let file = home.path("wrong.toml");
        std::fs::write(&file, toml).unwrap();
        run_idmint(&["check", "--config", file.to_str().unwrap()]).assert(78, &[word]);
    }
}

#[test]
fn an_adoption_needs_the_configuration_of_a_fleet_and_changes_nothing_without() {
    let (home, service) = ready();
    service.kill();
    let folder = home.data_dir().display().to_string();
    run_idmint(&["fleet", "adopt", &folder])
        .assert(78, &["storage.engine is not \"etcd\"", "--config"]);
    home.start().wait_until_ready();
}

#[test]
fn commands_on_a_fleet_exit_78_without_the_configuration_of_one() {
    for command in ["status", "fence-restore"] {
        run_idmint(&["fleet", command]).assert(78, &["storage.engine is not \"etcd\""]);
    }
}

#[test]
fn what_cargo_sets_for_a_program_it_runs_is_no_setting() {
    // Cargo runs this test, so the environment contains all variables that `cargo run` sets. The
    // command inherits these variables, and must not interpret them as settings.
    let mut command = Command::new(env!("CARGO_BIN_EXE_idmint"));
    command.arg("check");
    run(command).assert(0, &[]);
}

#[test]
fn health_exits_0_when_ready_and_1_when_not_or_when_nobody_answers() {
    let (_home, service) = ready();
    let url = service.url();
    let ended = run_idmint(&["health", "--server", &url]);
    ended.assert(0, &[]);
    assert_eq!(ended.out, "ready, slot 0\n");
    service.kill();
    run_idmint(&["health", "--server", &url]).assert(1, &["Connection refused"]);
}

#[test]
fn the_address_of_the_environment_is_used_and_a_wrong_one_is_reported() {
    let (_home, service) = ready();
    let run_with = |command: &str, listen: &str| {
        let mut command = idmint(&[command]);
        command
            .env("IDMINT_HTTP__LISTEN", listen)
            .env("KUBERNETES_SERVICE_HOST", "10.0.0.1");
        run(command)
    };
    let address = service.address().to_string();
    run_with("health", &address).assert(0, &[]);
    run_with("status", &address).assert(0, &[]);
    run_with("health", "8080").assert(1, &["IDMINT_HTTP__LISTEN"]);
    run_with("status", "8080").assert(78, &["IDMINT_HTTP__LISTEN"]);
}

#[test]
fn a_variable_that_is_not_utf8_is_refused_and_not_ignored() {
    let value = OsStr::from_bytes(b"/etc/\xff.toml");
    let check_with = |name: &[u8]| {
        let mut command = idmint(&["check"]);
        command.env(OsStr::from_bytes(name), value);
        run(command)
    };
    check_with(b"IDMINT_HTTP__TOKENS").assert(78, &["IDMINT_HTTP__TOKENS", "UTF-8"]);
    check_with(b"IDMINT_HTTP__\xff").assert(78, &["IDMINT_HTTP__", "UTF-8"]);
    check_with(b"KUBERNETES_SERVICE_HOST").assert(78, &["worker.exclusive"]);
    check_with(b"OF_ANOTHER_PROGRAM").assert(0, &[]);
}

#[test]
fn the_banner_names_address_slot_folder_and_a_request_to_paste() {
    let home = Home::new();
    let mut command = home.serve();
    command.args(["--floor", "2200-01-01T00:00:00Z"]);
    let service = Service::start(command);
    for word in [
        format!("listens on {}", service.url()),
        "slot 0 of 1".to_owned(),
        home.data_dir().display().to_string(),
        format!("curl -X POST {}/ids/snowflake", service.url()),
    ] {
        assert!(
            service.banner().contains(&word),
            "{word:?} is not in {}",
            service.banner()
        );
    }
}

#[test]
fn a_start_warns_of_a_missing_domain_only_where_ids_have_one() {
    let (_home, service) = ready();
    let log = service.log_once_it_says("ids of siq are for development");
    assert!(!log.contains("ids of conjunction"), "{log}");
}

#[test]
fn encode_prints_the_id_of_given_fields_and_counts_its_sequence() {
    let time = "time=2024-02-20T00:00:00Z";
    let ended = run_idmint(&["encode", "payment", time, "worker=3", "--count", "3"]);
    ended.assert(0, &[]);
    let lines: Vec<serde_json::Value> = ended
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ids: Vec<_> = lines
        .iter()
        .map(|line| line["canonical"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["02KLC0300", "02KLC0301", "02KLC0302"]);
    assert!(
        lines
            .iter()
            .all(|line| line["minted"] == false && line["time"] == "2024-02-20T00:00:00Z")
    );
    let drawn = run_idmint(&["encode", "payment", time, "worker=3", "--text"]);
    drawn.assert(0, &[]);
    assert!(
        drawn.out.contains("payment (base36)") && drawn.out.contains("02KLC0300"),
        "{}",
        drawn.out
    );
    let last = run_idmint(&[
        "encode",
        "payment",
        "sequence=1295",
        "worker=35",
        "time_ticks=2176782335",
    ]);
    last.assert(0, &[]);
    assert!(
        last.out.contains("\"canonical\":\"ZZZZZZZZZ\""),
        "{}",
        last.out
    );

    run_idmint(&["encode", "payment", "worker=36"]).assert(64, &["worker", "36", "0 to 35"]);
    run_idmint(&["encode", "payment", "shard=1"])
        .assert(64, &["shard", "time, time_ticks, worker, sequence"]);
    run_idmint(&["encode", "payment", "worker"]).assert(64, &["NAME=VALUE"]);
    run_idmint(&["encode", "invoice"]).assert(64, &["invoice"]);
    run_idmint(&["encode", "flax", "--count", "2"]).assert(64, &["flax has no sequence"]);
    run_idmint(&["encode", "payment", "sequence=1290", "--count", "7"])
        .assert(64, &["sequence=1290", "1295", "only 6 ids exist"]);
    run_idmint(&["encode", "payment", "--count", "0"]).assert(64, &["0"]);
    run_idmint(&["encode", "payment", "--vectors", "--count", "100001"])
        .assert(64, &["--count is 100001", "at most 100000 with --vectors"]);
}

#[test]
fn decode_of_a_number_of_a_series_ends_with_0_in_every_form() {
    let home = Home::new();
    let [config, csv] = ["numbers.toml", "numbers.csv"].map(|name| home.path(name));
    let rule = "[numbers.inv]\npattern = 'inv-*'\ntext = 'INV-{series}-{n:05}'";
    fs::write(&config, rule).unwrap();
    fs::write(&csv, "id\nINV-inv-1-00042\n").unwrap();
    let [config, csv] = [&config, &csv].map(|path| path.to_str().unwrap());
    for form in ["--json", "--text", "--brief"] {
        let args = ["decode", form, "INV-inv-1-00042", "--config", config];
        run_idmint(&args).assert(0, &[]);
        let args = ["decode", form, "INV-inv-1-42", "--config", config];
        run_idmint(&args).assert(1, &["1 of 1"]);
    }
    let args = ["decode", "--csv", csv, "--column", "id", "--config", config];
    run_idmint(&args).assert(0, &[]);
}

#[test]
fn encode_counts_a_sequence_that_has_two_fields() {
    let home = Home::new();
    let config = home.path("split.toml");
    let split = r#"
        [formats.split]
        summary = "a sequence in two fields"
        rule = "decode-only"
        tick = "1s"
        epoch = "2020-01-01T00:00:00Z"
        fields = [{ name = "time", kind = "time", bits = 32 },
                  { name = "sequence", kind = "sequence", bits = 4, scale = 16 },
                  { name = "sequence", kind = "sequence", bits = 4 }]
        encodings = ["decimal"]"#;
    fs::write(&config, split).unwrap();
    let config = config.to_str().unwrap();
    for (first, count) in [(18, 2), (14, 20), (250, 6)] {
        let [sequence, count_text] = [format!("sequence={first}"), count.to_string()];
        let args = [
            "encode",
            "split",
            &sequence,
            "--count",
            &count_text,
            "--config",
            config,
        ];
        let ended = run_idmint(&args);
        ended.assert(0, &[]);
        let ids = ended.out.lines().map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line["canonical"].as_str().unwrap().parse().unwrap()
        });
        assert_eq!(
            ids.collect::<Vec<u32>>(),
            (first..first + count).collect::<Vec<_>>()
        );
    }
    let args = [
        "encode",
        "split",
        "sequence=250",
        "--count",
        "7",
        "--config",
        config,
    ];
    run_idmint(&args).assert(64, &["only 6 ids exist"]);
}

#[test]
fn check_refuses_slots_of_which_the_last_has_no_worker_number() {
    let home = Home::new();
    let config = home.path("slots.toml");
    let settings = "worker = { slot = 5, slots = 36, exclusive = true }\n";
    std::fs::write(&config, settings).unwrap();
    let args = ["check", "--config", config.to_str().unwrap()];
    run_idmint(&args).assert(
        78,
        &[
            "worker.slots = 36",
            "snowflake (room for 32)",
            "formats.enabled",
        ],
    );
    std::fs::write(
        &config,
        format!("{settings}formats.enabled = ['payment', 'twitter']\n"),
    )
    .unwrap();
    run_idmint(&args).assert(0, &[]);
}

#[test]
fn a_disabled_format_is_named_as_such() {
    for args in [
        &["formats", "payment-wide"][..],
        &["encode", "payment-wide"],
        &[
            "range",
            "payment-wide",
            "2026-01-01T00:00:00Z",
            "2026-02-01T00:00:00Z",
        ],
        &["decode", "--format", "payment-wide", "1I9ZC1002"],
    ] {
        run_idmint(args).assert(64, &["formats.payment-wide.enabled = true"]);
    }
}

#[test]
fn a_wrong_ledger_id_is_explained() {
    let rule = "8 lower-case hexadecimal digits, the last one 0, 4, 8 or c";
    run_idmint(&["ledger", "append", "zz"]).assert(64, &["'zz'", rule]);
    run_idmint(&["ledger", "verify", "--ledger", "aa77f99d"]).assert(64, &["'aa77f99d'", rule]);
}
