//! Checks the client of etcd with real etcd members. The tests cover its requests, and its errors
//! while members fail.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use idmint_fleet::{
    Compare, Coordinator, CoordinatorError, Lease, Outcome, Range, Revision, Transaction, Write,
};
use idmint_storage::{EtcdAccess, EtcdEndpoint, EtcdSettings, EtcdTls, Namespace};
use rustix::process::Signal;

use super::etcd_cluster::EtcdCluster;
use super::nodes::until_within;
use idmint_testing::authority::Authority;
use idmint_testing::service::{Home, LONG, until};

/// The maximum duration of a request. The timeout of the client is 1 s, so only a request without a
/// timeout takes longer.
const REQUEST_MAX: Duration = Duration::from_secs(30);

pub(super) fn settings(endpoints: &[String]) -> EtcdSettings {
    let endpoints = endpoints
        .iter()
        .map(|endpoint| EtcdEndpoint::parse(endpoint).unwrap())
        .collect();
    EtcdSettings {
        endpoints,
        namespace: Namespace::default(),
        access: None,
        quota: 2 << 30,
        tls: None,
    }
}

fn client_of(cluster: &EtcdCluster) -> Arc<dyn Coordinator> {
    idmint_fleet::connect(&settings(&cluster.endpoints())).unwrap()
}

fn put(key: &str, value: &str, lease: Option<Lease>) -> Write {
    Write::Put {
        key: key.to_owned(),
        value: value.as_bytes().to_vec(),
        lease,
    }
}

/// Returns a transaction that creates a key unless the key exists.
fn create(key: &str) -> Transaction {
    Transaction {
        compare: vec![Compare::Created(key.to_owned(), Revision::ABSENT)],
        write: vec![put(key, "1", None)],
        otherwise: vec![Range::one(key)],
        ..Transaction::default()
    }
}

/// Repeats a request until etcd responds in time, because a busy machine can delay a response for
/// longer than the client waits. The request must be one that may be done twice.
pub(super) fn answered<T>(
    mut request: impl FnMut() -> Result<T, CoordinatorError>,
) -> Result<T, CoordinatorError> {
    until_within(LONG, "etcd responds in time", || match request() {
        Err(CoordinatorError::NoAnswer(_) | CoordinatorError::NotSent(_)) => None,
        answer => Some(answer),
    })
}

fn is_there(client: &dyn Coordinator, key: &str) -> bool {
    let read = answered(|| client.read(&[Range::one(key)]));
    !read.unwrap().ranges[0].is_empty()
}

