//! Checks TLS and client certificates in operation. They are set up, rotated, and revoked, and
//! strangers try to misuse them.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use idmint_testing::authority::{Authority, Identity};
use idmint_testing::service::{Home, LONG, Service, Signal, idmint, run};
use idmint_testing::tls_client::TlsClient;

pub(crate) const BILLING: &str = "spiffe://example.com/billing";
pub(crate) const OPERATOR: &str = "operator.example.com";

/// The folder of a service with TLS, together with the authorities that sign the certificates of
/// the service and its clients.
pub(crate) struct Secured {
    pub(crate) home: Home,
    pub(crate) authority: Authority,
    pub(crate) clients: Authority,
}

impl Secured {
    pub(crate) fn new() -> Secured {
        let secured = Secured {
            home: Home::new(),
            authority: Authority::new("authority of services"),
            clients: Authority::new("authority of clients"),
        };
        secured.renew();
        fs::write(secured.home.path("ca.pem"), &secured.authority.pem).unwrap();
        fs::write(secured.home.path("clients.pem"), &secured.clients.pem).unwrap();
        secured
    }

    /// Writes a new certificate for the service into the folder.
    fn renew(&self) {
        self.authority
            .sign(&["localhost", "127.0.0.1"])
            .write(&self.home, "service");
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.home.path(name).display().to_string()
    }

    pub(crate) fn settings(&self) -> String {
        format!(
            "http.tls.certificate = '{}'\nhttp.tls.key = '{}'\n",
            self.path("service.crt"),
            self.path("service.key")
        )
    }

    /// Returns the settings of a service that requires client certificates. `scopes` are the scopes
    /// of the clients.
    pub(crate) fn client_settings(&self, scopes: &str) -> String {
        let client_ca = self.path("clients.pem");
        format!(
            "{}http.tls.client_ca = '{client_ca}'\nhttp.tls.client_scopes = {{ {scopes} }}\n",
            self.settings()
        )
    }

    fn asking_clients(&self) -> String {
        self.client_settings(&format!(
            "'{BILLING}' = ['mint'], '{}' = ['metrics', 'decode']",
            OPERATOR.to_uppercase()
        ))
    }

    pub(crate) async fn start(&self, settings: &str) -> Service {
        let service = Service::start(self.home.serve_with(settings));
        self.client(&service, None).wait_until_ready().await;
        service
    }

    pub(crate) fn client(&self, service: &Service, shown: Option<&Identity>) -> TlsClient {
        TlsClient::new(service.address(), &self.authority, shown)
    }

    /// Returns the value of a metric, which it reads with the certificate of an operator.
    pub(crate) async fn metric(&self, service: &Service, series: &str) -> f64 {
        let operator = self.clients.sign(&[OPERATOR]);
        let text = self
            .client(service, Some(&operator))
            .ask("GET /metrics")
            .await
            .text;
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value
            .unwrap_or_else(|| panic!("no {series} in {text}"))
            .parse()
            .unwrap()
    }
}

#[tokio::test]
async fn https_mints_by_both_protocols_and_both_versions() {
    let secured = Secured::new();
    let service = secured.start(&secured.settings()).await;
    assert!(
        service
            .banner()
            .contains("try: curl -X POST https://127.0.0.1:"),
        "{}",
        service.banner()
    );
    let (client, address) = (secured.client(&service, None), service.address());
    let old = TlsClient::of_tls12(address, &secured.authority);
    for (client, is_http2) in [
        (client.clone(), false),
        (client.clone().speaking("http/1.1"), false),
        (client.clone().speaking("h2"), true),
        (old.clone().speaking("http/1.1"), false),
        (old.speaking("h2"), true),
    ] {
        let mut connection = client.connect().await;
        assert_eq!(connection.is_http2(), is_http2);
        for count in [1, 3, 50_000] {
            let answer = connection
                .ask(&format!("POST /ids/flax?count={count}"))
                .await;
            assert_eq!((answer.status, answer.text.lines().count()), (200, count));
        }
        assert_eq!(connection.ask("POST /ids/flax?count=0").await.status, 422);
    }
    assert!(
        client
            .clone()
            .speaking("spdy/3")
            .try_connect()
            .await
            .is_err(),
        "no protocol in common"
    );
    let metrics = client.ask("GET /metrics").await.text;
    assert!(
        metrics.contains("idmint_ids_minted_total{format=\"flax\"} 250020\n"),
        "{metrics}"
    );
    assert!(
        client
            .ask("GET /")
            .await
            .text
            .contains(&format!("curl -X POST https://{address}/ids/"))
    );
    service.send(Signal::TERM);
    service
        .wait()
        .assert(0, &["every request got its response"]);
}

