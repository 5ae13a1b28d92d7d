//! Moves a single node into a fleet on a real etcd (`idmint fleet adopt`). The single node mints
//! and appends until it is killed. The fleet must then contain exactly the acknowledged events, and
//! must not mint any id again.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use idmint_core::time::UnixTime;
use serde_json::json;

use super::etcd_cluster::EtcdCluster;
use super::fencing::run_until_answered;
use super::folders::wait_until_minted;
use super::nodes::{Minted, Minter, assert_all_different, node, starting};
use super::restore::mint_when_ready;
use crate::appending::{Appender, Place, Seen, assert_all_is_kept, begin};
use idmint_testing::http1::{Answer, Client, post_json, request};
use idmint_testing::ids::{SEQUENCED, SNOWFLAKE};
use idmint_testing::service::{Home, Service, Signal, StopOnDrop, idmint, run, until};

/// The number of slots of the fleet. It is equal to the number of worker numbers of the single
/// node, so that each of these belongs to one slot.
pub(super) const SLOTS: u32 = 8;

/// The time by which the single node mints ahead of the clock. A slot of the fleet that started at
/// its own clock would mint the same ids again.
const AHEAD: Duration = Duration::from_secs(25);

/// The number of ledgers that nobody uses. They make an adoption long enough to be interrupted.
const BYSTANDERS: usize = 1_000;

/// Starts a single node with several lanes (worker numbers) that mints ahead of its clock.
pub(super) fn single_node(home: &Home) -> Service {
    let floor = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        + AHEAD;
    let floor = UnixTime::from_nanos(floor.as_nanos().try_into().unwrap()).to_string();
    let mut command = home.serve_with("mint.batch_max = 10000");
    command.args(["--run-ahead", "--floor", &floor]);
    let service = Service::start(command);
    service.wait_until_ready();
    // Resume the series of numbers. They wait for an operator after a start with `--floor`, and a
    // folder with waiting series is not adopted.
    let line = "POST /numbers/*/resume";
    let resumed = Client::connect(service.address()).exchange(request(line, "", ""));
    assert_eq!(resumed.status, 200, "{}", resumed.text());
    service
}

pub(super) fn adopt(home: &Home, etcd: &EtcdCluster) -> Command {
    let (config, endpoints) = (home.path("fleet.toml"), etcd.endpoints());
    let text =
        format!("storage.engine = 'etcd'\netcd.endpoints = {endpoints:?}\nworker.slots = {SLOTS}");
    fs::write(&config, text).unwrap();
    let mut command = idmint(&["fleet", "adopt", "--new-fleet"]);
    command.arg(home.data_dir()).arg("--config").arg(config);
    command
}

/// Sends a request, and repeats it while the status is 503. A node may not know yet that another
/// node has registered its formats with the fleet.
fn exchange(service: &Service, target: &str, headers: &str, body: &str) -> Answer {
    until("it is answered", || {
        let answer = Client::connect(service.address()).exchange(post_json(target, headers, body));
        Some(answer).filter(|answer| answer.status != 503)
    })
}

/// Creates `BYSTANDERS` ledgers, and returns the id of the last one.
fn create_bystanders(service: &Service) -> String {
    let mut last = String::new();
    let mut client = Client::connect(service.address());
    for number in 0..BYSTANDERS {
        let event = json!({ "event": "Bystander", "entities": {}, "data": number }).to_string();
        let answer = client.exchange(post_json(
            "/ledgers",
            &format!("idempotency-key: by-{number}\r\n"),
            &event,
        ));
        assert_eq!(answer.status, 201, "{}", answer.text());
        last = answer.json()["ledger"].as_str().unwrap().to_owned();
    }
    last
}

/// Appends one event. All such requests use the same idempotency key.
fn append_once(service: &Service, ledger: &str) -> Answer {
    let body =
        json!({ "ledger": ledger, "events": [{ "event": "Once", "entities": {} }] }).to_string();
    exchange(service, "/ids/evently", "idempotency-key: once\r\n", &body)
}

/// Checks that a node of a fleet refuses requests for records, because an adoption is incomplete.
fn assert_refuses_records(node: &Service, ledger: &str) {
    node.log_once_it_says("has not adopted all records");
    let refused = node.get(&format!("/ledgers/{ledger}"));
    assert_eq!(refused.status, 503, "{}", refused.text());
}

fn ledgers_in(etcd: &EtcdCluster) -> usize {
    etcd.etcdctl(&[
        "get",
        "--prefix",
        "--keys-only",
        "/idmint/v1/default/ledger/",
    ])
    .split_whitespace()
    .count()
}

fn report(service: &Service, object: u64) -> serde_json::Value {
    let body = json!({ "tca": "2040-01-01T00:00:00.25Z", "primary": object, "secondary": 99_999 })
        .to_string();
    let answer = exchange(service, "/ids/conjunction", "", &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["details"][0].clone()
}

/// Mints payment ids until several lanes (worker numbers) are used. A lane has 1 296 ids per
/// second. The seventh digit of a payment id is the lane.
fn mint_by_several_lanes(service: &Service) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    until("several lanes are used", || {
        let answer = service.post("/ids/payment?count=2000");
        ids.extend(
            answer
                .text()
                .lines()
                .filter(|_| answer.status == 200)
                .map(str::to_owned),
        );
        let lanes: BTreeSet<u8> = ids.iter().map(|id| id.as_bytes()[6]).collect();
        (lanes.len() > 3).then_some(())
    });
    ids
}

