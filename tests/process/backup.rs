//! Checks `idmint backup`, which copies the data of a running node, and starts a node on the copy.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use idmint_records::ledger::EventTime;
use serde_json::{Value, json};

use idmint_testing::http1::{Client, request};
use idmint_testing::service::{Ended, Home, Service, idmint, run, serve_from};

fn back_up(home: &Home, to: &Path) -> Ended {
    run(idmint(&[
        "backup",
        to.to_str().unwrap(),
        "--data-dir",
        home.data_dir().to_str().unwrap(),
    ]))
}

fn post(service: &Service, target: &str, key: &str, body: &Value) -> Value {
    let headers = format!("content-type: application/json\r\nidempotency-key: {key}\r\n");
    let answer = Client::connect(service.address()).exchange(request(
        &format!("POST {target}"),
        &headers,
        &body.to_string(),
    ));
    assert!([200, 201].contains(&answer.status), "{}", answer.text());
    answer.json()
}

fn append(service: &Service, ledger: &Value, key: &str) -> Value {
    post(
        service,
        "/ids/evently",
        key,
        &json!({ "ledger": ledger, "events": [{ "event": key, "entities": {} }] }),
    )["ids"][0]
        .clone()
}

/// Returns a time for `--floor` that is later than the time of every id minted so far.
pub(crate) fn floor() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_secs(4);
    EventTime::from_micros(now.as_micros().try_into().unwrap())
        .unwrap()
        .to_string()
}

#[test]
fn a_backup_of_a_running_node_has_what_was_acknowledged_and_starts_only_above_a_floor() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let ledger = post(
        &service,
        "/ledgers",
        "begin",
        &json!({ "event": "Begun", "entities": {} }),
    )["ledger"]
        .clone();
    let before: Vec<Value> = (0..50)
        .map(|at| append(&service, &ledger, &format!("before-{at}")))
        .collect();
    let report =
        json!({ "tca": "2026-02-01T00:00:00.250Z", "primary": 25_544, "secondary": 48_274 });
    let conjunction = post(&service, "/ids/conjunction", "report", &report)["ids"][0].clone();
    // Send a report of the same conjunction with an id of another originator.
    let message = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/cdm/two-theirs.kvn"
    ))
    .unwrap();
    let message = message.replace("2024-032T00:00:00.25", "2026-02-01T00:00:00.25");
    let sent = request(
        "POST /ids/conjunction",
        "content-type: text/plain\r\n",
        &message,
    );
    assert_eq!(
        Client::connect(service.address()).exchange(sent).json()["ids"][0],
        conjunction
    );

    let socket = fs::symlink_metadata(home.data_dir().join("backup.sock")).unwrap();
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);
    let copy = home.path("copy");
    let ended = back_up(&home, &copy);
    ended.assert(0, &[]);
    assert_eq!(
        ended.out,
        format!(
            "51 appends, 1 conjunctions and 0 numbers are in {}\n",
            copy.display()
        )
    );
    assert_eq!(
        fs::metadata(copy.join("idmint.redb"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o600
    );
    back_up(&home, &copy).assert(74, &["not empty"]);

    append(&service, &ledger, "after");
    let minted: u64 = service.mint("snowflake")[0].parse().unwrap();
    service.kill();

    run(serve_from(&copy)).assert(65, &["horizon", "--floor"]);
    let mut command = serve_from(&copy);
    command.args(["--floor", &floor()]);
    let restored = Service::start(command);
    restored.wait_until_ready();
    let ledger = ledger.as_str().unwrap();
    let chain = restored.get(&format!("/ledgers/{ledger}/ids")).json();
    let ids: Vec<&Value> = chain["ids"].as_array().unwrap()[1..]
        .iter()
        .map(|link| &link["id"])
        .collect();
    assert_eq!(
        ids,
        before.iter().collect::<Vec<_>>(),
        "what was acknowledged before the copy, and nothing after it"
    );
    let again = post(&restored, "/ids/conjunction", "again", &report);
    assert_eq!(
        (&again["ids"][0], &again["details"][0]["created"]),
        (&conjunction, &Value::Bool(false))
    );
    let found = restored
        .get("/conjunctions?external=20240201T00hz%20SATELLITEA%20SATELLITEB")
        .json();
    assert_eq!(found["conjunctions"][0]["id"], conjunction, "{found}");
    let replayed = append(&restored, &json!(ledger), "before-7");
    assert_eq!(replayed, before[7], "its key is known");
    assert!(restored.mint("snowflake")[0].parse::<u64>().unwrap() > minted);
}

#[test]
fn a_copy_that_is_only_in_a_folder_of_the_node_is_reported() {
    let home = Home::new();
    fs::create_dir(home.data_dir()).unwrap();
    let socket = UnixListener::bind(home.data_dir().join("backup.sock")).unwrap();
    // Simulate a node in a container. It reports success, but writes the copy to a folder with the
    // same name in the container, so no copy appears in this folder.
    thread::spawn(move || {
        for stream in socket.incoming() {
            let mut stream = stream.unwrap();
            stream.read_to_end(&mut Vec::new()).unwrap();
            stream.write_all(b"done 7 0 0\n").unwrap();
        }
    });
    let copy = home.path("copy");
    let elsewhere = ["another", "`idmint backup - > FILE`"];
    back_up(&home, &copy).assert(74, &elsewhere);
    fs::create_dir(&copy).unwrap();
    back_up(&home, &copy).assert(74, &elsewhere);
    // An older copy must not be mistaken for the new one.
    fs::write(copy.join("idmint.redb"), "").unwrap();
    back_up(&home, &copy).assert(74, &["not empty"]);
}

#[test]
fn whoever_connects_and_says_nothing_holds_up_no_backup() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let connect = || UnixStream::connect(home.data_dir().join("backup.sock")).unwrap();
    let mut slow = connect();
    slow.write_all(home.path("slow").to_str().unwrap().as_bytes())
        .unwrap();
    let few: Vec<_> = (0..20).map(|_| connect()).collect();
    slow.shutdown(Shutdown::Write).unwrap();
    let mut reply = String::new();
    slow.read_to_string(&mut reply).unwrap();
    assert_eq!(
        reply, "done 0 0 0\n",
        "so few do not make room for each other"
    );

    // Open many connections to the backup socket that send nothing. If the service handled them one
    // after another, each would take 5 s, and the command would reach its timeout.
    let many: Vec<_> = (0..200).map(|_| connect()).collect();
    let ended = back_up(&home, &home.path("copy"));
    ended.assert(0, &[]);
    assert!(
        ended
            .out
            .starts_with("0 appends, 0 conjunctions and 0 numbers"),
        "{}",
        ended.out
    );
    drop((few, many));
}

#[test]
fn without_a_running_node_there_is_nobody_to_ask() {
    let home = Home::new();
    back_up(&home, &home.path("copy")).assert(69, &["no node", "copy the data folder instead"]);
    let service = home.start();
    service.wait_until_ready();
    service.kill();
    back_up(&home, &home.path("copy")).assert(69, &["no node"]);
    let mut again = home.start();
    again.wait_until_ready();
    let ended = back_up(&home, &home.path("copy"));
    ended.assert(0, &[]);
    assert!(
        ended
            .out
            .starts_with("0 appends, 0 conjunctions and 0 numbers"),
        "{}",
        ended.out
    );
    assert!(again.is_running());
}
