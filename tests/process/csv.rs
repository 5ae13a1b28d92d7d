//! Checks `idmint decode --csv`, which adds columns to a CSV file of any size.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::memory::peak_kib;
use idmint_testing::service::{Home, idmint, run};

const LINES: usize = 100_000;

/// Returns row `at` of the input, and the same row with the added columns.
fn line(at: usize) -> (String, String) {
    let note = format!("\"note, {at}\nwith \"\"quotes\"\"\"");
    let (id, columns) = match at % 4 {
        0 => ("1I9ZC1002".to_owned(), "payment,2026-11-21T03:36:01Z,0,,"),
        1 => (
            "175928847299117063".to_owned(),
            "snowflake,2016-04-30T11:18:25.796Z,1,true,",
        ),
        2 => (
            "017f22e2-79b0-7cc3-98c4-dc0c0c07398f".to_owned(),
            "uuid7,2022-02-22T19:22:22.000Z,,,",
        ),
        _ => (format!("none {at}"), ",,,,"),
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
        "number,note,the id,format,time,worker,ambiguous,the id_note\r\n".to_owned(),
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
        // Test both ways to select the column: by its number with a file, and by its name with
        // standard input.
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
                let peak_kib = peak_kib(child.id());
                assert!(peak_kib < 10 * 1024, "{peak_kib} KiB");
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
            why.contains("25000 of 100000 texts are not ids of any format"),
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
    let strict = run(idmint(&[
        "decode", "--csv", "--strict", "--column", "1", path,
    ]));
    strict.assert(1, &["1 of 2"]);
    assert_eq!(
        strict.out,
        "1i9zc1002,,,,,\n1I9ZC1002,payment,2026-11-21T03:36:01Z,0,,\n"
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
    let columns = "payment,2026-11-21T03:36:01Z,0,";
    assert_eq!(
        lenient.out,
        format!("1i9zc1002,{columns},read as 1I9ZC1002\n1I9ZC1002,{columns},\n")
    );
}

/// Returns Sonyflake ids of one machine, minted at irregular times in the last days. Many of them
/// also look like Snowflake ids of Discord or Twitter.
fn sonyflakes(count: u64) -> Vec<u64> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = u64::try_from(since_1970.as_millis()).unwrap() / 10 - 140_952_960_000;
    let id = |at: u64| {
        // The format of ids from the last minutes is clear. The format of older ids may be
        // ambiguous, depending on the day.
        let ago = (count - at) * 900 + at * at * 7_919 % 890;
        (now - ago) << 24 | (at % 2) << 16 | 0x1234
    };
    (0..count).map(id).collect()
}

#[test]
fn rows_are_read_as_ids_of_the_format_of_their_column() {
    let home = Home::new();
    let path = home.path("column.csv");
    let path = path.to_str().unwrap();
    let ids = sonyflakes(300);
    let mut text = "a;id\n".to_owned();
    ids.iter().for_each(|id| writeln!(text, "x;{id}").unwrap());
    text += "x;017f22e2-79b0-7cc3-98c4-dc0c0c07398f\nx;none\n";
    let mut utf16 = vec![0xff, 0xfe];
    utf16.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    for bytes in [
        text.clone().into_bytes(),
        ["\u{feff}", &text].concat().into_bytes(),
        utf16,
    ] {
        fs::write(path, bytes).unwrap();
        let read = run(idmint(&["decode", "--csv", "--column", "id", path]));
        read.assert(1, &["1 of 302"]);
        let lines: Vec<_> = read.out.lines().collect();
        assert_eq!(lines[0], "a;id;format;time;worker;ambiguous;note");
        for (line, id) in lines[1..301].iter().zip(&ids) {
            assert!(line.starts_with(&format!("x;{id};sonyflake;")), "{line}");
            assert!(line.ends_with(";4660;;"), "{line}");
        }
        let note = "not an id of sonyflake, the format of the column";
        assert!(lines[301].contains(";uuid7;2022-"), "{}", lines[301]);
        assert!(lines[301].ends_with(note), "{}", lines[301]);
        assert_eq!(lines[302], format!("x;none;;;;;{note}"));
    }
    let named = run(idmint(&[
        "decode", "--csv", "--column", "id", "--format", "twitter", path,
    ]));
    assert!(named.out.contains(";twitter;"), "{}", named.out);
    run(idmint(&["decode", "--csv", path])).assert(64, &["column 2 (\"id\"", "sonyflake"]);
    fs::write(path, "id\n175928847299117063\n").unwrap();
    run(idmint(&["decode", "--csv", "--column", "id", path])).assert(0, &["not certain"]);
}

#[test]
fn rounded_ids_of_a_column_are_noted() {
    let home = Home::new();
    let path = home.path("rounded.csv");
    let path = path.to_str().unwrap();
    // These are ids of Mastodon. They are so small that a single rounded id gets no note. Only the
    // whole column shows that the last digits were lost.
    let ids: Vec<u64> = (1..=400)
        .map(|at| (1_700_000_000_000 + at * 7_919) << 16 | at)
        .collect();
    #[allow(clippy::cast_precision_loss, reason = "digits are lost on purpose")]
    let rounded: String = ids.iter().map(|id| format!("{}\n", *id as f64)).collect();
    let exact: String = ids.iter().map(|id| format!("{id}\n")).collect();
    for (lines, is_noted) in [(rounded, true), (exact, false)] {
        fs::write(path, format!("id\n{lines}")).unwrap();
        let read = run(idmint(&["decode", "--csv", "--column", "id", path]));
        read.assert(0, &[]);
        assert_eq!(read.err.contains("look rounded"), is_noted, "{}", read.err);
    }
}

#[test]
fn blank_lines_of_a_file_with_one_column_are_kept() {
    let home = Home::new();
    let path = home.path("blank.csv");
    let path = path.to_str().unwrap();
    for end in ["\n", "\r\n"] {
        let lines = [
            "",
            "id",
            "1I9ZC1000",
            "",
            "\"1I9ZC1001\"",
            "",
            "",
            "1I9ZC1002",
            "",
        ];
        fs::write(path, lines.join(end)).unwrap();
        let read = run(idmint(&["decode", "--csv", "--column", "id", path]));
        read.assert(1, &["3 of 6"]);
        let ids = read.out.lines().map(|line| line.split(',').next().unwrap());
        let ids: Vec<_> = ids.collect();
        assert_eq!(
            ids,
            ["id", "1I9ZC1000", "", "1I9ZC1001", "", "", "1I9ZC1002"]
        );
        let inspected = run(idmint(&["inspect", "--column", "id", "--text", path]));
        assert!(inspected.out.contains("blank       3"), "{}", inspected.out);
    }
}

#[test]
fn the_separator_is_found_if_the_last_cell_has_several_lines() {
    let home = Home::new();
    let path = home.path("quoted.csv");
    let path = path.to_str().unwrap();
    // The second cell is longer than the 64 KiB that determine the separator.
    for cell in ["a\nb".to_owned(), "a, b\n".repeat(20_000)] {
        fs::write(path, format!("id;n;x\n1I9ZC1002;\"{cell}\";c")).unwrap();
        let read = run(idmint(&["decode", "--csv", "--column", "id", path]));
        read.assert(0, &[]);
        assert!(read.out.contains(";c;payment;2026-"), "{}", read.out);
    }
}

#[test]
fn what_is_no_csv_or_has_no_such_column_is_refused() {
    let home = Home::new();
    let path = home.path("bad.csv");
    let path = path.to_str().unwrap();
    let mut open_quote = "id\n\"".to_owned();
    (0..200_000).for_each(|at| writeln!(open_quote, "{at}").unwrap());
    for (text, column, code, words) in [
        (
            "id,b\n1,2\n",
            "c",
            64,
            "column \"c\" does not exist; the columns are id, b",
        ),
        (
            "id,b\n1,2\n",
            "3",
            64,
            "column 3 does not exist: the first record has 2",
        ),
        ("id,b\n1,2\n1,2,3\n", "id", 65, "line: 3"),
        (open_quote.as_str(), "id", 65, "a quote is not closed"),
        (
            "id,b\n1I9ZC1000,a \"b\"\n1I9ZC1001,\"b\"\"\n1I9ZC1002,c\n",
            "id",
            65,
            "the quote in line 3 is not closed",
        ),
        (
            "id,b\r1I9ZC1000,a\r1I9ZC1001,\"b\r",
            "id",
            65,
            "the quote in line 3 is not closed",
        ),
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

#[test]
fn a_row_is_noted_as_rounded_only_if_more_rows_look_rounded_than_by_chance() {
    let home = Home::new();
    let path = home.path("twitter.csv");
    let path = path.to_str().unwrap();
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = u64::try_from(since_1970.as_millis()).unwrap() - 1_288_834_974_657;
    let exact = (1..=300).map(|at| ((now - at * 7_919) << 22) | ((at % 3) << 12) | (at % 7));
    let exact: Vec<u64> = exact.collect();
    #[allow(clippy::cast_precision_loss, reason = "digits are lost on purpose")]
    let rounded = exact.iter().map(|id| (*id as f64).to_string());
    let rounded: Vec<String> = rounded.collect();
    for (rounded_rows, noted) in [(1, 0..=0), (150, 130..=150)] {
        let mut ids: Vec<_> = exact.iter().map(u64::to_string).collect();
        ids[..rounded_rows].clone_from_slice(&rounded[..rounded_rows]);
        fs::write(path, format!("id\n{}\n", ids.join("\n"))).unwrap();
        let read = run(idmint(&["decode", "--csv", "--column", "id", path]));
        read.assert(0, &[]);
        assert!(read.out.contains(",twitter,"), "{}", read.out);
        let count = read.out.matches("looks rounded").count();
        assert!(noted.contains(&count), "{count} notes, not {noted:?}");
    }
}

#[test]
fn an_added_column_has_another_name_than_those_of_the_file() {
    let home = Home::new();
    let path = home.path("names.csv");
    let path = path.to_str().unwrap();
    fs::write(path, "id,time,note,id_note\n1I9ZC1002,a,b,c\n").unwrap();
    let read = run(idmint(&["decode", "--csv", "--column", "id", path]));
    read.assert(0, &[]);
    let heading = "id,time,note,id_note,format,id_time,worker,ambiguous,id_note_2\n";
    assert!(read.out.starts_with(heading), "{}", read.out);
    fs::write(path, "id,a,id\n1I9ZC1002,a,1I9ZC1003\n").unwrap();
    for command in [&["decode", "--csv"][..], &["inspect"]] {
        let args = [command, &["--column", "id", path]].concat();
        run(idmint(&args)).assert(64, &["\"id\" is the name of the columns 1, 3"]);
    }
}
