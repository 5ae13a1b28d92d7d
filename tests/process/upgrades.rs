//! Opens the data folders of earlier builds. All of their contents must still be there. A folder
//! with an unknown layout must be refused.
//!
//! `tests/folders/` has one folder for each layout that a build has ever written. Each folder is
//! named after the build that wrote it, and is in the state in which `kill -9` left it. Each file
//! is a dump by `xxd -a -c 64 -g 0 FILE | cut -d' ' -f1,2`, and `kept.json` has the responses that
//! callers of that build received. Every change of a layout adds a folder, and no folder is ever
//! removed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use idmint_testing::http1::{Client, request};
use idmint_testing::service::{Ended, Home, Service, idmint, run};

const FOLDERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/folders");
const NEVER_DELETE: &str = "never delete this folder";

/// Converts an `xxd` dump back to the bytes of the file. The dump leaves out lines of zeros, except
/// for the last line.
fn file_of(shown: &str) -> Vec<u8> {
    let mut file = Vec::new();
    for (at, hex) in shown.lines().filter_map(|line| line.split_once(": ")) {
        file.resize(usize::from_str_radix(at, 16).unwrap(), 0);
        file.extend(
            (0..hex.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()),
        );
    }
    file
}

/// Unpacks a folder of an earlier build. Returns the unpacked folder, and the contents that it must
/// have.
fn unpack(folder: &Path) -> (Home, Value) {
    let home = Home::new();
    fs::create_dir(home.data_dir()).unwrap();
    for name in ["horizon", "idmint.redb"] {
        let shown = fs::read_to_string(folder.join(format!("{name}.xxd"))).unwrap();
        fs::write(home.data_dir().join(name), file_of(&shown)).unwrap();
    }
    let kept = fs::read_to_string(folder.join("kept.json")).unwrap();
    (home, serde_json::from_str(&kept).unwrap())
}

fn post(service: &Service, target: &str, key: &str, body: &Value) -> (u16, Value) {
    let headers = format!("content-type: application/json\r\nidempotency-key: {key}\r\n");
    let asked = request(&format!("POST {target}"), &headers, &body.to_string());
    let answer = Client::connect(service.address()).exchange(asked);
    assert!(
        [200, 201].contains(&answer.status),
        "{target}: {}",
        answer.text()
    );
    (answer.status, answer.json())
}

/// Requests numbers of a series.
fn take(service: &Service, series: &str, count: u64, key: &str) -> (u16, Value) {
    let asked = request(
        &format!("POST /numbers/{series}?count={count}"),
        &format!("idempotency-key: {key}\r\n"),
        "",
    );
    let answer = Client::connect(service.address()).exchange(asked);
    (answer.status, answer.json())
}

/// Returns the events that were appended with one idempotency key.
fn events(count: &Value) -> Value {
    (0..count.as_u64().unwrap())
        .map(|number| json!({ "event": format!("E{number}"), "entities": {} }))
        .collect()
}

fn chain(service: &Service, ledger: &str) -> Vec<Value> {
    let (mut ids, mut after) = (Vec::new(), String::new());
    loop {
        let page = service.get(&format!("/ledgers/{ledger}/ids{after}")).json();
        let links = page["ids"].as_array().unwrap();
        let Some(last) = links.last() else { return ids };
        after = format!("?after={}", last["id"].as_str().unwrap());
        ids.extend(links.iter().map(|link| link["id"].clone()));
    }
}

/// Asserts that the service still has everything that it returned earlier, and that new requests
/// get new results.
fn assert_kept(service: &Service, kept: &Value, round: usize) {
    for ledger in kept["ledgers"].as_array().unwrap() {
        let name = ledger["ledger"].as_str().unwrap();
        let mut told = vec![ledger["genesis"].clone()];
        for append in ledger["appends"].as_array().unwrap() {
            told.extend(append["ids"].as_array().unwrap().iter().cloned());
        }
        let there = chain(service, name);
        assert!(
            there.starts_with(&told),
            "{name} has {} events, and {} were told",
            there.len(),
            told.len()
        );
        assert!(
            there.len() <= told.len() + round,
            "{name} has {} events in round {round}",
            there.len()
        );
        for append in ledger["appends"].as_array().unwrap() {
            let body = json!({ "ledger": name, "events": events(&append["events"]) });
            let (status, answer) = post(
                service,
                "/ids/evently",
                append["key"].as_str().unwrap(),
                &body,
            );
            assert_eq!(
                (status, &answer["ids"]),
                (200, &append["ids"]),
                "a key that was answered is answered alike"
            );
        }
        let (status, _) = post(
            service,
            "/ids/evently",
            &format!("new-{name}-{round}"),
            &json!({ "ledger": name, "events": events(&json!(1)) }),
        );
        assert_eq!((status, chain(service, name).len()), (201, there.len() + 1));
    }
    assert_numbers_kept(service, kept);
    // A series that is in no folder must begin at 1.
    let (status, given) = take(service, "after", 1, &format!("round-{round}"));
    assert_eq!(
        (status, &given["number"]),
        (201, &json!((round + 1).to_string()))
    );
    for report in kept["reports"].as_array().unwrap() {
        let (_, answer) = post(service, "/ids/conjunction", "none", &report["report"]);
        assert_eq!(
            (&answer["ids"][0], &answer["details"][0]["created"]),
            (&report["id"], &json!(false))
        );
    }
    let listed = service.get("/conjunctions").json();
    assert_eq!(
        listed["conjunctions"].as_array().unwrap().len(),
        kept["reports"].as_array().unwrap().len()
    );
}