/// Creates keys until one is committed. Asserts that no request takes longer than [`REQUEST_MAX`].
/// Returns the key that was committed.
fn create_until_committed(client: &dyn Coordinator, name: &str) -> String {
    let begun = Instant::now();
    for failed in 0.. {
        assert!(begun.elapsed() < LONG, "somebody leads at last");
        let asked = Instant::now();
        let key = format!("/{name}/{failed}");
        let outcome = client.commit(&create(&key));
        assert!(asked.elapsed() < REQUEST_MAX, "{:?}", asked.elapsed());
        match outcome {
            Ok(Outcome::Committed(_)) => return key,
            Ok(refused) => panic!("nobody else creates it: {refused:?}"),
            Err(CoordinatorError::NoAnswer(_) | CoordinatorError::NotSent(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("a loop without an end")
}

#[test]
fn a_transaction_compares_and_writes_or_reads_what_there_is_instead() {
    for members in [1, 3] {
        // A request without a response may have been done, and then a repeated one is refused. So
        // start again with a new etcd.
        let checked = answered(|| {
            let cluster = EtcdCluster::start(members);
            compare_and_write(&*client_of(&cluster))
        });
        checked.unwrap();
    }
}

fn compare_and_write(client: &dyn Coordinator) -> Result<(), CoordinatorError> {
    let Outcome::Committed(created) = client.commit(&create("/a"))? else {
        panic!("it is new")
    };
    let created = created.revision;
    let Outcome::Refused(snapshot) = client.commit(&create("/a"))? else {
        panic!("it is there")
    };
    let entry = &snapshot.ranges[0][0];
    assert_eq!(
        (entry.key.as_str(), entry.value.as_slice()),
        ("/a", b"1".as_slice())
    );
    assert_eq!((entry.created, entry.modified), (created, created));

    let change = Transaction {
        compare: vec![Compare::Modified("/a".to_owned(), created)],
        write: vec![put("/a", "2", None), put("/b", "1", None)],
        then_read: vec![Range::prefix("/b"), Range::one("/a")],
        otherwise: Vec::new(),
    };
    let Outcome::Committed(written) = client.commit(&change)? else {
        panic!("nobody wrote meanwhile")
    };
    let changed = written.revision;
    assert!(changed > created);
    let found = |range: usize| {
        (
            written.ranges[range][0].value.as_slice(),
            written.ranges[range][0].modified,
        )
    };
    assert_eq!(
        (found(0), found(1)),
        ((b"1".as_slice(), changed), (b"2".as_slice(), changed)),
        "after the writes"
    );
    assert!(
        matches!(client.commit(&change)?, Outcome::Refused(_)),
        "the same bytes commit once"
    );

    let both = Range::prefix("/");
    let last = Range {
        count_max: 1,
        is_descending: true,
        ..both.clone()
    };
    let snapshot = client.read(&[both, last, Range::one("/none")])?;
    let keys = |range: usize| {
        snapshot.ranges[range]
            .iter()
            .map(|entry| entry.key.as_str())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (keys(0), keys(1), keys(2)),
        (vec!["/a", "/b", "/started"], vec!["/started"], vec![])
    );
    assert!(snapshot.revision >= changed);

    let many: Vec<Range> = (0..300)
        .map(|at| Range::one(["/a", "/b", "/none"][at % 3]))
        .collect();
    let snapshot = client.read(&many)?;
    assert_eq!(
        snapshot.ranges.iter().map(Vec::len).collect::<Vec<_>>(),
        [1, 1, 0].repeat(100)
    );

    let delete = Transaction {
        write: vec![Write::Delete("/b".to_owned())],
        ..Transaction::default()
    };
    assert!(matches!(client.commit(&delete)?, Outcome::Committed(_)));
    assert!(!is_there(client, "/b"));
    Ok(())
}

#[test]
fn a_lease_keeps_its_keys_for_as_long_as_it_is_kept_alive() {
    let cluster = EtcdCluster::start(1);
    let client = client_of(&cluster);
    // On a busy machine, the next three requests can take several seconds.
    let lease = answered(|| client.grant(Duration::from_secs(20))).unwrap();
    let held = Transaction {
        write: vec![put("/held", "1", Some(lease))],
        ..Transaction::default()
    };
    assert!(matches!(
        answered(|| client.commit(&held)).unwrap(),
        Outcome::Committed(_)
    ));
    assert!(answered(|| client.keep_alive(lease)).unwrap());
    assert!(is_there(&*client, "/held"));
    until("the lease has ended", || {
        (!is_there(&*client, "/held")).then_some(())
    });
    let is_kept = answered(|| client.keep_alive(lease)).unwrap();
    assert!(!is_kept, "there is none any more");
    let refused = answered(|| client.commit(&held)).unwrap_err();
    assert!(
        matches!(&refused, CoordinatorError::Refused(why) if why.contains("lease not found")),
        "{refused}"
    );
}

#[test]
fn where_nobody_listens_a_request_was_certainly_not_sent() {
    let cluster = EtcdCluster::start(3);
    let endpoints = cluster.endpoints();
    drop(cluster);
    let client = idmint_fleet::connect(&settings(&endpoints)).unwrap();
    let asked = Instant::now();
    let refused = client.commit(&create("/a")).unwrap_err();
    assert!(matches!(refused, CoordinatorError::NotSent(_)), "{refused}");
    let refused = client.read(&[Range::one("/a")]).unwrap_err();
    assert!(matches!(refused, CoordinatorError::NotSent(_)), "{refused}");
    assert!(asked.elapsed() < 2 * REQUEST_MAX);
}

#[test]
fn a_member_that_is_stopped_costs_a_request_and_then_the_next_one_answers() {
    let cluster = EtcdCluster::start(3);
    let client = client_of(&cluster);
    let before = create_until_committed(&*client, "before");
    // Stop the first endpoint, which the client tries first, and then stop the leader. The first
    // endpoint is only sometimes the leader.
    let leader = cluster.leader();
    for (round, stopped) in [0, leader].into_iter().enumerate() {
        cluster.signal(stopped, Signal::STOP);
        create_until_committed(&*client, &format!("stopped-{round}"));
        let mut slow = 0;
        for read in 0..200 {
            let asked = Instant::now();
            assert!(
                is_there(&*client, &before),
                "read {read}: another member answers"
            );
            assert!(asked.elapsed() < REQUEST_MAX);
            slow += usize::from(asked.elapsed() > Duration::from_millis(500));
        }
        // On a busy machine, some reads are slow anyway. If every read tried the stopped member
        // first, all of them would be slow.
        assert!(
            slow <= 50,
            "{slow} of 200 reads waited for a member that is stopped"
        );
        cluster.signal(stopped, Signal::CONT);
        create_until_committed(&*client, &format!("continued-{round}"));
    }
}

#[test]
fn members_that_are_killed_are_left_and_without_a_quorum_nothing_is_committed() {
    let mut cluster = EtcdCluster::start(3);
    let client = client_of(&cluster);
    let before = create_until_committed(&*client, "before");
    let leader = cluster.leader();
    cluster.kill(leader);
    let one_killed = create_until_committed(&*client, "one-killed");

    let other = (leader + 1) % 3;
    cluster.kill(other);
    for attempt in 0..5 {
        let asked = Instant::now();
        let outcome = client.commit(&create(&format!("/no-quorum/{attempt}")));
        assert!(
            matches!(
                outcome,
                Err(CoordinatorError::NoAnswer(_) | CoordinatorError::NotSent(_))
            ),
            "{outcome:?}"
        );
        assert!(asked.elapsed() < REQUEST_MAX);
    }
    let unread = client.read(&[Range::one(&before)]).unwrap_err();
    assert!(
        matches!(
            unread,
            CoordinatorError::NoAnswer(_) | CoordinatorError::NotSent(_)
        ),
        "no stale read: {unread}"
    );

    cluster.restart(other);
    create_until_committed(&*client, "quorum-again");
    assert!(
        is_there(&*client, &before) && is_there(&*client, &one_killed),
        "what was committed is kept"
    );
}

#[test]
fn a_member_without_space_says_that_it_is_full_and_takes_more_when_there_is_room() {
    let quota = ["--quota-backend-bytes=16777216".to_owned()];
    let cluster = EtcdCluster::start_with(1, "http", &quota, &[]);
    let client = client_of(&cluster);
    let fill = |at: usize| {
        let value = vec![7; 1024 * 1024];
        let key = format!("/fill/{}", at % 2);
        client.commit(&Transaction {
            write: vec![Write::Put {
                key,
                value,
                lease: None,
            }],
            ..Transaction::default()
        })
    };
    let full = (0..64)
        .find_map(|at| answered(|| fill(at)).err())
        .expect("it is full at last");
    assert!(matches!(full, CoordinatorError::Full(_)), "{full}");
    let refused = answered(|| client.commit(&create("/a"))).unwrap_err();
    assert!(matches!(refused, CoordinatorError::Full(_)), "{refused}");
    assert!(
        is_there(&*client, "/fill/0"),
        "what is there is read all the same"
    );

    let revision = answered(|| client.read(&[Range::one("/a")]))
        .unwrap()
        .revision
        .0
        .to_string();
    cluster.etcdctl(&["compact", &revision]);
    cluster.etcdctl(&["defrag"]);
    cluster.etcdctl(&["alarm", "disarm"]);
    create_until_committed(&*client, "a");
}

#[test]
fn etcd_is_asked_by_tls_and_as_a_user() {
    let home = Home::new();
    let [(ours, ca), (_, stranger)] = ["ours", "stranger"].map(|name| {
        let (authority, file) = (Authority::new(name), home.path(&format!("{name}.pem")));
        fs::write(&file, &authority.pem).unwrap();
        (authority, file)
    });
    let [certificate, key] = ours.sign(&["localhost", "127.0.0.1"]).write(&home, "etcd");
    let flag = |name: &str, path: &PathBuf| format!("--{name}={}", path.display());
    let args = [
        flag("cert-file", &certificate),
        flag("key-file", &key),
        flag("trusted-ca-file", &ca),
        "--client-cert-auth=true".to_owned(),
    ];
    let etcdctl = [
        flag("cacert", &ca),
        flag("cert", &certificate),
        flag("key", &key),
    ];
    let cluster = EtcdCluster::start_with(1, "https", &args, &etcdctl);
    for command in [
        ["user", "add", "root:secret"].as_slice(),
        &["user", "add", "idmint:password"],
        &["role", "add", "idmint"],
        &[
            "role",
            "grant-permission",
            "idmint",
            "readwrite",
            "/idmint/",
            "--prefix",
        ],
        &["user", "grant-role", "idmint", "idmint"],
        &["user", "grant-role", "root", "root"],
        &["auth", "enable"],
    ] {
        cluster.etcdctl(command);
    }
    let connect = |ca: &PathBuf, password: &str| {
        let password_file = home.path(&format!("password-{password}"));
        fs::write(&password_file, format!("{password}\n")).unwrap();
        let settings = EtcdSettings {
            access: Some(EtcdAccess {
                user: "idmint".to_owned(),
                password_file,
            }),
            tls: Some(EtcdTls {
                ca: ca.clone(),
                identity: Some((certificate.clone(), key.clone())),
            }),
            ..settings(&cluster.endpoints())
        };
        idmint_fleet::connect(&settings).unwrap()
    };
    let client = connect(&ca, "password");
    create_until_committed(&*client, "idmint/a");
    let refused = answered(|| client.commit(&create("/other/a"))).unwrap_err();
    assert!(
        matches!(&refused, CoordinatorError::Denied(why) if why.contains("permission denied")),
        "{refused}"
    );

    let wrong = connect(&ca, "wrong");
    let refused = answered(|| wrong.commit(&create("/idmint/b"))).unwrap_err();
    assert!(
        matches!(&refused, CoordinatorError::Denied(why) if why.contains("authentication failed")),
        "{refused}"
    );
    let refused = connect(&stranger, "password")
        .commit(&create("/idmint/b"))
        .unwrap_err();
    assert!(matches!(refused, CoordinatorError::NotSent(_)), "{refused}");
    assert!(!is_there(&*client, "/idmint/b"));

    // The client must read the file with the password again.
    for command in [
        ["user", "delete", "idmint"].as_slice(),
        &["user", "add", "idmint:renewed"],
        &["user", "grant-role", "idmint", "idmint"],
    ] {
        cluster.etcdctl(&[&["--user=root:secret"], command].concat());
    }
    client.commit(&create("/idmint/b")).unwrap_err();
    fs::write(home.path("password-password"), "renewed\n").unwrap();
    until("the new password is used", || {
        client.commit(&create("/idmint/b")).ok()
    });

    let missing = EtcdTls {
        ca: home.path("none.pem"),
        identity: None,
    };
    let error = idmint_fleet::connect(&EtcdSettings {
        tls: Some(missing),
        ..settings(&cluster.endpoints())
    })
    .unwrap_err();
    assert!(error.to_string().contains("none.pem"), "{error}");
}
