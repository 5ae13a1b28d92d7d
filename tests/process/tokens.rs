//! Checks tokens in operation. They are created, distributed, rotated and withdrawn under load.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use idmint_testing::http1::{Client, request};
use idmint_testing::service::{Home, PREFER_TEXT, Service, Signal, idmint, run, until};

/// The folder of a service that requires tokens.
struct Guarded(Home);

impl Guarded {
    fn file(&self) -> PathBuf {
        self.0.path("tokens.toml")
    }

    /// Creates a token, adds its entry to the token file, and returns the token. The service does
    /// not accept the token before its next reload.
    fn token(&self, arguments: &[&str]) -> String {
        let file = self.file();
        let mut command = idmint(&[
            "token",
            "new",
            "--name",
            "billing",
            "--file",
            file.to_str().unwrap(),
        ]);
        command.args(arguments);
        let made = run(command);
        made.assert(0, &[]);
        made.out.trim_end().to_owned()
    }

    fn start(&self) -> Service {
        let service = Service::start(
            self.0
                .serve_with(&format!("http.tokens = '{}'", self.file().display())),
        );
        service.wait_until_ready();
        service
    }
}

fn mint(service: &Service, token: &str) -> u16 {
    let headers = format!("authorization: Bearer {token}\r\n{PREFER_TEXT}");
    Client::connect(service.address())
        .exchange(request("POST /ids/payment", &headers, ""))
        .status
}

/// Four callers that mint one id after another. Each keeps its connection, and always uses the
/// current token.
struct Callers {
    token: Arc<Mutex<String>>,
    minted: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<String>>>,
}

impl Callers {
    fn start(service: &Service, token: &str) -> Callers {
        let (token, stop) = (
            Arc::new(Mutex::new(token.to_owned())),
            Arc::new(AtomicBool::new(false)),
        );
        let minted = Arc::new(AtomicU64::new(0));
        let threads = (0..4).map(|_| {
            let (token, stop, minted) =
                (Arc::clone(&token), Arc::clone(&stop), Arc::clone(&minted));
            let mut client = Client::connect(service.address());
            thread::spawn(move || {
                let mut failed = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let headers = format!("authorization: Bearer {}\r\n", token.lock().unwrap());
                    match client.try_exchange(request("POST /ids/flax", &headers, "")) {
                        Ok(answer) if answer.status == 200 => {
                            let _ = minted.fetch_add(1, Ordering::Relaxed);
                        }
                        other => failed.push(format!("{other:?}")),
                    }
                }
                failed
            })
        });
        Callers {
            threads: threads.collect(),
            token,
            minted,
            stop,
        }
    }

    fn use_token(&self, token: &str) {
        token.clone_into(&mut self.token.lock().unwrap());
    }

    /// Waits until the callers have minted more ids, which shows that they still work.
    fn go_on(&self) {
        let before = self.minted.load(Ordering::Relaxed);
        until("the callers go on", || {
            (self.minted.load(Ordering::Relaxed) >= before + 200).then_some(())
        });
    }

    fn stop(self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    }
}

/// Removes the first entry from the token file.
fn remove_first_entry(path: &Path) {
    let text = fs::read_to_string(path).unwrap();
    let second = text.rfind("[[token]]").unwrap();
    assert!(second > 0, "there are two entries");
    fs::write(path, &text[second..]).unwrap();
}

