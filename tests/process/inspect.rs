//! Checks `idmint inspect`, which determines the format of the ids in a file of any size.

use std::fs;
use std::io::{BufWriter, Read, Write};
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::memory::peak_kib;
use idmint_testing::service::{Home, idmint, run};

const LINES: u32 = 100_000;

/// Returns a UUID of version 7 with a time in the last hundred seconds. A multiplication of `at`
/// gives its random bits.
fn uuid7(at: u128) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_millis();
    let random = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    let value = (now - 100_000 + at) << 80
        | 7 << 76
        | (random >> 50 & 0xfff) << 64
        | 2 << 62
        | random >> 64 & !(3 << 62);
    let hex = format!("{value:032x}");
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

#[test]
fn a_long_file_is_judged_in_little_memory() {
    let mut command = idmint(&["inspect", "--column", "the id"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = BufWriter::new(child.stdin.take().unwrap());
    writeln!(input, "number,the id").unwrap();
    for at in 0..LINES {
        writeln!(
            input,
            "{at},{}",
            if at == 70_000 {
                uuid7(3)
            } else {
                uuid7(at.into())
            }
        )
        .unwrap();
    }
    input.flush().unwrap();
    let peak_kib = peak_kib(child.id());
    drop(input);
    let mut out = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{out}");
    println!("{LINES} lines: {peak_kib} KiB");
    assert!(peak_kib < 16 * 1024, "{peak_kib} KiB");
    let verdict: Value = serde_json::from_str(&out).unwrap();
    let members = ["format", "certainty", "lines", "ids", "none"].map(|name| &verdict[name]);
    assert_eq!(
        json!(members),
        json!(["uuid7", "certain", LINES, LINES, 0]),
        "{verdict}"
    );
    assert!(verdict["backwards"].as_u64() >= Some(1), "{verdict}");
}

#[test]
fn several_files_are_one_column_and_people_get_lines() {
    let home = Home::new();
    let [one, two] = ["one.txt", "two.txt"].map(|name| home.path(name));
    fs::write(&one, format!("id\n{}\n\n{}\n", uuid7(1), uuid7(2))).unwrap();
    fs::write(&two, format!("{}\r\n{}\r\n", uuid7(3), uuid7(4))).unwrap();
    let [one, two] = [&one, &two].map(|path| path.to_str().unwrap());
    let done = run(idmint(&["inspect", "--text", one, two]));
    done.assert(0, &[]);
    for line in [
        "format      uuid7 (uuid), ",
        "lines       5",
        "blank       1",
        "none        1 (row 1)",
        "duplicates  0",
        "backwards   ",
    ] {
        assert!(done.out.contains(line), "{line:?} is not in {}", done.out);
    }
    let numbers = home.path("numbers.csv");
    fs::write(
        &numbers,
        (1..=50).map(|at| format!("{at},x\n")).collect::<String>(),
    )
    .unwrap();
    let numbers = numbers.to_str().unwrap();
    let untold = run(idmint(&["inspect", "--text", "--column", "1", numbers]));
    untold.assert(1, &["the format of these lines could not be determined"]);
    assert!(
        untold.out.starts_with("format      unknown: "),
        "{}",
        untold.out
    );
    let headed = run(idmint(&["inspect", "--column", "1", "--header", numbers]));
    headed.assert(1, &[]);
    assert_eq!(
        serde_json::from_str::<Value>(&headed.out).unwrap()["lines"],
        49
    );
    let named = run(idmint(&["inspect", "--format", "uuid7", one, two]));
    named.assert(0, &[]);
    assert_eq!(
        serde_json::from_str::<Value>(&named.out).unwrap()["certainty"],
        "named"
    );
}

#[test]
fn what_cannot_be_read_is_refused() {
    let home = Home::new();
    let path = home.path("bad.csv");
    fs::write(&path, "id,b\n1,2\n1,2,3\n").unwrap();
    let path = path.to_str().unwrap();
    run(idmint(&["inspect", "--column", "id", path])).assert(65, &["line: 3"]);
    run(idmint(&["inspect", "--column", "c", path]))
        .assert(64, &["column \"c\" does not exist; the columns are id, b"]);
    run(idmint(&["inspect", "--header", path])).assert(64, &["--column"]);
    run(idmint(&["inspect", "--format", "nothing", path])).assert(64, &["nothing"]);
    run(idmint(&["inspect", "/nonexistent"])).assert(74, &["/nonexistent"]);
    fs::write(path, "x".repeat(9000)).unwrap();
    run(idmint(&["inspect", path])).assert(65, &["line 1 is longer"]);
}

#[test]
fn old_ids_that_a_named_format_can_mint_again_are_counted() {
    let home = Home::new();
    let old = home.path("old.txt");
    // The time of the first id is in the future, so `payment` can mint it again. The second time
    // has passed, the third text has letters of both cases, and the fourth is too long.
    fs::write(&old, "ZZ0000000\n000000000\n03nvoJDIi\nZZ00000000\n").unwrap();
    let old = old.to_str().unwrap();
    let counted = run(idmint(&["inspect", old, "--format", "payment", "--text"]));
    let line = "mintable    1 of 4 lines can be minted again\n";
    assert!(counted.out.contains(line), "{}", counted.out);
    let counted = run(idmint(&["inspect", old, "--format", "payment", "--json"]));
    let verdict: Value = serde_json::from_str(&counted.out).unwrap();
    assert_eq!(verdict["mintable"], 1, "{verdict}");
    for others in [
        &["inspect", old][..],
        &["inspect", old, "--format", "uuid4"],
    ] {
        let counted = run(idmint(others));
        assert!(!counted.out.contains("mintable"), "{}", counted.out);
    }
}
