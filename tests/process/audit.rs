//! Checks the audit trail. It must contain mints, refusals and actions of operators. The tests also
//! check what the service does when the trail cannot be written.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use serde_json::Value;

use idmint_testing::http1::{Answer, Client, request};
use idmint_testing::service::{Ended, Home, Service, idmint, run, until, without_size_signal};

/// A file length that is greater than the length of the record files.
const FILE_LEN: u64 = 1 << 30;

/// The example of a `traceparent` header in the W3C Trace Context specification.
const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn exchange(service: &Service, line: &str, headers: &str, body: &str) -> Answer {
    Client::connect(service.address()).exchange(request(line, headers, body))
}

fn start(home: &Home, trail: &Path, more: &str) -> Service {
    let service =
        Service::start(home.serve_with(&format!("log.audit = '{}'\n{more}", trail.display())));
    service.wait_until_ready();
    service
}

fn back_up(home: &Home, to: &Path) -> Ended {
    run(idmint(&[
        "backup",
        to.to_str().unwrap(),
        "--data-dir",
        home.data_dir().to_str().unwrap(),
    ]))
}

fn lines(trail: &Path) -> Vec<Value> {
    let text = fs::read_to_string(trail).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn token_in(file: &Path) -> String {
    let name = [
        "token",
        "new",
        "--name",
        "billing",
        "--scopes",
        "mint,ledger",
        "--file",
        file.to_str().unwrap(),
    ];
    let made = run(idmint(&name));
    made.assert(0, &[]);
    made.out.lines().next().unwrap().trim().to_owned()
}

/// Reads an audit trail. Returns the lines about actions of operators, and then the lines about
/// requests.
fn acts_and_requests(trail: &Path) -> (Vec<Value>, Vec<Value>) {
    lines(trail)
        .into_iter()
        .partition(|line| line.get("act").is_some())
}

#[test]
fn who_minted_what_and_who_was_refused_is_told_and_no_token_is() {
    let home = Home::new();
    let (trail, tokens) = (home.path("audit.ndjson"), home.path("tokens.toml"));
    let token = token_in(&tokens);
    let service = start(
        &home,
        &trail,
        &format!("http.tokens = '{}'", tokens.display()),
    );
    let bearer = format!("authorization: Bearer {token}\r\n");
    let named = |id: &str| {
        format!(
            "{bearer}x-request-id: {id}\r\ncontent-type: application/json\r\nidempotency-key: {id}\r\n"
        )
    };

    let malformed = format!("{}traceparent: 00-{TRACE}\r\n", named("invalid"));
    let traced = format!("{}traceparent: {TRACE}\r\n", named("minted"));
    assert_eq!(
        exchange(&service, "POST /ids/payment?count=3", &traced, "").status,
        200
    );
    assert_eq!(
        exchange(&service, "POST /ids/payment?count=0", &malformed, "").status,
        422
    );
    assert_eq!(
        exchange(&service, "GET /formats", "x-request-id: stranger\r\n", "").status,
        401
    );
    assert_eq!(
        exchange(&service, "GET /formats", &named("scope"), "").status,
        403
    );
    let id = "1I9ZC1002";
    for path in ["/decode", "/conjunctions", "/ledgers/aa77f99c/ids"] {
        let refused = exchange(&service, &format!("GET {path}/{id}"), "", "");
        assert_eq!(refused.status, 401);
    }
    assert_eq!(exchange(&service, "GET /health/live", "", "").status, 200);
    let ledger = exchange(
        &service,
        "POST /ledgers",
        &named("begun"),
        r#"{"event":"Begun","entities":{}}"#,
    )
    .json();
    let ledger = ledger["ledger"].as_str().unwrap();
    let events = format!(
        r#"{{"ledger":"{ledger}","events":[{{"event":"a","entities":{{}}}},{{"event":"b","entities":{{}}}}]}}"#
    );
    assert_eq!(
        exchange(&service, "POST /ids/evently", &named("appended"), &events).status,
        201
    );
    let again = named("appended").replacen("appended", "again", 1);
    assert_eq!(
        exchange(&service, "POST /ids/evently", &again, &events).status,
        200
    );
    // Other paths that do the same work must write the same lines: `/ledgers/{ledger}/events` for
    // `/ids/evently`, and `/conjunctions` for `/ids/conjunction`.
    let events = r#"{"events":[{"event":"c","entities":{}}]}"#;
    let appended = exchange(
        &service,
        &format!("POST /ledgers/{ledger}/events"),
        &named("beside"),
        events,
    );
    assert_eq!(appended.status, 201, "{}", appended.text());
    let report = r#"{"tca":"2026-02-01T00:00:00Z","primary":25544,"secondary":48274}"#;
    assert_eq!(
        exchange(&service, "POST /conjunctions", &named("reported"), report).status,
        200
    );
    back_up(&home, &home.path("copy")).assert(0, &[]);
    service.send(Signal::HUP);
    service.log_once_it_says("SIGHUP: reloading");
    service.send(Signal::TERM);
    service.wait();

    let (acts, requests) = acts_and_requests(&trail);
    let told: Vec<_> = acts
        .iter()
        .map(|act| act["act"].as_str().unwrap())
        .collect();
    assert_eq!(
        told,
        ["start", "backup", "reload", "reloaded", "end"],
        "{acts:?}"
    );
    assert_eq!(
        (&acts[0]["slot"], &acts[0]["horizon"], &acts[3]["tokens"]),
        (&0.into(), &Value::Null, &1.into())
    );
    let told = |id: &str| {
        requests
            .iter()
            .find(|line| line["request"] == id)
            .unwrap_or_else(|| panic!("{id}: {requests:?}"))
    };
    let shown = "the token `billing`";
    let minted = told("minted");
    assert_eq!(
        (&minted["shown"], &minted["path"], &minted["count"]),
        (&shown.into(), &"/ids/payment".into(), &3.into())
    );
    assert_eq!(
        (&minted["status"], &minted["caller"]),
        (&200.into(), &"127.0.0.1".into())
    );
    assert_eq!(
        (&minted["traceparent"], &told("invalid")["traceparent"]),
        (&TRACE.into(), &Value::Null)
    );
    assert_eq!(told("invalid")["status"], 422);
    assert_eq!(
        (&told("stranger")["shown"], &told("stranger")["status"]),
        (&Value::Null, &401.into())
    );
    assert_eq!(
        (&told("scope")["shown"], &told("scope")["status"]),
        (&shown.into(), &403.into())
    );
    assert_eq!(told("begun")["ledger"], *ledger);
    assert_eq!(
        (&told("appended")["ledger"], &told("appended")["count"]),
        (&ledger.into(), &2.into())
    );
    assert_eq!(
        (&told("appended")["replayed"], &told("again")["replayed"]),
        (&Value::Null, &true.into())
    );
    assert!(
        requests.iter().all(|line| line.get("answered").is_none()),
        "all were: {requests:?}"
    );
    assert_eq!(
        (&told("beside")["ledger"], &told("beside")["count"]),
        (&ledger.into(), &1.into())
    );
    assert_eq!(
        (&told("reported")["path"], &told("reported")["count"]),
        (&"/conjunctions".into(), &1.into())
    );
    let refused = requests.iter().filter(|line| line["status"] == 401);
    let paths: Vec<_> = refused.map(|line| line["path"].as_str().unwrap()).collect();
    assert_eq!(
        paths,
        [
            "/formats",
            "/decode/{id}",
            "/conjunctions/{id}",
            "/ledgers/aa77f99c/ids/{id}"
        ]
    );
    assert_eq!(requests.len(), 12, "nothing else is audited: {requests:?}");
    let trail = fs::read_to_string(&trail).unwrap();
    assert!(
        !trail.contains(&token) && !trail.contains(id),
        "a trail has neither tokens nor ids"
    );
    println!("{} acts and {} requests", acts.len(), requests.len());
}

/// Creates a named pipe. It is kept open, but nobody reads it.
fn unread_pipe(home: &Home) -> (PathBuf, File) {
    let pipe = home.path("audit.pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let reader = File::options().read(true).write(true).open(&pipe).unwrap();
    (pipe, reader)
}

#[test]
fn without_room_in_the_trail_operators_are_refused_and_ids_are_minted() {
    let home = Home::new();
    let (pipe, mut reader) = unread_pipe(&home);
    let service = start(&home, &pipe, "");
    let mut minted = 0;
    let dropped = until("the pipe is full", || {
        minted += service.mint("snowflake").len();
        let dropped = service.metric("idmint_log_lines_dropped_total");
        (dropped > 0.0).then_some(dropped)
    });
    // Retry until a backup is refused. The pipe may still have room for a short line after a longer
    // one did not fit.
    let mut copies = (0..).map(|number| home.path(&format!("copy-{number}")));
    let (refused, none) = until("a backup is refused", || {
        let copy = copies.next().unwrap();
        Some((back_up(&home, &copy), copy)).filter(|(ended, _)| ended.status.code() != Some(0))
    });
    refused.assert(74, &["audit trail", "audit.pipe"]);
    assert!(!none.exists());
    until("a reload is refused", || {
        service.send(Signal::HUP);
        service.log().contains("nothing is reloaded").then_some(())
    });
    assert_eq!(service.mint("snowflake").len(), 1);

    let mut some = vec![0; 64 * 1024];
    let read = reader.read(&mut some).unwrap();
    until("there is room", || {
        (back_up(&home, &home.path("copy")).status.code() == Some(0)).then_some(())
    });
    println!("{minted} ids minted, {dropped} lines dropped, {read} bytes read");
}

#[test]
fn a_line_that_a_full_disk_has_torn_is_counted_and_the_next_is_whole() {
    const MINTS: usize = 20;
    let home = Home::new();
    let trail = home.path("audit.ndjson");
    let service = Service::start(without_size_signal(
        &home.serve_with(&format!("log.audit = '{}'", trail.display())),
    ));
    service.wait_until_ready();
    // Make the trail longer than any other file, so that the limit of file lengths affects only the
    // trail. Extend the trail by a hole, and then end the line.
    let file = File::options().append(true).open(&trail).unwrap();
    file.set_len(FILE_LEN).unwrap();
    (&file).write_all(b"\n").unwrap();
    let begin = file.metadata().unwrap().len();
    let pid = Pid::from_raw(service.pid().try_into().unwrap());
    let set_file_len_max = |current| {
        prlimit(
            pid,
            Resource::Fsize,
            Rlimit {
                current,
                maximum: None,
            },
        )
        .unwrap()
    };
    // The limit leaves 1 000 bytes. A few lines fit, because every line is longer than 64 bytes,
    // and one more line fits only partly.
    set_file_len_max(Some(begin + 1_000));
    (0..MINTS).for_each(|_| assert_eq!(service.mint("snowflake").len(), 1));
    let dropped = || service.count("idmint_log_lines_dropped_total");
    let settled = || tail(&trail, begin).lines().count() + dropped() >= MINTS;
    until("each line is written or dropped", || {
        settled().then_some(())
    });
    back_up(&home, &home.path("refused")).assert(74, &["audit trail"]);
    let dropped_before = dropped();
    set_file_len_max(None);
    (0..MINTS).for_each(|_| assert_eq!(service.mint("snowflake").len(), 1));
    back_up(&home, &home.path("copy")).assert(0, &[]);
    service.send(Signal::TERM);
    service.wait();

    let lines: Vec<_> = tail(&trail, begin)
        .lines()
        .map(serde_json::from_str::<Value>)
        .map(Result::ok)
        .collect();
    let torn = lines.iter().filter(|line| line.is_none()).count();
    let minted = lines
        .iter()
        .flatten()
        .filter(|line| line["path"] == "/ids/snowflake")
        .count();
    println!(
        "{minted} of {} told, {torn} torn, {dropped_before} dropped",
        2 * MINTS
    );
    assert_eq!(minted + dropped_before, 2 * MINTS, "told or counted");
    assert!(
        torn <= 1 && dropped_before > 0,
        "the one that was cut: {torn}, {dropped_before}"
    );
}

/// Returns the text of a file from the offset `begin` on.
fn tail(file: &Path, begin: u64) -> String {
    let mut file = File::open(file).unwrap();
    file.seek(SeekFrom::Start(begin)).unwrap();
    std::io::read_to_string(file).unwrap()
}

#[test]
fn a_trail_that_cannot_be_written_lets_nothing_begin() {
    let home = Home::new();
    let serve = |trail: &str| run(home.serve_with(&format!("log.audit = '{trail}'")));
    serve("/dev/full").assert(74, &["/dev/full", "audit trail"]);
    let missing = home.path("missing/audit").display().to_string();
    serve(&missing).assert(74, &[&missing]);
}

#[test]
fn a_reload_of_an_invalid_file_is_recorded() {
    let home = Home::new();
    let (trail, tokens) = (home.path("audit.ndjson"), home.path("tokens.toml"));
    token_in(&tokens);
    let service = start(
        &home,
        &trail,
        &format!("http.tokens = '{}'", tokens.display()),
    );
    let good = fs::read(&tokens).unwrap();
    for (content, kept) in [(&b"broken"[..], &["http.tokens"][..]), (&good, &[])] {
        fs::write(&tokens, content).unwrap();
        let before = lines(&trail).len();
        service.send(Signal::HUP);
        let line = until("the reload is recorded", || {
            lines(&trail).get(before + 1).cloned()
        });
        assert_eq!(line["act"], "reloaded", "{line}");
        assert_eq!(
            (&line["tokens"], &line["kept"]),
            (&1.into(), &kept.into()),
            "{line}"
        );
    }
    let before = lines(&trail).len();
    fs::write(home.path("idmint.toml"), "nonsense").unwrap();
    service.send(Signal::HUP);
    let line = until("the reload is recorded", || {
        lines(&trail).get(before + 1).cloned()
    });
    let kept = [
        "conjunction.catalogs",
        "conjunction.designators",
        "http.tls.client_scopes",
    ];
    assert_eq!(
        (&line["configuration"], &line["kept"]),
        (&false.into(), &kept.as_slice().into()),
        "{line}"
    );
    for said in [
        "certificates and http.tls.client_scopes",
        "log.audit was reopened",
    ] {
        service.log_once_it_says(said);
    }
}
