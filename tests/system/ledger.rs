//! Checks chains of events with a program in Python. It shares only the definition of chains with
//! idmint, and no code.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use idmint_records::ledger::{ChainChecker, ChainLines, Event, EventId, EventTime, LedgerId};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use idmint_testing::chains::{Chain, chains};

/// Runs the Python checker on these lines. Returns `true` if it found the chain valid, and its
/// output.
pub(crate) fn check_in_python(lines: &[String], after: Option<EventId>) -> (bool, String) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/system/ledger_check.py");
    let mut command = Command::new("python3");
    command.arg("-I").arg(program);
    if let Some(after) = after {
        command.args(["--after", &after.to_string()]);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut input = child.stdin.take().unwrap();
    let text = lines.join("\n");
    // Ignore an error. The checker may exit at the first invalid event without reading the rest.
    let _ = input.write_all(text.as_bytes());
    drop(input);
    let output = child.wait_with_output().unwrap();
    (
        output.status.success(),
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned(),
    )
}

/// Returns idmint's verdict on a chain, in the format of the Python checker.
fn ours(lines: &[String]) -> String {
    let mut chain = ChainLines::new(ChainChecker::from_genesis());
    chain.read(lines.join("\n").as_bytes()).unwrap();
    let verdict = chain.end();
    match verdict.error {
        None => format!("ok {} {}", verdict.events, verdict.head.unwrap()),
        Some(error) => format!("error {} {}", error.index, error.reason),
    }
}

#[test]
fn every_published_chain_is_judged_as_published() {
    for Chain {
        name,
        ledger,
        lines,
        outcome,
    } in chains()
    {
        let expected = match outcome {
            Ok(head) => (
                head.ends_with(&ledger),
                format!("ok {} {head}", lines.len()),
            ),
            Err((index, reason)) => (false, format!("error {index} {reason}")),
        };
        assert_eq!(check_in_python(&lines, None), expected, "{name}");
    }
    let Chain { lines, outcome, .. } = chains().swap_remove(1);
    let trusted = Event::from_json(lines[4].as_bytes()).unwrap().id();
    assert_eq!(
        check_in_python(&lines[5..], trusted),
        (true, format!("ok {} {}", lines.len() - 5, outcome.unwrap()))
    );
}

/// Draws a JSON value with numbers and texts that two programs easily write differently.
fn hard_value(random: &mut StdRng) -> String {
    match random.random_range(0..6) {
        0 => format!("{}", random.random::<i64>() >> random.random_range(11..63)),
        1 => format!("{:e}", f64::from_bits(random.random::<u64>() & !(1 << 62))),
        2 => format!(
            "{:.*}",
            random.random_range(1..17),
            random.random_range(-1e6..1e6)
        ),
        3 => format!(
            "{}E{}",
            random.random_range(1..1000),
            random.random_range(-30..30)
        ),
        4 => {
            let c = char::from_u32(random.random_range(0..0x1_1000)).unwrap_or('"');
            let escaped: String = c
                .encode_utf16(&mut [0; 2])
                .iter()
                .map(|unit| format!("\\u{unit:04x}"))
                .collect();
            format!("\"a{escaped}b\"")
        }
        _ => format!(
            r#"{{"ﬀ":[],"😀":{},"z":null,"\"":true}}"#,
            random.random_range(0..9)
        ),
    }
}

#[test]
fn random_chains_and_damaged_ones_are_judged_alike() {
    const EVENTS: u64 = 400;
    let mut random = StdRng::seed_from_u64(7);
    let mut lines: Vec<String> = Vec::new();
    let mut head: Option<EventId> = None;
    for at in 0..EVENTS {
        let time = EventTime::from_micros(1_700_000_000_000_000 + at * 1_000_003).unwrap();
        let members = format!(
            r#""data":[{},{}],"event":"e{at}","meta":{{"m":{}}},"entities":{{}},"timestamp":"{time}""#,
            hard_value(&mut random),
            hard_value(&mut random),
            hard_value(&mut random),
        );
        let event = Event::from_json(format!("{{{members}}}").as_bytes()).unwrap();
        let ledger = head.map_or_else(|| LedgerId::of_genesis(&event, time), EventId::ledger);
        let id = event.seal(
            time,
            ledger,
            head.unwrap_or_else(|| EventId::before_genesis(time, ledger)),
        );
        lines.push(format!("{{{members},\"eventId\":\"{id}\"}}"));
        head = Some(id);
    }
    assert_eq!(
        check_in_python(&lines, None),
        (true, format!("ok {EVENTS} {}", head.unwrap()))
    );

    for _ in 0..60 {
        let mut damaged = lines[..20].to_vec();
        let at = random.random_range(0..damaged.len());
        match random.random_range(0..4) {
            0 => drop(damaged.remove(at)),
            1 => damaged.swap(at, 0),
            2 => damaged.insert(at, lines[at].clone()),
            _ => {
                let place = random.random_range(0..damaged[at].len());
                let mut bytes = damaged[at].clone().into_bytes();
                bytes[place] = b"0a\",}:"[random.random_range(0..6)];
                damaged[at] = String::from_utf8_lossy(&bytes).into_owned();
            }
        }
        let (_, said) = check_in_python(&damaged, None);
        let (ours, theirs): (Vec<_>, Vec<_>) = (
            ours(&damaged).split(' ').map(str::to_owned).collect(),
            said.split(' ').collect(),
        );
        // If an event has several faults, the two checkers may report different ones. Both must
        // report the same event.
        assert_eq!(ours[..2], theirs[..2], "{ours:?}, {said}");
    }
}
