//! Tests the clients with a server that misbehaves.
//!
//! Each language has a program that gets a token and arguments of the form `case=url`. For each
//! case, the program calls `next()` for a few seconds, and then calls `append` once with one event
//! and another client. It prints one line for each of the two calls. A line has these values,
//! separated by tabs: the case, the call, the kind of the last failure, and whether the outcome is
//! unknown. Then follow the wait that the failure reports and the duration of the longest call
//! (both in milliseconds), the number of ids, the number of distinct ids, and the messages.

mod server;

use std::collections::HashSet;
use std::error::Error;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use idmint_client::{Ids, IdsError, IdsOptions};
use serde_json::json;

use self::server::{Expected, Hostile, cases};
use super::secured::Secured;
use crate::tools::succeed;
use idmint_testing::loopback::address_of_its_own;

/// The token of the clients. It must not occur in any output.
const TOKEN: &str = "idmint_SECRET0123456789";
/// The timeout of `next()`. The constants below are the timeout of `append`, and the time for which
/// a program calls `next()`. The programs contain the same numbers.
const TIMEOUT: Duration = Duration::from_millis(500);
const APPEND_TIMEOUT: Duration = Duration::from_secs(3);
const CALLING: Duration = Duration::from_secs(10);
/// The maximum number of requests of one client while it calls `next()`.
const REQUESTS_MAX: u64 = 20;

