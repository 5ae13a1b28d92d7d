//! Checks `idmint ledger create`, `append` and `import`. Whatever fails between the command and the
//! service, the ledger must be right afterwards.

use std::io::Write;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use idmint_records::ledger::{Event, EventId, EventTime, LedgerId};
use serde_json::{Value, json};

use crate::faulty_proxy::{FaultyProxy, forward, retry_later};
use idmint_testing::chains::{Chain, chains};
use idmint_testing::service::{Ended, Home, Service, idmint, run};

/// The first event of the example in Evently's documentation, written on several lines.
const GENESIS: &str = r#"{
    "event": "Ledger Created", "entities": {"ledger": "testing⑆preview"}, "timestamp": "2021-10-03T16:32:12.816530Z",
    "meta": {"actor": "matt"}, "data": {"name": "My Ledger", "description": "This ledger is for my example events."}
}"#;
const LEDGER: &str = "aa77f99c";
const GENESIS_ID: &str = "0005cd7556b05092aecc815daa77f99c";

/// The size of an event in bytes. Four events of this size fit into one request.
const LARGE: usize = 250 * 1024;

/// Writes a text to a file, and runs `idmint ledger` with this file.
fn with_file(
    home: &Home,
    command: &str,
    before: &[&str],
    text: &str,
    server: &str,
    args: &[&str],
) -> Ended {
    let file = home.path("events.ndjson");
    std::fs::write(&file, text).unwrap();
    let named = [
        &["ledger", command][..],
        before,
        &[file.to_str().unwrap(), "--server", server],
    ]
    .concat();
    run(idmint(&[&named[..], args].concat()))
}

fn create(home: &Home, text: &str, server: &str, args: &[&str]) -> Ended {
    with_file(home, "create", &[], text, server, args)
}

fn append(home: &Home, lines: &[String], server: &str, args: &[&str]) -> Ended {
    with_file(home, "append", &[LEDGER], &lines.join("\n"), server, args)
}

fn import(home: &Home, lines: &[String], server: &str, args: &[&str]) -> Ended {
    with_file(home, "import", &[], &lines.join("\n"), server, args)
}

/// Starts a service and the home folder of its commands. No ledger exists yet.
fn start_with_ledger() -> (Home, Service) {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    (home, service)
}

fn with_ledger() -> (Home, Service) {
    let (home, service) = start_with_ledger();
    create(&home, GENESIS, &service.url(), &[]).assert(0, &[]);
    (home, service)
}

/// Returns the ids of all events of a ledger, in order.
fn ids(service: &Service, ledger: &str) -> Vec<String> {
    let answer = service.get(&format!("/ledgers/{ledger}/ids")).json();
    answer["ids"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["id"].as_str().unwrap().to_owned())
        .collect()
}

fn is_importing(service: &Service) -> bool {
    service.get(&format!("/ledgers/{LEDGER}")).json()["importing"] == true
}

fn printed_lines(ended: &Ended) -> Vec<&str> {
    ended.out.lines().collect()
}

fn events(count: usize, len: usize) -> Vec<String> {
    (0..count)
        .map(|at| {
            format!(
                r#"{{"event":"e{at}","entities":{{}},"data":"{}"}}"#,
                "x".repeat(len)
            )
        })
        .collect()
}