#[test]
fn a_token_is_rotated_under_load_without_a_failed_request() {
    let guarded = Guarded(Home::new());
    let old = guarded.token(&["--scopes", "mint"]);
    assert_eq!(
        fs::metadata(guarded.file()).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let service = guarded.start();
    let callers = Callers::start(&service, &old);
    callers.go_on();

    let new = guarded.token(&["--scopes", "mint"]);
    assert_eq!(mint(&service, &new), 401, "the service was not told yet");
    service.send(Signal::HUP);
    service.log_once_it_says("2 tokens were reloaded from ");
    assert_eq!(mint(&service, &old), 200, "both work while they overlap");
    callers.use_token(&new);
    callers.go_on();

    remove_first_entry(&guarded.file());
    service.send(Signal::HUP);
    service.log_once_it_says("1 tokens were reloaded from ");
    callers.go_on();
    assert_eq!(mint(&service, &old), 401, "it was withdrawn");

    fs::write(guarded.file(), "[[token]]\nname = 'broken'\n").unwrap();
    service.send(Signal::HUP);
    service.log_once_it_says("the tokens cannot be reloaded");
    callers.go_on();
    let minted = callers.minted.load(Ordering::Relaxed);
    assert_eq!(callers.stop(), Vec::<String>::new());
    println!("{minted} ids by four callers through three reloads");
    assert!(
        !service.log().contains(&old) && !service.log().contains(&new),
        "no log has a token"
    );
}

#[test]
fn commands_show_the_token_of_a_file() {
    let guarded = Guarded(Home::new());
    let token = guarded.token(&[
        "--scopes",
        "mint",
        "--formats",
        "payment",
        "--expires",
        "2100-01-01T00:00:00Z",
    ]);
    let service = guarded.start();
    let token_file = guarded.0.path("billing.token");
    fs::write(&token_file, format!("{token}\n")).unwrap();
    let url = service.url();
    let mint = |format: &str, more: &[&str]| {
        let mut command = idmint(&["mint", format, "--server", &url]);
        command.args(more);
        run(command)
    };
    let shown = ["--token-file", token_file.to_str().unwrap()];
    let minted = mint("payment", &shown);
    minted.assert(0, &[]);
    assert_eq!(minted.out.lines().count(), 1);
    mint("snowflake", &shown).assert(
        1,
        &["is limited to the formats payment, but this request is for snowflake"],
    );
    mint("payment", &[]).assert(1, &["no token"]);
    mint("payment", &["--token-file", "/nonexistent/token"]).assert(74, &["/nonexistent/token"]);
    fs::write(&token_file, "\n").unwrap();
    mint("payment", &shown).assert(
        65,
        &["a token must be one or more visible ASCII characters"],
    );
}

#[test]
fn with_tokens_other_machines_may_be_served_and_a_file_that_is_no_good_is_a_wrong_configuration() {
    let guarded = Guarded(Home::new());
    let config = guarded.0.path("public.toml");
    let settings = "http.listen = '0.0.0.0:0'\nworker.exclusive = true\nhttp.tokens = ";
    fs::write(
        &config,
        format!("{settings}'{}'\n", guarded.file().display()),
    )
    .unwrap();
    let start = || {
        let data_dir = guarded.0.data_dir();
        let mut command = idmint(&["serve", "--config", config.to_str().unwrap(), "--data-dir"]);
        command.arg(data_dir);
        command
    };
    run(start()).assert(78, &["http.tokens", "tokens.toml"]);
    fs::write(guarded.file(), "").unwrap();
    run(start()).assert(78, &["has 0 tokens, but must have 1 to 1024"]);
    let _token = guarded.token(&["--scopes", "mint,metrics"]);
    let service = Service::start(start());
    let mut reached = service.address();
    reached.set_ip([127, 0, 0, 1].into());
    let refused = Client::connect(reached).exchange(request("POST /ids/payment", "", ""));
    assert_eq!(refused.status, 401);
    let checked = run(idmint(&["check", "--config", config.to_str().unwrap()]));
    checked.assert(0, &[]);
    assert!(
        checked.out.contains("callers           1 tokens"),
        "{}",
        checked.out
    );
    service.send(Signal::TERM);
    service.wait().assert(0, &[]);
}

#[test]
fn a_token_is_withdrawn_even_if_the_configuration_is_invalid() {
    let guarded = Guarded(Home::new());
    let old = guarded.token(&["--scopes", "mint"]);
    let service = guarded.start();
    let new = guarded.token(&["--scopes", "mint"]);
    remove_first_entry(&guarded.file());
    fs::write(guarded.0.path("idmint.toml"), "http.tokns = 'a'").unwrap();
    service.send(Signal::HUP);
    let log = service.log_once_it_says("1 tokens were reloaded from ");
    let words = "reloading only tokens and certificates, because the configuration is invalid";
    assert!(log.contains(words), "{log}");
    assert!(!log.contains("nothing is reloaded"), "{log}");
    assert_eq!([mint(&service, &old), mint(&service, &new)], [401, 200]);
}

#[test]
fn a_hangup_without_tokens_ends_nothing() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    service.send(Signal::HUP);
    service.log_once_it_says("SIGHUP: reloading");
    assert_eq!(service.mint("flax").len(), 1);
}

#[test]
fn a_token_is_made_with_its_entry() {
    let made = run(idmint(&[
        "token",
        "new",
        "--name",
        "audit",
        "--scopes",
        "ledger,decode",
        "--ledgers",
        "aa77f99c",
    ]));
    made.assert(0, &[]);
    let (token, entry) = made.out.split_once("\n\n").unwrap();
    assert!(token.starts_with("idmint_") && token.len() == 71, "{token}");
    assert!(
        entry.contains("scopes = [\"ledger\", \"decode\"]\nledgers = [\"aa77f99c\"]"),
        "{entry}"
    );
    for (arguments, said) in [
        (
            ["--name", "audit", "--scopes", "all"],
            "\"all\" is not a scope: use mint, ledger, decode, metrics, import or number",
        ),
        (["--name", "", "--scopes", "mint"], "--name"),
        (["--scopes", "mint", "--expires", "soon"], "--expires"),
    ] {
        let mut command = idmint(&["token", "new"]);
        command.args(arguments);
        run(command).assert(64, &[said]);
    }
}