/// Asserts that each key that got numbers still gets the same numbers, with the same texts.
fn assert_numbers_kept(service: &Service, kept: &Value) {
    for given in kept["numbers"].as_array().into_iter().flatten() {
        let answer = &given["answer"];
        let series = answer["series"].as_str().unwrap();
        let count = answer["count"].as_u64().unwrap_or(1);
        let again = take(service, series, count, given["key"].as_str().unwrap());
        assert_eq!(again, (200, answer.clone()));
    }
}

/// Asserts that each number of the folder keeps its text after the templates have changed, and that
/// later numbers are written by the new templates.
fn assert_texts_kept(home: &Home, kept: &Value) {
    let Some(rules) = kept["rules"].as_str() else {
        return;
    };
    // Change the templates twice, because after one change the first templates of the folder are
    // still its previous ones.
    for before in ["new-", "newer-"] {
        let changed = rules.replace("text = \"", &format!("text = \"{before}"));
        let service = Service::start(home.serve_with(&changed));
        service.wait_until_ready();
        assert_numbers_kept(&service, kept);
        for given in kept["numbers"].as_array().unwrap() {
            let series = given["answer"]["series"].as_str().unwrap();
            let (status, answer) = take(&service, series, 1, before);
            let is_new = answer["text"].as_str().unwrap().starts_with(before);
            assert_eq!(is_new, rules.contains(&series[..4]), "{answer}");
            assert!([200, 201].contains(&status));
        }
        service.kill();
    }
}

/// Asserts that new ids of each format are greater than those of the earlier build and those of
/// earlier rounds.
fn assert_above(service: &Service, kept: &mut Value) {
    for (order, newest) in kept["minted"].as_object_mut().unwrap() {
        let id = service.mint(order).remove(0);
        let before = newest.as_str().unwrap();
        assert!(
            (id.len(), id.as_str()) > (before.len(), before),
            "{order}: {id} is not above {before}"
        );
        *newest = json!(id);
    }
}

#[test]
fn a_folder_of_every_layout_is_opened_with_all_it_holds_killed_at_any_moment() {
    let mut folders: Vec<_> = fs::read_dir(FOLDERS)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.sort();
    assert_eq!(
        folders
            .iter()
            .map(|path| path.file_name().unwrap())
            .collect::<Vec<_>>(),
        ["a157b41", "e93a54d"]
    );
    for folder in folders {
        let (home, mut kept) = unpack(&folder);
        let rules = kept["rules"].as_str().unwrap_or_default().to_owned();
        let serve = || {
            let mut command = home.serve_with(&rules);
            command.arg("--run-ahead");
            command
        };
        // Kill the service at different moments of its first start on this folder.
        for delay_ms in [0, 2, 5, 10, 15, 20, 30, 40, 60, 80] {
            let mut child = serve()
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(delay_ms));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        for round in 0..3 {
            let service = Service::start(serve());
            service.wait_until_ready();
            assert_eq!(
                service.metric("idmint_horizon_cold_starts_total"),
                0.0,
                "its horizon is read"
            );
            assert_above(&service, &mut kept);
            assert_kept(&service, &kept, round);
            service.kill();
        }
        // The folder records the definitions of its formats, so a changed definition must be
        // refused.
        run(home.serve_with("formats.payment.epoch = \"2022-01-01T00:00:00Z\""))
            .assert(78, &["\"payment\"", "epoch: stored"]);
        assert_texts_kept(&home, &kept);
        println!(
            "{}: opened after 10 kills, and in 3 rounds",
            folder.display()
        );
    }
}