/// Runs a client against all cases, and checks the lines that it prints. `run` starts the program
/// of the client and returns its output.
fn assert_copes(run: impl FnOnce(&[String]) -> String) {
    let cases = cases(TOKEN);
    assert!(cases.len() >= 40, "{}", cases.len());
    let hostile = Hostile::start(&cases);
    let secured = Secured::start();
    let mut arguments = vec![TOKEN.to_owned()];
    arguments.extend(
        cases
            .iter()
            .map(|case| format!("{}={}", case.name, hostile.urls[case.name])),
    );
    arguments.push(format!(
        "unknown_issuer=https://127.0.0.1:{}",
        secured.arguments()[3]
    ));
    arguments.push(format!("closed_port=http://{}", address_of_its_own()));
    let printed = run(&arguments);
    // Go's net/http logs the bytes that follow a response, which no setting prevents.
    let is_of_go = |line: &str| line.contains("Unsolicited response received on idle HTTP channel");
    let mut lines = printed.lines().filter(|line| !is_of_go(line));
    let with_token = lines.find(|line| line.contains("SECRET"));
    assert_eq!(with_token, None, "the token is printed");

    let (mut wrong, mut most) = (Vec::new(), 0);
    let others = [
        ("unknown_issuer", Expected::Refused, false),
        ("closed_port", Expected::Unavailable, false),
    ];
    let all = cases
        .iter()
        .map(|case| (case.name, case.expected, case.outcome_unknown));
    for (name, expected, outcome_unknown) in all.chain(others) {
        let line = |call: &str| {
            let begin = format!("{name}\t{call}\t");
            let mut lines = printed.lines().filter(|line| line.starts_with(&begin));
            let line = lines.next().unwrap_or_else(|| panic!("{begin}: {printed}"));
            line.split('\t').map(str::to_owned).collect::<Vec<_>>()
        };
        for (call, line) in [("next", line("next")), ("append", line("append"))] {
            let number = |at: usize| line[at].parse::<f64>().unwrap();
            let mut claim = |holds: bool, what: &str| {
                if !holds {
                    wrong.push(format!("{what}: {}", line.join(" ")));
                }
            };
            let kind = line[2].as_str();
            // On a busy machine, the last call or its last attempt may reach its timeout.
            let is_late = ["within", "timed out", "deadline"]
                .iter()
                .any(|words| line[8].contains(words));
            claim(
                match expected {
                    _ if is_late && kind == "unavailable" => true,
                    Expected::Refused => kind == "refused",
                    Expected::Unavailable => kind == "unavailable",
                    Expected::BadResponse => kind == "bad-response",
                    Expected::Broken => ["unavailable", "bad-response"].contains(&kind),
                    Expected::Ids => call == "append" || number(6) > 0.0 || is_late,
                },
                "another kind of failure",
            );
            if call == "append" && expected != Expected::Ids {
                let is_known = line[3] == outcome_unknown.to_string();
                // On a busy machine, an earlier attempt may have reached its timeout. The outcome
                // of the call is then unknown.
                let was_cut = line[3] == "true" && number(5) >= TIMEOUT.as_secs_f64() * 1e3;
                claim(is_known || is_late || was_cut, "the outcome");
            }
            claim(number(4) <= 30_000.0, "a wait of more than 30 s");
            // Allow ten timeouts, and the delay that a busy machine may add.
            let longest = 10.0 * TIMEOUT.as_secs_f64() * 1e3 + 25_000.0;
            claim(number(5) < longest, "longer than ten timeouts");
            claim(line[6] == line[7], "an id comes twice");
        }
        let asked = hostile.asked.lock().unwrap().get(name).copied();
        if expected != Expected::Ids {
            most = most.max(asked.unwrap_or(0));
        }
        if expected != Expected::Ids && asked.unwrap_or(0) > REQUESTS_MAX {
            wrong.push(format!("{name}: {asked:?} requests"));
        }
    }
    let resets = hostile.resets.load(Ordering::Relaxed);
    println!(
        "{} cases, {resets} connections reset, at most {most} requests of a client in {CALLING:?}",
        cases.len() + others.len()
    );
    // Each case has at least two calls. On an idle machine, the responses are cut off after each of
    // their bytes at least once.
    let cases_of_resets = cases.iter().filter(|case| case.name.starts_with("reset_"));
    if resets < cases_of_resets.count() {
        wrong.push(format!("only {resets} connections were reset"));
    }
    if let Some(followed) = hostile.asked.lock().unwrap().get("trap") {
        wrong.push(format!("{followed} redirects were followed"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs [`assert_copes`] with the program of a client in another language.
pub(crate) fn assert_program_copes(mut program: Command) {
    assert_copes(|arguments| succeed(program.args(arguments)));
}

fn call(
    ids: &Ids,
    name: &str,
    call: &str,
    until: Instant,
    act: impl Fn(&Ids) -> Result<u128, IdsError>,
) -> String {
    let (mut failure, mut messages) = (None, HashSet::new());
    let (mut longest, mut seen) = (Duration::ZERO, Vec::new());
    loop {
        let begun = Instant::now();
        let result = act(ids);
        longest = longest.max(begun.elapsed());
        match result {
            Ok(id) => seen.push(id),
            Err(error) => {
                let mut message = format!("{error} {error:?}");
                let mut source = error.source();
                while let Some(cause) = source {
                    message += &format!(" {cause}");
                    source = cause.source();
                }
                messages.insert(message.replace(['\t', '\n'], " "));
                failure = Some(error);
            }
        }
        if Instant::now() >= until {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let kind = match &failure {
        None => "",
        Some(error) if error.is_transient() => "unavailable",
        Some(error) if error.is_bad_response() => "bad-response",
        Some(_) => "refused",
    };
    let unknown = failure.as_ref().is_some_and(IdsError::outcome_is_unknown);
    let distinct: HashSet<_> = seen.iter().collect();
    let (longest, ids, distinct) = (longest.as_millis(), seen.len(), distinct.len());
    format!("{name}\t{call}\t{kind}\t{unknown}\t0\t{longest}\t{ids}\t{distinct}\t{messages:?}\n")
}

fn in_rust(arguments: &[String]) -> String {
    let token: Arc<str> = arguments[0].as_str().into();
    let run = |case: &String| {
        let (name, url) = case.split_once('=').unwrap();
        let (name, url, token) = (name.to_owned(), url.to_owned(), Arc::clone(&token));
        let open = move |timeout| {
            let options = IdsOptions {
                token: Some(format!("{token}\n")),
                timeout,
                prefetch_count: if url.ends_with("/bulk") { 10_000 } else { 100 },
                ..IdsOptions::default()
            };
            Ids::new(&[&url], "snowflake", options).unwrap()
        };
        thread::spawn(move || {
            let now = Instant::now();
            let next = call(&open(TIMEOUT), &name, "next", now + CALLING, Ids::next);
            let append = |ids: &Ids| {
                let event = json!({ "event": "Paid", "entities": {} });
                ids.append("aa77f99c", &[event]).map(|_| 0)
            };
            next + &call(&open(APPEND_TIMEOUT), &name, "append", now, append)
        })
    };
    let running: Vec<_> = arguments[1..].iter().map(run).collect();
    running
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect()
}

#[test]
fn rust_copes_with_a_hostile_server() {
    assert_copes(in_rust);
}