/// Returns token files in which the token itself is in a place where an operator may paste it by
/// mistake.
fn pasted(token: &str) -> [String; 7] {
    let good = "9450637a6cfce60f2c2b31b97578c94080d28a202656cde6fa812ac38aa9eb24";
    let entry = |sha256: &str| {
        format!("[[token]]\nname = 'billing'\nscopes = ['mint']\nsha256 = {sha256}\n")
    };
    [
        entry(&format!("'{token}'")),
        entry(&format!("\"{token}")),
        entry(token),
        entry(&format!("'{good}'\n{token} = 1")),
        entry(&format!("'{good}'\nexpires = '{token}'")),
        entry(&format!("'{good}'")).replace("billing", token),
        entry(&format!("'{good}'")).replace("mint", token),
    ]
}

#[test]
fn a_token_that_was_pasted_where_its_digest_belongs_is_not_printed() {
    let (guarded, other) = (Guarded(Home::new()), Home::new());
    let token = guarded.token(&["--scopes", "mint"]);
    let good = fs::read_to_string(guarded.file()).unwrap();
    let service = guarded.start();
    let secret = token.trim_start_matches("idmint_");
    let settings = format!("http.tokens = '{}'\n", guarded.file().display());
    let config = guarded.0.path("checked.toml");
    fs::write(&config, &settings).unwrap();
    // Also test a token that was not created by `idmint token new`.
    let others = pasted("hunter2-of-billing").into_iter().take(3);
    for (place, text) in others.chain(pasted(&token)).enumerate() {
        fs::write(guarded.file(), "\n".repeat(10 * place) + &text).unwrap();
        let checked = run(idmint(&["check", "--config", config.to_str().unwrap()]));
        assert_eq!(checked.err.trim_end().lines().count(), 1, "{}", checked.err);
        for ended in [checked, run(other.serve_with(&settings))] {
            ended.assert(78, &["http.tokens: ", "tokens.toml: "]);
            let said = format!("{}{}", ended.out, ended.err);
            assert!(
                !said.contains(secret) && !said.contains("hunter2"),
                "{place}: {said}"
            );
        }
        service.send(Signal::HUP);
        // If the token is in the place of its digest, the log names the line.
        if place < 6 {
            service.log_once_it_says(&format!("tokens.toml: line {}: ", 10 * place + 4));
        }
    }
    fs::write(guarded.file(), good).unwrap();
    service.send(Signal::HUP);
    let log = service.log_once_it_says("1 tokens were reloaded from ");
    assert!(log.contains("the tokens cannot be reloaded"), "{log}");
    assert!(!log.contains(secret) && !log.contains("hunter2"), "{log}");
    assert_eq!(mint(&service, &token), 200);
}

#[test]
fn check_names_the_tokens_to_which_their_confinement_refuses_something() {
    let guarded = Guarded(Home::new());
    for arguments in [
        &[
            "--name",
            "untouched",
            "--scopes",
            "mint,decode",
            "--formats",
            "payment",
        ][..],
        &["--name", "operator", "--scopes", "ledger,metrics,import"],
        &[
            "--name",
            "paying",
            "--scopes",
            "mint,ledger,metrics",
            "--formats",
            "payment",
        ],
        &[
            "--name",
            "of-one-ledger",
            "--scopes",
            "ledger,import",
            "--ledgers",
            "aa77f99c",
        ],
        &["--name", "plain", "--scopes", "ledger"],
        &["--name", "numbering", "--scopes", "number"],
    ] {
        let mut command = idmint(&["token", "new", "--file", guarded.file().to_str().unwrap()]);
        command.args(arguments);
        run(command).assert(0, &[]);
    }
    let config = guarded.0.path("checked.toml");
    fs::write(
        &config,
        format!("http.tokens = '{}'\n", guarded.file().display()),
    )
    .unwrap();
    let checked = run(idmint(&["check", "--config", config.to_str().unwrap()]));
    checked.assert(0, &[]);
    let named: Vec<_> = checked
        .out
        .lines()
        .filter_map(|line| line.trim().strip_prefix("the token "))
        .collect();
    assert_eq!(
        named,
        [
            "`paying`: no ledgers, since none of its formats is minted from events; no metrics, because they cover all \
             formats, ledgers and series",
            "`of-one-ledger`: no conjunctions, since it is limited to some ledgers",
            "`plain`: no import=more to a ledger in use, which needs the scope import",
            "`numbering`: no numbers with ?first=, which need the scope import",
        ],
        "{}",
        checked.out
    );
}

#[test]
fn a_token_is_added_only_to_a_file_of_tokens() {
    let home = Home::new();
    let path = home.path("idmint.toml");
    for before in ["http.listen = '127.0.0.1:0'\n", "garbage", "# no token\n"] {
        fs::write(&path, before).unwrap();
        let file = path.to_str().unwrap();
        let args = [
            "token", "new", "--name", "a", "--scopes", "mint", "--file", file,
        ];
        let made = run(idmint(&args));
        if before.starts_with('#') {
            made.assert(0, &[]);
            continue;
        }
        made.assert(65, &["--file", "idmint.toml: line "]);
        assert_eq!(
            (made.out.as_str(), before),
            ("", &*fs::read_to_string(&path).unwrap())
        );
    }
}