/// Checks that the folder stays unchanged, and that the message names the program that can read it.
#[test]
fn a_folder_of_another_layout_exits_78_and_says_which_program_reads_it() {
    let (home, _) = unpack(&Path::new(FOLDERS).join("a157b41"));
    let [database, horizon] = ["idmint.redb", "horizon"].map(|name| home.data_dir().join(name));
    let whole = fs::read(&database).unwrap();

    // In this layout, the file is a plain redb file without a log in front of it.
    let engine_alone = [&b"redb\x1a\x0a\xa9\x0d\x0a"[..], &whole[9..]].concat();
    // The head of this file is valid, but says that the layout is 2.
    let mut later = whole.clone();
    later[8..12].copy_from_slice(&2_u32.to_be_bytes());
    let sum = crc32c::crc32c(&later[..16]);
    later[16..20].copy_from_slice(&sum.to_be_bytes());
    let cases = [
        (
            engine_alone,
            ["a build before a157b41", "start a build of a157b41 once"],
        ),
        (later, ["has layout 2", "the version that wrote it"]),
    ];
    for (file, words) in cases {
        fs::write(&database, &file).unwrap();
        run(home.serve()).assert(78, &[&words[..], &["idmint.redb", NEVER_DELETE]].concat());
        assert!(
            fs::read(&database).unwrap() == file,
            "{} was changed",
            words[0]
        );
    }
    fs::write(&database, &whole).unwrap();

    // Write a later version into both copies of the horizon, which must be refused. An earlier
    // version must always stay readable.
    let sound = fs::read(&horizon).unwrap();
    let with_version = |version: u32| {
        let mut copies = sound.clone();
        for copy in copies.chunks_mut(4_096) {
            copy[8..12].copy_from_slice(&version.to_be_bytes());
            if version == 1 {
                copy[32..41].fill(0);
            }
            let sum = crc32c::crc32c(&copy[..4_092]);
            copy[4_092..].copy_from_slice(&sum.to_be_bytes());
        }
        copies
    };
    fs::write(&horizon, with_version(4)).unwrap();
    run(home.serve()).assert(78, &["horizon", "later version", "version 4", NEVER_DELETE]);
    assert!(
        fs::read(&horizon).unwrap() == with_version(4),
        "the horizon was changed"
    );
    fs::write(&horizon, with_version(1)).unwrap();
    let mut command = home.serve();
    command.arg("--run-ahead");
    let service = Service::start(command);
    service.wait_until_ready();
    let drawn = service
        .get(&format!(
            "/decode/{}?format=snowflake",
            service.mint("snowflake")[0]
        ))
        .text();
    assert!(drawn.contains("2045-01-01T"), "{drawn}");
}

/// Returns the range of the database file that contains the last commit in the log.
fn last_commit(database: &[u8]) -> std::ops::Range<usize> {
    let commits = database
        .chunks(4_096)
        .enumerate()
        .filter_map(|(at, block)| {
            let number =
                |from: usize| u32::from_be_bytes(block[from..from + 4].try_into().unwrap());
            let len = usize::try_from(number(4)).unwrap();
            let start = at * 4_096 + 20;
            (block.starts_with(b"idml") && len > 0)
                .then(|| (block[8..16].to_vec(), start..start + len))
        });
    commits.max_by_key(|(number, _)| number.clone()).unwrap().1
}

#[test]
fn a_log_row_of_a_later_version_exits_78_and_a_flipped_bit_exits_65() {
    let home = Home::new();
    let service = Service::start(home.serve());
    service.wait_until_ready();
    let give = |service: &Service| {
        let asked = request("POST /numbers/acme", "idempotency-key: order-1\r\n", "");
        let given = Client::connect(service.address()).exchange(asked);
        (given.status, given.json()["number"].clone())
    };
    assert_eq!(give(&service), (201, json!("1")));
    service.kill();
    let database = home.data_dir().join("idmint.redb");
    let whole = fs::read(&database).unwrap();
    let content = last_commit(&whole);
    assert_eq!(whole[content.start], b'n');

    let mut later = whole.clone();
    later[content.start] = b'x';
    let head = content.start - 20;
    let sum = crc32c::crc32c_append(
        crc32c::crc32c(&later[head + 4..head + 16]),
        &later[content.clone()],
    );
    later[head + 16..head + 20].copy_from_slice(&sum.to_be_bytes());
    fs::write(&database, &later).unwrap();
    let words = [
        "written by a later version",
        "start that version and end it with SIGTERM",
        "the kind 'x'",
        NEVER_DELETE,
    ];
    for _ in 0..2 {
        run(home.serve()).assert(78, &words);
    }

    let mut flipped = whole.clone();
    flipped[content.start] ^= 1;
    fs::write(&database, &flipped).unwrap();
    run(home.serve()).assert(65, &["idmint.redb"]);

    fs::write(&database, &whole).unwrap();
    let service = Service::start(home.serve());
    service.wait_until_ready();
    assert_eq!(give(&service), (200, json!("1")));
}