/// Returns a chain that begins with the documented event, followed by `count` events with `len`
/// bytes of data.
fn chain(count: usize, len: usize) -> Vec<String> {
    let genesis = Event::from_json(GENESIS.as_bytes()).unwrap();
    let begun = genesis.timestamp().unwrap();
    let ledger = LedgerId::of_genesis(&genesis, begun);
    let mut lines = vec![
        GENESIS
            .replace('\n', " ")
            .replace("} }", &format!(r#"}}, "eventId": "{GENESIS_ID}"}}"#)),
    ];
    let mut head = EventId::from_text(GENESIS_ID).unwrap();
    for (at, event) in events(count, len).iter().enumerate() {
        let time = EventTime::from_micros(begun.micros() + 1 + u64::try_from(at).unwrap()).unwrap();
        head = Event::from_json(event.as_bytes())
            .unwrap()
            .seal(time, ledger, head);
        let members = event.strip_suffix('}').unwrap();
        lines.push(format!(
            r#"{members},"timestamp":"{time}","eventId":"{head}"}}"#
        ));
    }
    lines
}

fn id_of(line: &str) -> &str {
    &line.rsplit_once('"').unwrap().0[line.len() - 34..]
}

#[test]
fn create_prints_the_ledger_and_its_event_however_often_it_is_run() {
    let (home, service) = start_with_ledger();
    let expected = format!("{LEDGER} {GENESIS_ID}\n");
    let first = create(&home, GENESIS, &service.url(), &[]);
    first.assert(0, &[]);
    assert_eq!(
        (first.out.as_str(), first.err.as_str()),
        (expected.as_str(), "")
    );
    // The ledger already exists. Creating it again must find it in three cases: with the same key,
    // with another key, and with the same event in other white space.
    for (text, args) in [
        (GENESIS, &[][..]),
        (GENESIS, &["--key", "mine"]),
        (&GENESIS.replace('\n', " "), &[]),
    ] {
        let again = create(&home, text, &service.url(), args);
        again.assert(0, &["created before, from the same event"]);
        assert_eq!(again.out, expected);
    }
    let json: Value =
        serde_json::from_str(&create(&home, GENESIS, &service.url(), &["--json"]).out).unwrap();
    assert_eq!(
        (&json["events"], &json["head"]),
        (&json!(1), &json!(GENESIS_ID))
    );

    let timeless = r#"{"event":"Ledger Created","entities":{}}"#;
    let ended: Vec<Ended> = (0..2)
        .map(|_| create(&home, timeless, &service.url(), &[]))
        .collect();
    assert_eq!(ended[0].out, ended[1].out);
    let other = create(&home, timeless, &service.url(), &["--key", "another"]);
    other.assert(0, &[]);
    assert_ne!(other.out, ended[0].out);
    create(&home, GENESIS, &service.url(), &["--key", "another"]).assert(1, &["422", "key"]);
    create(&home, "{}", &service.url(), &[]).assert(65, &["event"]);
    create(&home, "", &service.url(), &[]).assert(65, &[]);
    create(&home, GENESIS, &service.url(), &["--key", ""]).assert(64, &["visible ASCII"]);
    create(&home, GENESIS, &service.url(), &["--timeout", "5"]).assert(64, &["90s"]);
    create(&home, GENESIS, "no address", &[]).assert(64, &["not a service address"]);
}

#[test]
fn append_prints_an_id_for_each_event_and_the_same_ones_again() {
    let (home, service) = with_ledger();
    let lines = events(3, 1);
    let first = append(&home, &lines, &service.url(), &[]);
    first.assert(0, &[]);
    assert_eq!(printed_lines(&first), ids(&service, LEDGER)[1..]);
    let again = append(&home, &lines, &service.url(), &["--json"]);
    again.assert(0, &["3 of 3 events were appended before"]);
    let rows: Vec<Value> = again
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&rows[2]["id"], &rows[2]["place"]),
        (&json!(printed_lines(&first)[2]), &json!(4))
    );
    assert_eq!(
        (&rows[0]["previous"], &rows[1]["previous"]),
        (&json!(GENESIS_ID), &rows[0]["id"])
    );

    let meant = append(&home, &lines, &service.url(), &["--key", "once-more"]);
    meant.assert(0, &[]);
    assert_eq!(printed_lines(&meant), ids(&service, LEDGER)[4..]);
    append(&home, &lines[1..], &service.url(), &["--key", "once-more"]).assert(1, &["422", "key"]);
    assert_eq!(ids(&service, LEDGER).len(), 7);
}