/// Mints and appends for a while, and then kills the node while callers are still minting.
fn killed_while_working(
    single: Service,
    ledgers: &[crate::appending::Begun],
) -> (Vec<Minted>, Vec<Seen>) {
    let minters: Vec<Minter> = (0..3).map(|_| Minter::at(&single)).collect();
    let place = Place::of(&single);
    let (granted, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let seen = std::thread::scope(|scope| {
        let caller = |number| {
            let caller = Appender::new(number, &place, ledgers);
            scope.spawn(|| caller.run(&granted, &stop))
        };
        let callers: Vec<_> = (0..4).map(caller).collect();
        let running = StopOnDrop(&stop);
        until("appends are acknowledged", || {
            (granted.load(Ordering::Relaxed) >= 400).then_some(())
        });
        // Stop the callers that append before the node is killed. An append without a response
        // could only be repeated on this node, which is never started again.
        drop(running);
        callers
            .into_iter()
            .map(|caller| caller.join().expect("the caller found nothing wrong"))
            .collect()
    });
    single.kill();
    (minters.into_iter().map(Minter::stop).collect(), seen)
}

/// Starts an adoption, and kills it as soon as the fleet has a ledger. A thousand ledgers take much
/// longer than that, because each ledger waits for a disk.
///
/// Returns the line that says that the floor is raised. Returns `None` if the command ended before
/// it was killed, because etcd did not respond in time.
fn kill_adoption(home: &Home, etcd: &EtcdCluster) -> Option<String> {
    let mut adoption = adopt(home, etcd).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(adoption.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let raised = said.find(|line| line.contains("is used below"));
    until("a ledger is adopted", || {
        (ledgers_in(etcd) > 0 || adoption.try_wait().unwrap().is_some()).then_some(())
    });
    adoption.kill().unwrap();
    let is_killed = adoption.wait().unwrap().code().is_none();
    raised.filter(|_| is_killed)
}

#[test]
fn a_single_node_is_adopted_through_a_kill_and_nothing_of_it_is_lost_or_minted_again() {
    let etcd = EtcdCluster::start(1);
    let home = Home::new();
    let single = single_node(&home);
    let ledgers = begin(&single, 3);
    let bystander = create_bystanders(&single);
    let once = append_once(&single, &bystander);
    assert_eq!(once.status, 201, "{}", once.text());
    let reported: Vec<_> = (1..=20).map(|object| report(&single, object)).collect();
    let running = run(adopt(&home, &etcd));
    running.assert(75, &["is in use by process"]);
    let mut payments = mint_by_several_lanes(&single);
    let (mut minted, seen) = killed_while_working(single, &ledgers);
    let highest = *minted
        .iter()
        .flat_map(|minted| &minted.ids)
        .max()
        .expect("it has minted");

    let raised = until("an adoption is killed", || kill_adoption(&home, &etcd));
    let there = ledgers_in(&etcd);
    assert!(
        (1..BYSTANDERS).contains(&there),
        "{there} ledgers: it was not killed in the midst of them"
    );
    run(home.serve()).assert(
        78,
        &[
            "is being adopted by the fleet default",
            "idmint fleet adopt",
        ],
    );

    let early_home = Home::new();
    let early = starting(&early_home, &etcd, SLOTS);
    assert_refuses_records(&early, &bystander);
    early.send(Signal::TERM);
    early.wait();

    let second = run_until_answered(|| adopt(&home, &etcd));
    second.assert(0, &[]);
    println!("{raised}\n{}", second.out);
    assert!(
        second.out.contains("resuming the adoption")
            && second.out.contains("were in the fleet before")
    );
    assert_eq!(ledgers_in(&etcd), BYSTANDERS + ledgers.len());
    run(home.serve()).assert(
        78,
        &["was adopted by the fleet default", &etcd.endpoints()[0]],
    );
    let revision = etcd.revision();
    let third = run_until_answered(|| adopt(&home, &etcd));
    third.assert(0, &[]);
    assert!(
        third.out.contains("was adopted by fleet default before"),
        "{}",
        third.out
    );
    assert_eq!(etcd.revision(), revision, "nothing is written");

    let homes = [Home::new(), Home::new()];
    let nodes = [0, 1].map(|number| node(&homes[number], &etcd, SLOTS));
    let minters = nodes.each_ref().map(Minter::at);
    for (object, before) in (1..=20).zip(&reported) {
        let again = report(&nodes[0], object);
        assert_eq!(
            (&again["id"], &again["created"]),
            (&before["id"], &json!(false)),
            "{again}"
        );
    }
    let again = append_once(&nodes[1], &bystander);
    assert_eq!(
        (again.status, again.json()["ids"].take()),
        (200, once.json()["ids"].take()),
        "{}",
        again.text()
    );
    assert_all_is_kept(&nodes[1], ledgers, seen);
    nodes.iter().for_each(wait_until_minted);
    let of_fleet: Vec<Minted> = minters.into_iter().map(Minter::stop).collect();
    let lowest = *of_fleet
        .iter()
        .flat_map(|minted| &minted.ids)
        .min()
        .expect("they have minted");
    let time = |id: u64| SEQUENCED[SNOWFLAKE].unix_ms(u128::from(id));
    assert!(
        time(lowest) > time(highest),
        "{lowest} is not after {highest}"
    );
    minted.extend(of_fleet);
    let last = payments.iter().max().expect("it has minted").clone();
    for node in &nodes {
        let of_node = mint_when_ready(node, "payment?count=100");
        assert!(
            of_node.iter().all(|id| id[..6] > last[..6]),
            "{of_node:?} is not after {last}"
        );
        payments.extend(of_node);
    }
    let count = payments.len();
    assert_eq!(
        payments.into_iter().collect::<BTreeSet<String>>().len(),
        count,
        "a payment twice"
    );
    println!("{} ids, none twice", assert_all_different(minted));
}