#[tokio::test]
async fn whoever_shows_no_good_certificate_mints_nothing() {
    let secured = Secured::new();
    let service = secured.start(&secured.asking_clients()).await;
    let good = secured.clients.sign(&[BILLING]);
    let stranger = Authority::new("authority of clients");
    let expired = secured.clients.sign_until(&[BILLING], 2020);
    let both = secured
        .clients
        .sign(&["unknown.example.com", BILLING, OPERATOR]);
    for (what, shown, status) in [
        ("a good one", Some(&good), Some(200)),
        ("one of two names", Some(&both), Some(200)),
        ("none", None, Some(401)),
        ("one of a stranger", Some(&stranger.sign(&[BILLING])), None),
        ("an expired one", Some(&expired), None),
        (
            "an unknown name",
            Some(&secured.clients.sign(&["spiffe://example.com/other"])),
            Some(403),
        ),
        ("no name", Some(&secured.clients.sign(&[])), Some(403)),
        (
            "no scope to mint",
            Some(&secured.clients.sign(&[OPERATOR])),
            Some(403),
        ),
    ] {
        for protocol in ["http/1.1", "h2"] {
            let client = secured.client(&service, shown).speaking(protocol);
            let answer = client.try_ask("POST /ids/flax").await;
            assert_eq!(
                answer.as_ref().ok().map(|answer| answer.status),
                status,
                "{what}, {protocol}: {answer:?}"
            );
            let health = client.try_ask("GET /health/ready").await;
            assert_eq!(
                health.is_ok(),
                status.is_some(),
                "{what}: an alert, else open to anybody"
            );
        }
    }
    let refused = secured.client(&service, None).ask("POST /ids/flax").await;
    assert!(
        refused.text.contains("missing_certificate"),
        "{}",
        refused.text
    );
    let refused = secured
        .client(&service, Some(&good))
        .ask("GET /metrics")
        .await;
    let said = format!(
        "the certificate of `{BILLING}` has only the scopes mint, but this request needs metrics"
    );
    assert!(
        refused.status == 403 && refused.text.contains(&said),
        "{}",
        refused.text
    );
    assert_eq!(
        secured
            .metric(&service, "idmint_ids_minted_total{format=\"flax\"}")
            .await,
        4.0
    );
    assert_eq!(
        secured
            .metric(&service, "idmint_requests_shed_total{reason=\"handshake\"}")
            .await,
        8.0
    );
    assert!(
        !service.log().contains("handshake"),
        "strangers write no log: {}",
        service.log()
    );
}

#[tokio::test]
async fn a_token_or_a_certificate_is_enough_where_both_are_accepted() {
    let secured = Secured::new();
    let tokens = secured.path("tokens.toml");
    let made = run(idmint(&[
        "token",
        "new",
        "--name",
        "all",
        "--scopes",
        "mint,decode",
        "--file",
        &tokens,
    ]));
    made.assert(0, &[]);
    let settings = format!("{}http.tokens = '{tokens}'\n", secured.asking_clients());
    let service = secured.start(&settings).await;
    let bearer = format!("Bearer {}", made.out.trim_end());
    let (good, other) = (
        secured.clients.sign(&[BILLING]),
        secured.clients.sign(&[OPERATOR]),
    );
    for (shown, authorization, status) in [
        (None, None, 401),
        (None, Some(&*bearer), 200),
        (Some(&good), None, 200),
        (Some(&other), None, 403),
        (Some(&other), Some(&*bearer), 200),
        (Some(&good), Some("Bearer wrong"), 401),
    ] {
        let mut connection = secured.client(&service, shown).connect().await;
        let headers: Vec<_> = authorization
            .into_iter()
            .map(|value| ("authorization", value))
            .collect();
        let answer = connection
            .try_ask("POST /ids/flax", &headers)
            .await
            .unwrap();
        assert_eq!(
            answer.status,
            status,
            "{} {authorization:?}: {}",
            shown.is_some(),
            answer.text
        );
    }
}

