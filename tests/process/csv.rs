//! `idmint decode --csv`: columns for a file of any size.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::memory::resident_peak_kib;
use crate::service::{Home, idmint, run};

const LINES: usize = 100_000;

/// A line of a file, and the same with the columns that it gets.
fn line(at: usize) -> (String, String) {
    let note = format!("\"note, {at}\nwith \"\"quotes\"\"\"");
    let (id, columns) = match at % 4 {
        0 => ("1I9ZC1002".to_owned(), "payment,2026-11-21T03:36:01Z,0"),
        1 => (
            "175928847299117063".to_owned(),
            "snowflake,2016-04-30T11:18:25.796Z,1",
        ),
        2 => (
            "017f22e2-79b0-7cc3-98c4-dc0c0c07398f".to_owned(),
            "uuid7,2022-02-22T19:22:22.000Z,",
        ),
        _ => (format!("none {at}"), ",,"),
    };
    (
        format!("{at},{note},{id}\r\n"),
        format!("{at},{note},{id},{columns}\r\n"),
    )
}

#[test]
fn a_long_file_gets_its_columns_in_little_memory() {
    let home = Home::new();
    let path = home.path("long.csv");
    let (mut text, mut expected) = (
        "number,note,the id\r\n".to_owned(),
        "number,note,the id,format,time,worker\r\n".to_owned(),
    );
    for at in 0..LINES {
        let (before, after) = line(at);
        text.push_str(&before);
        expected.push_str(&after);
    }
    fs::write(&path, &text).unwrap();
    for by_number in [false, true] {
        let columns: &[&str] = if by_number {
            &["3", "--header"]
        } else {
            &["the id"]
        };
        let mut command = idmint(&[&["decode", "--csv", "--column"], columns].concat());
        // By name from standard input, by number from a file.
        if by_number {
            command.arg(&path).stdin(Stdio::null());
        } else {
            command.stdin(File::open(&path).unwrap());
        }
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut told = String::new();
        while out.read_line(&mut told).unwrap() > 0 {
            if told.len() > expected.len() / 10 * 9 && told.len() < expected.len() / 10 * 9 + 80 {
                let peak_kib = resident_peak_kib(child.id());
                assert!(peak_kib < 32 * 1024, "{peak_kib} KiB");
            }
        }
        assert!(
            told == expected,
            "{} bytes and not {}",
            told.len(),
            expected.len()
        );
        let mut why = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut why)
            .unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{why}");
        assert!(
            why.contains("25000 of 100000 are ids of no format"),
            "{why}"
        );
    }
}

#[test]
fn a_file_without_a_header_and_ids_as_people_write_them() {
    let home = Home::new();
    let path = home.path("short.csv");
    fs::write(&path, "1i9zc1002\n\"1I9ZC1002\"\n").unwrap();
    let path = path.to_str().unwrap();
    let strict = run(idmint(&["decode", "--csv", "--column", "1", path]));
    strict.assert(1, &["1 of 2"]);
    assert_eq!(
        strict.out,
        "1i9zc1002,,,\n1I9ZC1002,payment,2026-11-21T03:36:01Z,0\n"
    );
    let lenient = run(idmint(&[
        "decode",
        "--csv",
        "--lenient",
        "--column",
        "1",
        path,
    ]));
    lenient.assert(0, &[]);
    let columns = "payment,2026-11-21T03:36:01Z,0";
    assert_eq!(
        lenient.out,
        format!("1i9zc1002,{columns}\n1I9ZC1002,{columns}\n")
    );
}

#[test]
fn what_is_no_csv_or_has_no_such_column_is_refused() {
    let home = Home::new();
    let path = home.path("bad.csv");
    let path = path.to_str().unwrap();
    let mut open_quote = "id\n\"".to_owned();
    (0..200_000).for_each(|at| writeln!(open_quote, "{at}").unwrap());
    for (text, column, code, words) in [
        ("id,b\n1,2\n", "c", 64, "no column \"c\", there is id, b"),
        ("id,b\n1,2\n", "3", 64, "no column 3, records have 2"),
        ("id,b\n1,2\n1,2,3\n", "id", 65, "line: 3"),
        (open_quote.as_str(), "id", 65, "a quote stands open"),
    ] {
        fs::write(path, text).unwrap();
        run(idmint(&["decode", "--csv", "--column", column, path])).assert(code, &[words]);
    }
    run(idmint(&["decode", "--csv", path])).assert(64, &["--column"]);
    run(idmint(&["decode", "--column", "id", path])).assert(64, &["--csv"]);
    run(idmint(&[
        "decode", "--csv", "--column", "id", "--json", path,
    ]))
    .assert(64, &["--json"]);
    run(idmint(&["decode", "--csv", "--column", "id", path, path])).assert(64, &["one file"]);
    run(idmint(&[
        "decode",
        "--csv",
        "--column",
        "id",
        "/nonexistent",
    ]))
    .assert(74, &["/nonexistent"]);
}
