//! Checks records on a real etcd. Several appends to one ledger must share a transaction, and
//! reports of one conjunction at three nodes must get the same id.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use idmint_core::id::{FormatDefinition, PRESETS};
use idmint_core::time::{Clock, UnixTime};
use idmint_fleet::{FleetRecords, KnownFleet};
use idmint_records::conjunction::{GroupRequest, GroupedMinter, PairOrder, Report, SentReport};
use idmint_records::ledger::{
    Event, EventId, KeyHash, LedgerId, LedgerRequest, Link, RequestMark, digest_of,
};
use idmint_storage::{FailureKind, Namespace, RecordError, RecordStore, RecordWriterHandle};
use tokio::runtime::Runtime;

use super::client::settings;
use super::etcd_cluster::EtcdCluster;
use super::lengths::short_or_whole;
use idmint_testing::service::{LONG, until};

const CALLERS: usize = 120;

/// Three nodes, each with its own client of etcd.
struct Nodes {
    keepers: [Arc<RecordWriterHandle>; 3],
    records: Arc<dyn RecordStore>,
}

impl Nodes {
    fn on(cluster: &EtcdCluster) -> Nodes {
        let records = |_| -> Arc<dyn RecordStore> {
            let coordinator = idmint_fleet::connect(&settings(&cluster.endpoints())).unwrap();
            let meta = Arc::<KnownFleet>::default();
            Arc::new(FleetRecords::new(
                coordinator,
                &Namespace::default(),
                meta,
                Arc::default(),
                rand::random(),
            ))
        };
        let keeper = |node| {
            Arc::new(RecordWriterHandle::start(
                records(node),
                Arc::new(Clock::system()),
                None,
            ))
        };
        Nodes {
            keepers: [0, 1, 2].map(keeper),
            records: records(3),
        }
    }

    /// Reads the whole chain of a ledger.
    fn chain(&self, ledger: LedgerId) -> Vec<Link> {
        until("etcd answers in time", || {
            match self.records.chain(ledger, None, usize::MAX) {
                Ok(chain) => Some(chain),
                Err(error) if error.failure_kind() == FailureKind::Unreachable => None,
                Err(error) => panic!("{error}"),
            }
        })
    }
}

