//! Checks the output and the exit codes of `idmint ledger verify`.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::memory::peak_kib;
use idmint_testing::chain_with_keys::WITH_KEYS;
use idmint_testing::chains::{Chain, chains};
use idmint_testing::service::{Ended, Home, idmint, run};

/// Writes these lines to a file, and verifies them with the command.
fn verify(lines: &[String], args: &[&str]) -> Ended {
    let home = Home::new();
    let file = home.path("events.ndjson");
    std::fs::write(&file, lines.join("\n")).unwrap();
    run(idmint(
        &[&["ledger", "verify", file.to_str().unwrap()], args].concat(),
    ))
}

/// Returns a valid chain that contains every shape of event.
fn long_chain() -> Chain {
    chains().swap_remove(1)
}

fn id_of(line: &str) -> &str {
    &line.rsplit_once("eventId\":\"").unwrap().1[..32]
}

#[test]
fn every_published_chain_comes_out_as_published() {
    for Chain {
        name,
        ledger,
        lines,
        outcome,
    } in chains()
    {
        let ended = verify(&lines, &[]);
        let json = verify(&lines, &["--json", "--ledger", &ledger]);
        let told: Value = serde_json::from_str(&json.out).unwrap();
        match outcome {
            Ok(head) => {
                ended.assert(0, &[]);
                assert_eq!(
                    ended.out,
                    format!(
                        "valid: {} events of ledger {ledger}, head {head}\n",
                        lines.len()
                    ),
                    "{name}"
                );
                json.assert(0, &[]);
                assert_eq!(
                    told,
                    json!({ "valid": true, "events": lines.len(), "head": head }),
                    "{name}"
                );
            }
            Err((index, reason)) => {
                let place = format!("line {} of {}: {reason}: ", index + 1, lines.len());
                ended.assert(65, &["not valid: ", &place, "expected ", "found "]);
                assert_eq!(ended.out, "", "{name}");
                json.assert(65, &[&place]);
                assert_eq!(
                    (&told["error"]["index"], &told["error"]["reason"]),
                    (&json!(index), &json!(reason)),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn a_chain_with_entities_and_keys_is_checked_and_explained() {
    let lines = WITH_KEYS.map(str::to_owned);
    verify(&lines, &[]).assert(0, &[]);
    let changed = [lines[0].clone(), lines[1].replace("3dc5de3e", "3dc5de3f")];
    let ended = verify(&changed, &["--explain"]);
    ended.assert(65, &["checksum_mismatch"]);
    // For an event with an entity and a key, the checksum covers the ledger first and then the
    // time.
    let steps: Vec<_> = ended
        .out
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    let order = [
        "entity",
        "key",
        "event",
        "meta",
        "data",
        "ledger",
        "timestamp",
        "previous",
    ];
    assert!(
        steps.windows(order.len()).any(|steps| steps == order),
        "{}",
        ended.out
    );
    assert!(ended.out.contains("3dc5de3e"), "{}", ended.out);
}

#[test]
fn a_part_of_a_chain_is_checked_after_an_event_that_is_trusted() {
    let Chain { ledger, lines, .. } = long_chain();
    let after = id_of(&lines[4]);
    verify(&lines[5..], &["--after", after]).assert(0, &[]);
    verify(&lines[5..], &["--after", after, "--ledger", &ledger]).assert(0, &[]);
    verify(&lines[6..], &["--after", after]).assert(65, &["line 1 of 7: checksum_mismatch"]);
    verify(&lines[5..], &[]).assert(65, &["line 1 of 8: ledger_mismatch"]);
    verify(&lines, &["--ledger", "aa77f998"])
        .assert(65, &["line 1 of 13: ledger_mismatch", "expected aa77f998"]);
}

#[test]
fn what_is_not_there_and_what_is_no_id_has_its_own_code() {
    let Chain { lines, .. } = long_chain();
    verify(&[], &[]).assert(65, &["the input has no event"]);
    verify(&[lines[0].clone(), String::new(), lines[1].clone()], &[])
        .assert(65, &["line 2 of 3: invalid_json"]);
    verify(&[" ".repeat(1024 * 1024 + 1)], &[])
        .assert(65, &["line 1 is longer than 1048576 bytes"]);
    verify(&lines, &["--ledger", "AA77F99C"]).assert(64, &["AA77F99C", "lower-case"]);
    verify(&lines, &["--after", "1"]).assert(64, &["wrong_length"]);
    let after = id_of(&lines[4]);
    verify(&lines, &["--after", after, "--ledger", "aa77f998"])
        .assert(64, &["ledger aa77f99c, but --ledger is aa77f998"]);
    run(idmint(&["ledger", "verify", "/nonexistent/events"])).assert(74, &["/nonexistent/events"]);
    run(idmint(&["ledger", "verify"])).assert(65, &["the input has no event"]);
}

#[test]
fn standard_input_of_any_length_is_checked_in_bounded_memory() {
    const MIB: usize = 1024 * 1024;
    let Chain { lines, .. } = long_chain();
    let mut command = idmint(&["ledger", "verify"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let piece = format!("{}\n", lines.join("\n")).repeat(MIB / lines.concat().len());
    (0..64).for_each(|_| input.write_all(piece.as_bytes()).unwrap());
    let peak_kib = peak_kib(child.id());
    drop(input);
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(65), "{said}");
    assert!(
        said.contains(&format!(
            "line 14 of {}: not_monotonic",
            64 * piece.lines().count()
        )),
        "{said}"
    );
    assert!(peak_kib < 16 * 1024, "{peak_kib} KiB");
}

#[test]
fn the_first_bad_event_is_explained_on_demand() {
    for Chain {
        name,
        lines,
        outcome,
        ..
    } in chains()
    {
        let drawn = verify(&lines, &["--explain"]);
        let told: Value =
            serde_json::from_str(&verify(&lines, &["--explain", "--json"]).out).unwrap();
        let steps = told["steps"].as_array().unwrap();
        let Err((_, "checksum_mismatch")) = outcome
            .as_ref()
            .map_err(|(index, reason)| (index, reason.as_str()))
        else {
            assert!(
                outcome.is_err() || steps.is_empty(),
                "{name}: nothing is wrong with it"
            );
            continue;
        };
        let names: Vec<&str> = steps
            .iter()
            .map(|step| step["step"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "event",
                "entities",
                "meta",
                "data",
                "timestamp",
                "ledger",
                "previous"
            ],
            "{name}"
        );
        let checksum = steps[6]["crc32c"].as_str().unwrap();
        let expected = told["error"]["expected"].as_str().unwrap();
        assert_eq!(
            checksum,
            &expected[16..24],
            "{name}: the last checksum is that of the id"
        );
        for step in steps {
            assert!(
                drawn.out.contains(step["crc32c"].as_str().unwrap()),
                "{name}: {step} is not in {}",
                drawn.out
            );
        }
        drawn.assert(65, &["not valid"]);
    }
}