#[test]
fn append_reads_standard_input_and_sends_nothing_unless_all_of_it_is_events() {
    let (home, service) = with_ledger();
    let mut command = idmint(&["ledger", "append", LEDGER, "--server", &service.url()]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all((events(2, 1).join("\r\n") + "\r\n").as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .collect::<Vec<_>>(),
        ids(&service, LEDGER)[1..]
    );

    let [good, long] = [events(1, 1).remove(0), events(1, 256 * 1024).remove(0)];
    append(&home, &[], &service.url(), &[]).assert(65, &["the input has no event"]);
    append(&home, &[good.clone(), "{}".to_owned()], &service.url(), &[])
        .assert(65, &["line 2", "nothing was sent"]);
    append(
        &home,
        &[good.clone(), String::new(), good.clone()],
        &service.url(),
        &[],
    )
    .assert(65, &["line 2"]);
    append(&home, &[good, long], &service.url(), &[])
        .assert(65, &["line 2 is longer than the 262144 bytes"]);
    assert_eq!(ids(&service, LEDGER).len(), 3);
    run(idmint(&[
        "ledger",
        "append",
        "00000000",
        "--server",
        &service.url(),
    ]))
    .assert(65, &["the input has no event"]);
    with_file(
        &home,
        "append",
        &["00000000"],
        &events(1, 1)[0],
        &service.url(),
        &[],
    )
    .assert(1, &["404", "no ledger 00000000"]);
    run(idmint(&["ledger", "append", "AA77F99C"])).assert(64, &["lower-case"]);
}

#[test]
fn append_goes_on_through_lost_answers_and_refusals_and_a_killed_service() {
    let (home, service) = with_ledger();
    let running = Arc::new(Mutex::new(Some(service)));
    let (there, data_dir) = (Arc::clone(&running), home.data_dir());
    let proxy = FaultyProxy::start(move |number, request| {
        let mut service = there.lock().unwrap();
        let answer = || Some(forward(service.as_ref().unwrap().address(), request));
        match number {
            1 => Some(retry_later(503, 1)),
            // Request 3 does not reach the service. Request 5 does, but its response is lost.
            3 => None,
            5 => answer().and(None),
            6 => Some(retry_later(504, 1)),
            7 => {
                let _ = answer();
                service.take().unwrap().kill();
                let again = Service::start(idmint_testing::service::serve_from(&data_dir));
                again.wait_until_ready();
                *service = Some(again);
                None
            }
            _ => answer(),
        }
    });
    let lines = events(14, LARGE);
    let ended = append(&home, &lines, &proxy.url(), &[]);
    ended.assert(0, &["the proxy says 503", "retrying for up to 1m"]);
    let service = running.lock().unwrap().take().unwrap();
    assert_eq!(printed_lines(&ended), ids(&service, LEDGER)[1..]);
    assert_eq!(printed_lines(&ended).len(), lines.len());
}

#[test]
fn an_append_that_was_given_up_is_finished_by_the_same_command() {
    let (home, service) = with_ledger();
    let address = service.address();
    let proxy = FaultyProxy::start(move |number, request| match number {
        1 | 2 => Some(forward(address, request)),
        // Request 3 reaches the service, but its response is lost.
        3 => Some(forward(address, request)).and(None),
        _ => None,
    });
    let lines = events(14, LARGE);
    let broken = append(&home, &lines, &proxy.url(), &["--timeout", "0s"]);
    broken.assert(
        69,
        &["8 of 14 events were appended for certain; run the same command again"],
    );
    assert_eq!(
        (printed_lines(&broken).len(), ids(&service, LEDGER).len()),
        (8, 1 + 12)
    );
    let done = append(&home, &lines, &service.url(), &[]);
    done.assert(0, &["12 of 14 events were appended before"]);
    assert_eq!(printed_lines(&done)[..8], printed_lines(&broken));
    assert_eq!(printed_lines(&done), ids(&service, LEDGER)[1..]);
    let full = FaultyProxy::start(|_, _| Some(retry_later(503, 3_600_000)));
    append(&home, &lines, &full.url(), &[])
        .assert(75, &["503", "0 of 14 events were appended for certain"]);
}

#[test]
fn import_brings_every_published_chain_and_sends_nothing_of_one_that_does_not_hold() {
    let (home, service) = start_with_ledger();
    let requests = Arc::new(AtomicUsize::new(0));
    let (seen, address) = (Arc::clone(&requests), service.address());
    let proxy = FaultyProxy::start(move |_, request| {
        seen.fetch_add(1, Ordering::Relaxed);
        Some(forward(address, request))
    });
    let (valid, broken): (Vec<Chain>, Vec<Chain>) = chains()
        .into_iter()
        .partition(|chain| chain.outcome.is_ok());
    for Chain {
        name,
        lines,
        outcome,
        ..
    } in broken
    {
        let (index, reason) = outcome.unwrap_err();
        let place = format!("line {} is not valid: {reason}: ", index + 1);
        import(&home, &lines, &proxy.url(), &[]).assert(65, &[&place, "nothing was sent"]);
        assert_eq!(requests.load(Ordering::Relaxed), 0, "{name}");
    }
    import(&home, &[], &proxy.url(), &[]).assert(65, &["the file has no event"]);
    let Chain {
        ledger,
        lines,
        outcome,
        ..
    } = &valid[1];
    let (head, events) = (outcome.as_ref().unwrap(), lines.len());
    for new in [events, 0] {
        let ended = import(&home, lines, &proxy.url(), &[]);
        ended.assert(0, &[]);
        assert_eq!(
            ended.out,
            format!(
                "complete: {events} events of ledger {ledger}, {new} of them imported now, head {head}\n"
            )
        );
    }
    assert_eq!(
        ids(&service, ledger),
        lines.iter().map(|line| id_of(line)).collect::<Vec<_>>()
    );
}

#[test]
fn an_import_that_broke_off_goes_on_after_the_head_whatever_was_lost() {
    let (home, service) = start_with_ledger();
    let lines = chain(14, LARGE);
    let address = service.address();
    // Three requests succeed: looking up the ledger, creating it, and appending four events. The
    // response to the next append is lost.
    let proxy = FaultyProxy::start(move |number, request| match number {
        1..=3 => Some(forward(address, request)),
        4 => Some(forward(address, request)).and(None),
        _ => None,
    });
    import(&home, &lines, &proxy.url(), &["--timeout", "0s"]).assert(
        69,
        &["5 of 15 events are stored in the ledger for certain; run the same command again to continue"],
    );
    assert_eq!(ids(&service, LEDGER).len(), 9);
    service.kill();

    let service = home.start();
    service.wait_until_ready();
    let ended = import(&home, &lines, &service.url(), &[]);
    ended.assert(0, &[]);
    assert!(
        ended
            .out
            .contains("15 events of ledger aa77f99c, 6 of them imported now"),
        "{}",
        ended.out
    );
    assert_eq!(
        ids(&service, LEDGER),
        lines.iter().map(|line| id_of(line)).collect::<Vec<_>>()
    );
}

#[test]
fn an_event_of_now_does_not_get_between_the_parts_of_an_import() {
    let (home, service) = start_with_ledger();
    let lines = chain(14, LARGE);
    let address = service.address();
    let proxy =
        FaultyProxy::start(move |number, request| (number <= 3).then(|| forward(address, request)));
    import(&home, &lines, &proxy.url(), &["--timeout", "0s"])
        .assert(69, &["5 of 15 events are stored in the ledger for certain"]);
    service.kill();

    let service = home.start();
    service.wait_until_ready();
    assert!(is_importing(&service), "it is remembered across a kill");
    let now = r#"{"event":"Item Ordered","entities":{}}"#.to_owned();
    append(&home, std::slice::from_ref(&now), &service.url(), &[])
        .assert(1, &["is being imported", LEDGER, id_of(&lines[4])]);
    // All events of this file are already imported, so the command has nothing to send. It does not
    // complete the import, because the file ends before the last part.
    for count in [5, 3] {
        let ended = import(&home, &lines[..count], &service.url(), &[]);
        ended.assert(1, &["is not complete", LEDGER, "after event 5"]);
        assert!(is_importing(&service));
    }
    import(&home, &lines, &service.url(), &[]).assert(0, &[]);
    assert!(!is_importing(&service));
    import(&home, &lines[..5], &service.url(), &[]).assert(0, &[]);
    assert_eq!(
        ids(&service, LEDGER),
        lines.iter().map(|line| id_of(line)).collect::<Vec<_>>()
    );
    append(&home, &[now], &service.url(), &[]).assert(0, &[]);
    assert_eq!(ids(&service, LEDGER).len(), lines.len() + 1);
}

#[test]
fn import_goes_on_through_a_service_that_is_killed_before_it_answers() {
    let (home, service) = start_with_ledger();
    let running = Arc::new(Mutex::new(Some(service)));
    let (there, data_dir) = (Arc::clone(&running), home.data_dir());
    let proxy = FaultyProxy::start(move |number, request| {
        let mut service = there.lock().unwrap();
        let answer = forward(service.as_ref().unwrap().address(), request);
        // Kill and restart the service after it has created the ledger, and again after an append.
        if number == 2 || number == 5 {
            service.take().unwrap().kill();
            let again = Service::start(idmint_testing::service::serve_from(&data_dir));
            again.wait_until_ready();
            *service = Some(again);
            return None;
        }
        Some(answer)
    });
    let lines = chain(14, LARGE);
    import(&home, &lines, &proxy.url(), &[]).assert(0, &["retrying"]);
    let service = running.lock().unwrap().take().unwrap();
    assert_eq!(
        ids(&service, LEDGER),
        lines.iter().map(|line| id_of(line)).collect::<Vec<_>>()
    );
}

#[test]
fn import_refuses_a_ledger_that_went_another_way_and_names_both() {
    let (home, service) = start_with_ledger();
    let (ours, theirs) = (chain(6, 1), chain(6, 2));
    import(&home, &theirs[..4], &service.url(), &[]).assert(0, &[]);
    import(&home, &ours, &service.url(), &[])
        .assert(1, &["have diverged", id_of(&theirs[3]), id_of(&ours[3])]);
    import(&home, &ours[..3], &service.url(), &[])
        .assert(1, &["have diverged", id_of(&theirs[3]), id_of(&ours[2])]);
    let again = import(&home, &theirs[..2], &service.url(), &[]);
    again.assert(0, &[]);
    assert!(
        again.out.contains("complete: 2 events")
            && again.out.contains("the ledger has 2 later events"),
        "{}",
        again.out
    );
    assert_eq!(ids(&service, LEDGER).len(), 4);

    // Another caller appends an event after the command has read the head of the ledger and before
    // its first append.
    let address = service.address();
    let elsewhere = serde_json::to_string(&json!({
        "ledger": LEDGER, "events": [{ "event": "between", "entities": {} }],
    }));
    let between = elsewhere.unwrap();
    let proxy = FaultyProxy::start(move |number, request| {
        if number == 2 {
            let head = "POST /ids/evently HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nidempotency-key: 1";
            let len = between.len();
            forward(
                address,
                format!("{head}\r\ncontent-length: {len}\r\n\r\n{between}").as_bytes(),
            );
        }
        Some(forward(address, request))
    });
    import(&home, &theirs, &proxy.url(), &[]).assert(
        1,
        &[
            "another writer appends to ledger aa77f99c",
            id_of(&theirs[3]),
        ],
    );
    assert_eq!(ids(&service, LEDGER).len(), 5);
}

#[test]
fn a_ledger_restored_from_an_older_copy_is_made_whole_by_import_and_no_id_repeats() {
    let (home, service) = start_with_ledger();
    let lines = chain(9, 1);
    let (database, copy) = (home.data_dir().join("idmint.redb"), home.path("copy.redb"));
    let newest = |ids: Vec<String>| {
        ids.iter()
            .map(|id| id.parse::<u64>().unwrap())
            .max()
            .unwrap()
    };
    import(&home, &lines[..4], &service.url(), &[]).assert(0, &[]);
    service.kill();
    std::fs::copy(&database, &copy).unwrap();

    let service = home.start();
    service.wait_until_ready();
    import(&home, &lines, &service.url(), &[]).assert(0, &[]);
    let before = newest(service.mint("snowflake?count=10"));
    service.kill();
    std::fs::remove_dir_all(home.data_dir()).unwrap();
    std::fs::create_dir(home.data_dir()).unwrap();
    std::fs::copy(&copy, &database).unwrap();

    run(home.serve()).assert(65, &["horizon"]);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let floor = EventTime::from_micros(
        (now + Duration::from_secs(4))
            .as_micros()
            .try_into()
            .unwrap(),
    )
    .unwrap();
    let mut command = home.serve();
    command.args(["--floor", &floor.to_string()]);
    let service = Service::start(command);
    service.wait_until_ready();
    assert_eq!(ids(&service, LEDGER).len(), 4);
    let ended = import(&home, &lines, &service.url(), &[]);
    ended.assert(0, &[]);
    assert!(
        ended
            .out
            .contains("10 events of ledger aa77f99c, 6 of them imported now"),
        "{}",
        ended.out
    );
    assert_eq!(
        ids(&service, LEDGER),
        lines.iter().map(|line| id_of(line)).collect::<Vec<_>>()
    );
    let after: Vec<String> = service.mint("snowflake?count=10");
    assert!(
        after.iter().all(|id| id.parse::<u64>().unwrap() > before),
        "{after:?} are not above {before}"
    );
}