/// Runs `idmint check` and `idmint serve` with a configuration of an earlier version and a new
/// folder. Returns how each of them ended.
fn check_and_start(home: &Home, toml: &str) -> [Ended; 2] {
    let file = home.path("old.toml");
    // Another process may listen at the default port.
    let listen = match toml.contains("http.listen") {
        true => "",
        false => "http.listen = '127.0.0.1:0'\n",
    };
    fs::write(&file, format!("{listen}{toml}")).unwrap();
    let file = file.to_str().unwrap();
    let folder = home.path("new").display().to_string();
    [
        run(idmint(&["check", "--config", file])),
        run(idmint(&["serve", "--config", file, "--data-dir", &folder])),
    ]
}

#[test]
fn check_names_the_breaking_changes_of_a_configuration_that_no_longer_starts() {
    let home = Home::new();
    for (toml, checked, edit) in [
        (
            "formats.payment-wide.enabled = true",
            0,
            "set mint = false in [formats.payment] or [formats.payment-wide]",
        ),
        (
            "http.listen = '0.0.0.0:0'\nworker.exclusive = true",
            78,
            "list tokens in a file and name it in http.tokens",
        ),
        (
            "http.listen = '0.0.0.0:0'\nhttp.tokens = 'TOKENS'",
            78,
            "Set worker.exclusive = true",
        ),
        (
            "formats.payment.plausible_ahead = 'P1D'",
            78,
            "plausible_ahead",
        ),
        (
            "clock.max_ahead = '5s'\n[formats.slow]\nlike = 'payment'\ntick = '10s'",
            78,
            "set clock.max_ahead to at least \"10s\"",
        ),
        (
            "[numbers.inv]\npattern = 'inv-*'\ntext = 'INV-{n:05}'",
            0,
            "put {series} into the text",
        ),
    ] {
        let tokens = home.path("tokens.toml");
        fs::write(&tokens, "").unwrap();
        let toml = toml.replace("TOKENS", tokens.to_str().unwrap());
        let [check, start] = check_and_start(&home, &toml);
        assert_eq!(check.status.code(), Some(checked), "{toml}: {}", check.out);
        let named = format!("{}{}", check.out, check.err);
        assert!(named.contains(edit), "{toml}: {named}");
        start.assert(78, &[edit]);
    }
}

#[test]
fn a_configuration_with_a_former_name_of_a_format_starts_with_a_warning_and_keeps_its_meaning() {
    let home = Home::new();
    let tokens = home.path("tokens.toml");
    let mut token = idmint(&["token", "new", "--name", "old", "--scopes", "mint,decode"]);
    token
        .args(["--formats", "conjunction-v1-label", "--file"])
        .arg(&tokens);
    let token = run(token).out;
    let old = format!(
        "http.tokens = '{}'\nformats.enabled = ['conjunction-v1-label', 'mine']\n\
         decode.order = ['conjunction-v1-label']\nformats.mine.like = 'conjunction-v1-label'\n\
         [formats.conjunction-v1-label]\nlanes = 1\n",
        tokens.display()
    );
    let warning = "formats.enabled, decode.order, [formats.conjunction-v1-label], formats.mine.like: \
                   conjunction-v1-label is deprecated, it is conjunction-v1 with encoding=label";
    let service = Service::start(home.serve_with(&old));
    service.wait_until_ready();
    let file = home.path("idmint.toml");
    let checked = run(idmint(&["check", "--config", file.to_str().unwrap()]));
    checked.assert(0, &[]);
    assert!(
        checked.out.contains(&format!("warning: {warning}")),
        "{}",
        checked.out
    );
    assert!(service.log_once_it_says(warning).contains("WARN"));
    let headers = format!("authorization: Bearer {}\r\n", token.trim_end());
    let ask = |target: &str| {
        let asked = request(target, &headers, "");
        Client::connect(service.address()).exchange(asked)
    };
    for (path, status) in [
        ("POST /ids/conjunction-v1-label", 200),
        ("POST /ids/conjunction-v1?encoding=label", 200),
        ("POST /ids/mine", 403),
        ("GET /formats/conjunction-v1-label", 200),
    ] {
        assert_eq!(ask(path).status, status, "{path}");
    }
    let minted = ask("POST /ids/conjunction-v1-label").json();
    let label = minted["ids"][0].as_str().unwrap();
    let decoded = ask(&format!("GET /decode/{label}?format=conjunction-v1-label")).json();
    let found = &decoded["matches"][0];
    assert_eq!(
        [&found["format"], &found["encoding"]],
        ["conjunction-v1", "label"]
    );
}
