//! Tests the Rust client, `idmint_client::Ids`, in this process.

use std::fs;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use idmint_client::{Ids, IdsOptions};
use serde_json::{Value, json};

use super::rounds::{Minting, THREADS, VALIDITY_SECONDS, assert_mints_while_services_are_killed};
use super::secured::Secured;
use idmint_testing::service::{idmint, run};

struct Threads {
    ids: Arc<Ids>,
    ids_a_round: usize,
    running: Vec<JoinHandle<Vec<u8>>>,
}

impl Threads {
    fn new(urls: &str, ids_a_round: usize) -> Threads {
        let urls: Vec<&str> = urls.split(',').collect();
        let options = IdsOptions {
            prefetch_validity: Duration::from_secs(VALIDITY_SECONDS),
            timeout: Duration::from_secs(120),
            ..IdsOptions::default()
        };
        Threads {
            ids: Arc::new(Ids::new(&urls, "snowflake", options).unwrap()),
            ids_a_round,
            running: Vec::new(),
        }
    }
}

impl Minting for Threads {
    fn begin(&mut self) {
        let share = |thread: usize| {
            self.ids_a_round * (thread + 1) / THREADS - self.ids_a_round * thread / THREADS
        };
        let mint = |thread: usize| {
            let (ids, count) = (Arc::clone(&self.ids), share(thread));
            thread::spawn(move || {
                let mut records = Vec::with_capacity(16 * count);
                for _ in 0..count {
                    let asked = SystemTime::now()
                        .duration_since(UNIX_EPOCH)
                        .unwrap()
                        .as_millis();
                    let id = u64::try_from(ids.next().unwrap()).unwrap();
                    records.extend(id.to_be_bytes());
                    records.extend(u64::try_from(asked).unwrap().to_be_bytes());
                }
                records
            })
        };
        self.running = (0..THREADS).map(mint).collect();
    }

    fn read_records(&mut self, bytes: &mut [u8]) {
        let records: Vec<u8> = self
            .running
            .drain(..)
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        bytes.copy_from_slice(&records);
    }

    fn end(self) {}
}

#[test]
fn threads_get_each_id_once_while_services_are_killed() {
    assert_mints_while_services_are_killed(Threads::new);
}

#[test]
fn errors_say_what_to_mend_and_texts_are_those_of_the_service() {
    let secured = Secured::start();
    let [port, token, reader, tls_port, authority, genesis, minter] = secured.arguments();
    let [plain, tls] = [("http", port), ("https", tls_port)]
        .map(|(scheme, port)| format!("{scheme}://127.0.0.1:{port}"));
    let open = |url: &str, format: &str, token: &str, query: &[(&str, &str)]| {
        let own = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        let token = (!token.is_empty()).then(|| format!(" {token}\n"));
        let options = IdsOptions {
            token,
            timeout: Duration::from_secs(60),
            ..IdsOptions::default()
        };
        Ids::new(
            &[url],
            format,
            IdsOptions {
                query: query.iter().map(own).collect(),
                ..options
            },
        )
        .unwrap()
    };
    for (format, token, status, words) in [
        ("snowflake", "", 401, "set token"),
        ("snowflake", &*reader, 403, "http.tokens"),
        ("invoice", &*token, 404, "invoice"),
        ("siq", &*token, 422, "this works: POST /ids/siq?type="),
    ] {
        let ids = open(&plain, format, token, &[]);
        for error in [ids.next().unwrap_err(), ids.next_text().unwrap_err()] {
            assert_eq!(error.status(), Some(status), "{error}");
            assert!(
                error.to_string().contains(words) && !error.is_transient(),
                "{error}"
            );
        }
    }
    assert_eq!(
        open(&plain, "uuid7", &token, &[])
            .next()
            .unwrap_err()
            .status(),
        Some(406)
    );

    for (format, query, length) in [
        ("snowflake", None, 19),
        ("snowflake", Some(("encoding", "hex_padded")), 16),
        ("snowflake", Some(("encoding", "base64")), 12),
        ("payment", None, 9),
        ("siq", Some(("type", "message")), 28),
        ("uuid7", Some(("encoding", "hex_padded")), 32),
    ] {
        for token in [&token, &minter] {
            let ids = open(&plain, format, token, query.as_slice());
            let [first, second] = [(); 2].map(|()| ids.next_text().unwrap());
            assert!(
                first != second && first.len() == length && second.len() == length,
                "{first} {second}"
            );
            let read = open(&plain, format, &reader, &[]).decode(&first).unwrap();
            let formats: Vec<&Value> = read["matches"]
                .as_array()
                .unwrap()
                .iter()
                .map(|read| &read["format"])
                .collect();
            assert!(
                formats.iter().any(|read| **read == format),
                "{first}: {formats:?}"
            );
        }
    }

    let authorities = Some(fs::read(authority).unwrap());
    let options = IdsOptions {
        authorities,
        timeout: Duration::from_secs(60),
        ..IdsOptions::default()
    };
    let trusting = Ids::new(&["127.0.0.1:1", &tls], "snowflake", options).unwrap();
    assert!(trusting.next().unwrap() < trusting.next().unwrap());
    let untrusting = Ids::new(
        &[tls],
        "snowflake",
        IdsOptions {
            timeout: Duration::from_secs(60),
            ..IdsOptions::default()
        },
    );
    let untrusted = untrusting.unwrap().next().unwrap_err();
    assert!(
        !untrusted.is_transient() && untrusted.to_string().contains("set authorities"),
        "{untrusted} {untrusted:?}"
    );

    let ids = open(&plain, "payment", &token, &[]);
    let texts = ids.mint(1_000).unwrap();
    assert_eq!(ids.decode(&texts[0]).unwrap()["id"], texts[0]);
    assert_eq!(ids.decode("no id at all").unwrap_err().status(), Some(404));
    let file = secured.home.path("token");
    fs::write(&file, &token).unwrap();
    let create = idmint(&[
        "ledger",
        "create",
        &genesis,
        "--server",
        &plain,
        "--token-file",
        file.to_str().unwrap(),
    ]);
    let created = run(create);
    created.assert(0, &[]);
    let ledger = &created.out[..8];
    let event = json!({ "event": "Paid", "entities": {} });
    let appended = ids.append(ledger, &[event.clone(), event]).unwrap();
    assert!(
        appended.len() == 2 && appended[0] != appended[1],
        "{appended:?}"
    );
}