#[tokio::test]
async fn plain_text_gets_no_answer_and_a_handshake_that_stalls_is_ended() {
    let secured = Secured::new();
    let settings = secured.settings() + "http.header_timeout = '5s'\n";
    let service = secured.start(&settings).await;
    let mut plain = TcpStream::connect(service.address()).unwrap();
    plain.set_read_timeout(Some(LONG)).unwrap();
    plain
        .write_all(b"POST /ids/flax HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    let mut came = Vec::new();
    let _ = plain.read_to_end(&mut came);
    assert!(
        !came.starts_with(b"HTTP"),
        "{}",
        String::from_utf8_lossy(&came)
    );

    // Open three kinds of connections: some send nothing, some stop in the middle of a TLS record,
    // and some send a message that is longer than any handshake.
    let mut stalled: Vec<_> = (0..60)
        .map(|_| TcpStream::connect(service.address()).unwrap())
        .collect();
    stalled
        .iter_mut()
        .skip(20)
        .for_each(|stream| stream.write_all(&[22, 3, 1, 2, 0, 1, 0, 1]).unwrap());
    for stream in stalled.iter_mut().skip(40) {
        let record = [&[22, 3, 1, 0x40, 0][..], &[1, 0, 0xff, 0xff], &[0; 0x3ffc]].concat();
        let _ = stream
            .write_all(&record)
            .and_then(|()| stream.write_all(&record));
    }
    let client = secured.client(&service, None);
    assert_eq!(
        client.ask("POST /ids/flax").await.status,
        200,
        "nobody waits for them"
    );
    for mut stream in stalled {
        stream.set_read_timeout(Some(LONG)).unwrap();
        let ended = stream.read_to_end(&mut Vec::new());
        assert!(
            !ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock),
            "it is ended"
        );
    }
    let metrics = client.ask("GET /metrics").await.text;
    assert!(
        metrics.contains("idmint_requests_shed_total{reason=\"handshake\"} 61\n"),
        "{metrics}"
    );
    assert!(
        metrics.contains("idmint_ids_minted_total{format=\"flax\"} 1\n"),
        "{metrics}"
    );
}

/// Four callers that mint ids. Each opens a new connection after ten requests.
struct Callers {
    minted: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<Vec<String>>>,
}