fn event(name: &str) -> Event {
    Event::from_json(format!(r#"{{"event":"{name}","entities":{{}}}}"#).as_bytes()).unwrap()
}

/// Creates a ledger for one test.
async fn create(nodes: &Nodes) -> LedgerId {
    let request = || {
        let genesis = event("genesis");
        let mark = RequestMark {
            key: KeyHash::of(None, "genesis"),
            digest: digest_of(std::slice::from_ref(&genesis), None),
        };
        LedgerRequest::Create {
            genesis,
            mark: Some(mark),
            import: None,
        }
    };
    until_acknowledged(nodes, 0, request).await.ledger()
}

fn request(ledger: LedgerId, key: &str) -> LedgerRequest {
    let events = vec![event(key)];
    let mark = RequestMark {
        key: KeyHash::of(Some(ledger), key),
        digest: digest_of(&events, None),
    };
    LedgerRequest::Append {
        ledger,
        events,
        expected_previous: None,
        mark,
        import: None,
    }
}

/// Repeats a request until it is acknowledged, and returns the id of its first event. Uses the next
/// node for each attempt.
async fn until_acknowledged(
    nodes: &Nodes,
    first: usize,
    request: impl Fn() -> LedgerRequest,
) -> EventId {
    let begun = Instant::now();
    for node in first.. {
        let request = request();
        assert!(begun.elapsed() < LONG, "{request:?} is never acknowledged");
        match nodes.keepers[node % 3].append(request).await {
            Ok(appended) => return appended.links[0].id,
            Err(
                RecordError::Unreachable(_)
                | RecordError::Unknown
                | RecordError::Unavailable(_)
                | RecordError::Busy,
            ) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("a loop without an end")
}

/// Starts callers that append one event after another, `count` events in total. Returns each
/// idempotency key with the id that was acknowledged.
fn append_for(
    runtime: &Runtime,
    nodes: &Arc<Nodes>,
    ledger: LedgerId,
    count: usize,
) -> Vec<tokio::task::JoinHandle<Vec<(String, EventId)>>> {
    let caller = |caller: usize| {
        let nodes = Arc::clone(nodes);
        runtime.spawn(async move {
            let mut acknowledged = Vec::new();
            for at in 0..count / CALLERS {
                let key = format!("{caller}-{at}");
                let id = until_acknowledged(&nodes, caller, || request(ledger, &key)).await;
                acknowledged.push((key, id));
            }
            acknowledged
        })
    };
    (0..CALLERS).map(caller).collect()
}

/// Asserts that the chain contains each acknowledged append exactly once with its acknowledged id,
/// and no other event.
fn assert_exact(nodes: &Nodes, ledger: LedgerId, acknowledged: Vec<(String, EventId)>) {
    let chain = nodes.chain(ledger);
    let ids = chain.iter().map(|link| link.id);
    assert_eq!(
        chain,
        Link::chain(chain[0].previous, 1, ids).collect::<Vec<_>>(),
        "one chain"
    );
    let told: HashMap<EventId, String> = acknowledged
        .iter()
        .map(|(key, id)| (*id, key.clone()))
        .collect();
    assert_eq!(told.len(), acknowledged.len(), "no id was told twice");
    assert!(
        chain[1..].iter().all(|link| told.contains_key(&link.id)),
        "nothing that nobody asked for"
    );
    assert_eq!(
        chain.len() - 1,
        acknowledged.len(),
        "none lost, none doubled"
    );
}

#[test]
fn appends_to_one_ledger_share_transactions() {
    const APPENDS: usize = 12_000;
    for members in [1, 3] {
        let cluster = EtcdCluster::start(members);
        let runtime = Runtime::new().unwrap();
        let Nodes {
            keepers: [one, ..],
            records,
        } = Nodes::on(&cluster);
        // All callers use the same node, because several nodes would compete for the head (last
        // event) of the ledger.
        let nodes = Arc::new(Nodes {
            keepers: [Arc::clone(&one), Arc::clone(&one), one],
            records,
        });
        let ledger = runtime.block_on(create(&nodes));
        let begun = Instant::now();
        let callers = append_for(&runtime, &nodes, ledger, APPENDS);
        let acknowledged: Vec<_> = callers
            .into_iter()
            .flat_map(|one| runtime.block_on(one).unwrap())
            .collect();
        let seconds = begun.elapsed().as_secs_f64();
        let (revisions, bytes) = (cluster.revision(), bytes_of(&cluster));
        println!(
            "{members} members: {APPENDS} appends in {seconds:.1} s, {:.0} a second, {revisions} transactions, {bytes} bytes",
            f64::from(u32::try_from(APPENDS).unwrap()) / seconds
        );
        assert!(
            revisions < u64::try_from(APPENDS / 4).unwrap(),
            "{revisions} transactions"
        );
        assert_exact(&nodes, ledger, acknowledged);
    }
}

/// Returns the size of the first member's database in bytes.
fn bytes_of(cluster: &EtcdCluster) -> u64 {
    let status = cluster.etcdctl(&["endpoint", "status", "--write-out=json"]);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    status[0]["Status"]["dbSize"].as_u64().expect("a size")
}

#[test]
fn reports_of_one_conjunction_get_one_id_on_whatever_node_they_arrive() {
    const AT_ONCE: usize = 10;
    let conjunctions = short_or_whole(60, 10_000);
    let begun = Instant::now();
    let cluster = EtcdCluster::start(3);
    let runtime = Runtime::new().unwrap();
    let nodes = Arc::new(Nodes::on(&cluster));
    let preset = PRESETS
        .iter()
        .find(|preset| preset.name == "conjunction")
        .unwrap();
    let format = FormatDefinition::from_toml(preset.name, preset.toml)
        .unwrap()
        .compile(preset.name)
        .unwrap();
    let minter = Arc::new(GroupedMinter::new(Arc::new(format), PairOrder::Reported));
    // Send 32 concurrent reports of one conjunction. Their times differ by at most 0.8 s.
    let report = |object: u64, at: i128| {
        let tca = UnixTime::from_nanos(1_900_000_000_000_000_000 + (at - 16) * 25_000_000);
        let sent_report = SentReport::new(Report::new(tca, object, 100_000).unwrap());
        let (request, nodes) = (
            GroupRequest::new(Arc::clone(&minter), &[sent_report]).unwrap(),
            Arc::clone(&nodes),
        );
        runtime.spawn(async move {
            let mut was_unknown = false;
            loop {
                match nodes.keepers[usize::try_from(at % 3).unwrap()]
                    .group(request.clone())
                    .await
                {
                    Ok(grouped) => return (grouped[0], was_unknown),
                    Err(
                        RecordError::Unavailable(_)
                        | RecordError::Unreachable(_)
                        | RecordError::Busy,
                    ) => {}
                    Err(RecordError::Unknown) => was_unknown = true,
                    Err(error) => panic!("{error}"),
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
    };
    let mut ids = HashSet::new();
    for first in (1..=conjunctions).step_by(AT_ONCE) {
        let objects = (first..=conjunctions).take(AT_ONCE);
        let reports: Vec<Vec<_>> = objects
            .map(|object| (0..32).map(|at| report(object, at)).collect())
            .collect();
        for reports in reports {
            let (grouped, were_unknown): (Vec<_>, Vec<bool>) = reports
                .into_iter()
                .map(|report| runtime.block_on(report).unwrap())
                .unzip();
            assert!(
                grouped.iter().all(|one| one.id == grouped[0].id),
                "{grouped:?}"
            );
            let created = grouped
                .iter()
                .filter(|one| one.created == Some(true))
                .count();
            // A report whose outcome was unknown may have created the conjunction. When the report
            // was repeated, the conjunction already existed.
            let is_missing = created == 0 && were_unknown.contains(&true);
            assert!(created == 1 || is_missing, "{grouped:?}");
            assert!(
                ids.insert(grouped[0].id),
                "{grouped:?}: another conjunction has that id"
            );
        }
    }
    println!(
        "{conjunctions} conjunctions of 32 reports each have {} ids, in {:?}",
        ids.len(),
        begun.elapsed()
    );
    assert_eq!(u64::try_from(ids.len()).unwrap(), conjunctions);
}