impl Callers {
    fn start(client: &TlsClient) -> Callers {
        let (minted, stop) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let tasks = ["http/1.1", "h2", "http/1.1", "h2"].map(|protocol| {
            let client = client.clone().speaking(protocol);
            let (minted, stop) = (Arc::clone(&minted), Arc::clone(&stop));
            tokio::spawn(async move {
                let mut failed = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let mut connection = client.connect().await;
                    for _ in 0..10 {
                        match connection.try_ask("POST /ids/flax", &[]).await {
                            Ok(answer) if answer.status == 200 => {
                                let _ = minted.fetch_add(1, Ordering::Relaxed);
                            }
                            other => failed.push(format!("{other:?}")),
                        }
                    }
                }
                failed
            })
        });
        Callers {
            minted,
            stop,
            tasks: tasks.into(),
        }
    }

    /// Waits until the callers have minted more ids, which shows that they still work.
    async fn go_on(&self) {
        let before = self.minted.load(Ordering::Relaxed);
        let more = async {
            while self.minted.load(Ordering::Relaxed) < before + 200 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let more = tokio::time::timeout(LONG, more).await;
        more.expect("the callers go on");
    }

    async fn stop(self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        let mut failed = Vec::new();
        for task in self.tasks {
            failed.extend(task.await.unwrap());
        }
        failed
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_rotated_under_load_without_a_failed_request() {
    let mut secured = Secured::new();
    let service = secured.start(&secured.asking_clients()).await;
    let billing = secured.clients.sign(&[BILLING]);
    let callers = Callers::start(&secured.client(&service, Some(&billing)));
    callers.go_on().await;
    let reload = |times: usize, said: &str| {
        service.send(Signal::HUP);
        idmint_testing::service::until(said, || {
            (service.log().matches(said).count() == times).then_some(())
        });
    };

    // First replace the key of the service. Then add a second authority for clients.
    let renewed = Authority::new("authority of services, renewed");
    renewed.sign(&["localhost"]).write(&secured.home, "service");
    assert!(
        TlsClient::new(service.address(), &renewed, None)
            .try_connect()
            .await
            .is_err(),
        "it was not told yet"
    );
    secured.renew();
    let next = Authority::new("authority of clients, next");
    fs::write(
        secured.home.path("clients.pem"),
        format!("{}{}", secured.clients.pem, next.pem),
    )
    .unwrap();
    let newcomer = next.sign(&[BILLING]);
    assert!(
        secured
            .client(&service, Some(&newcomer))
            .try_ask("POST /ids/flax")
            .await
            .is_err()
    );
    reload(1, "the certificates were reloaded");
    assert_eq!(
        secured
            .client(&service, Some(&newcomer))
            .ask("POST /ids/flax")
            .await
            .status,
        200
    );
    callers.go_on().await;

    for (file, text) in [
        ("service.crt", "no certificate"),
        ("service.key", ""),
        ("clients.pem", ""),
    ] {
        let good = fs::read(secured.home.path(file)).unwrap();
        fs::write(secured.home.path(file), text).unwrap();
        reload(
            1,
            &format!(
                "the certificates cannot be reloaded, so the earlier ones stay in use: http.tls.{}",
                match file {
                    "service.crt" => "certificate",
                    "service.key" => "key",
                    _ => "client_ca",
                }
            ),
        );
        callers.go_on().await;
        fs::write(secured.home.path(file), good).unwrap();
    }
    // Replace the key by one that belongs to another certificate. The service must keep the old
    // pair.
    let good = fs::read(secured.home.path("service.key")).unwrap();
    fs::write(
        secured.home.path("service.key"),
        &secured.authority.sign(&["localhost"]).key,
    )
    .unwrap();
    reload(
        1,
        "the certificates cannot be reloaded, so the earlier ones stay in use: http.tls: ",
    );
    callers.go_on().await;
    fs::write(secured.home.path("service.key"), good).unwrap();
    let minted = callers.minted.load(Ordering::Relaxed);
    assert_eq!(callers.stop().await, Vec::<String>::new());
    println!("{minted} ids by four callers through five reloads");

    // Finally, use a certificate of another authority, which is valid.
    renewed.sign(&["localhost"]).write(&secured.home, "service");
    reload(2, "the certificates were reloaded");
    assert!(
        secured
            .client(&service, Some(&billing))
            .try_connect()
            .await
            .is_err()
    );
    secured.authority = renewed;
    assert_eq!(
        secured
            .client(&service, Some(&billing))
            .ask("POST /ids/flax")
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn what_is_withdrawn_is_refused_on_connections_that_are_open() {
    let secured = Secured::new();
    let service = secured.start(&secured.asking_clients()).await;
    let [first, second, third] = [(); 3].map(|()| secured.clients.sign(&[BILLING]));
    let mut open = Vec::new();
    for shown in [&first, &second, &third] {
        let mut connection = secured.client(&service, Some(shown)).connect().await;
        assert_eq!(connection.ask("POST /ids/flax").await.status, 200);
        open.push(connection);
    }
    let mut times = 0;
    let mut reload = || {
        times += 1;
        service.send(Signal::HUP);
        let said = "the certificates were reloaded";
        idmint_testing::service::until(said, || {
            (service.log().matches(said).count() == times).then_some(())
        });
    };
    fs::write(
        secured.home.path("clients.pem"),
        secured.clients.pem.clone() + &secured.clients.revoke(&first),
    )
    .unwrap();
    reload();
    let refused = open[0].ask("POST /ids/flax").await;
    assert!(
        refused.status == 401 && refused.text.contains("invalid_certificate"),
        "{}",
        refused.text
    );
    assert!(
        secured
            .client(&service, Some(&first))
            .try_ask("POST /ids/flax")
            .await
            .is_err(),
        "an alert"
    );
    assert_eq!(open[1].ask("POST /ids/flax").await.status, 200);

    secured
        .home
        .serve_with(&secured.client_settings(&format!("'{BILLING}' = ['decode']")));
    reload();
    assert_eq!(
        open[1].ask("POST /ids/flax").await.status,
        403,
        "the scope was withdrawn"
    );
    secured.home.serve_with(&secured.asking_clients());
    fs::write(
        secured.home.path("clients.pem"),
        &Authority::new("another").pem,
    )
    .unwrap();
    reload();
    assert_eq!(
        open[2].ask("POST /ids/flax").await.status,
        401,
        "the authority was withdrawn"
    );
}

#[tokio::test]
async fn scopes_that_do_not_fit_the_running_authority_are_not_taken_over() {
    let secured = Secured::new();
    let service = secured.start(&secured.asking_clients()).await;
    let billing = secured.clients.sign(&[BILLING]);
    let client = secured.client(&service, Some(&billing));
    assert_eq!(client.ask("POST /ids/flax").await.status, 200);

    // A start with the new file would be valid, and would require no client certificates.
    drop(secured.home.serve_with(&secured.settings()));
    service.send(Signal::HUP);
    service.log_once_it_says("the certificates were reloaded");
    assert_eq!(client.ask("POST /ids/flax").await.status, 200);
    service.log_once_it_says("http.tls.client_scopes stays unchanged until a restart");
}

#[tokio::test]
async fn with_client_certificates_other_machines_may_be_served_and_wrong_settings_end_a_start() {
    let secured = Secured::new();
    let public = "http.listen = '0.0.0.0:0'\nworker.exclusive = true\n";
    let start = |settings: &str| {
        let file = secured.home.path("public.toml");
        fs::write(&file, settings).unwrap();
        let mut command = idmint(&["serve", "--config", file.to_str().unwrap(), "--data-dir"]);
        command.arg(secured.home.data_dir());
        command
    };
    run(start(&(public.to_owned() + &secured.settings())))
        .assert(78, &["neither token nor certificate"]);
    for (settings, said) in [
        (
            "http.tls.key = 'k'".to_owned(),
            "tls.key is set without tls.certificate",
        ),
        (
            "http.tls.certificate = 'c'".to_owned(),
            "tls.certificate is set without tls.key",
        ),
        (
            "http.tls.client_ca = 'c'".to_owned(),
            "tls.client_ca is set without tls.certificate",
        ),
        (
            "http.tls = { certificate = '/nonexistent/c', key = 'k' }".to_owned(),
            "http.tls.certificate: /nonexistent/c cannot be",
        ),
        (
            secured.client_settings(""),
            "tls.client_ca is set without tls.client_scopes",
        ),
        (
            secured.client_settings("'a.example' = []"),
            "must have one of mint, ledger, decode, metrics, import and number",
        ),
        (
            secured.client_settings("'a b' = ['mint']"),
            "must be a DNS name",
        ),
        (
            secured.settings() + "http.tls.client_scopes = { 'a.example' = ['mint'] }",
            "tls.client_scopes is set without tls.client_ca",
        ),
        (
            "http.rate = 0".to_owned(),
            "a whole number from 1 to 1000000",
        ),
    ] {
        run(start(&settings)).assert(78, &[said]);
    }
    let settings = public.to_owned() + &secured.asking_clients();
    let service = Service::start(start(&settings));
    let mut reached = service.address();
    reached.set_ip([127, 0, 0, 1].into());
    let client = TlsClient::new(reached, &secured.authority, None);
    assert_eq!(client.ask("POST /ids/flax").await.status, 401);
    let checked = run(idmint(&["check", "--config", &secured.path("public.toml")]));
    checked.assert(0, &[]);
    for said in [
        "listens on        https://0.0.0.0:0\n",
        "callers           2 certificate names\n",
    ] {
        assert!(checked.out.contains(said), "{}", checked.out);
    }
    service.send(Signal::TERM);
    service.wait().assert(0, &[]);

    let files = ["service.crt", "service.key", "clients.pem"].map(|name| secured.path(name));
    let mut by_flags = secured.home.serve();
    by_flags.args([
        "--tls-certificate",
        &files[0],
        "--tls-key",
        &files[1],
        "--tls-client-ca",
        &files[2],
    ]);
    by_flags.env(
        "IDMINT_HTTP__TLS__CLIENT_SCOPES",
        format!("{{ '{BILLING}' = ['mint'] }}"),
    );
    let service = Service::start(by_flags);
    let client = secured.client(&service, Some(&secured.clients.sign(&[BILLING])));
    client.wait_until_ready().await;
    assert_eq!(client.ask("POST /ids/flax").await.status, 200);
}
