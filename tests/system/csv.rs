//! Runs `idmint decode --csv` with a file of a million lines.

use std::fs;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::process::{ChildStdin, Stdio};
use std::thread;
use std::time::Instant;

use idmint_core::id::Format;
use rand::SeedableRng;
use rand::rngs::StdRng;

use idmint_testing::any_id::any_id;
use idmint_testing::service::{Home, idmint, run};

/// The number of lines, unless the variable `CSV_LINES` sets another number.
const LINES: usize = 300_000;
/// The number of distinct ids. They repeat throughout the file.
const IDS: usize = 2_000;
const PEAK_MAX_KIB: u64 = 64 * 1024;

/// Returns ids of several formats. Each comes with the columns that the command adds for it in a
/// short file.
fn ids_and_columns() -> Vec<(String, String)> {
    let formats =
        ["snowflake", "uuid7", "ulid", "payment"].map(|name| Format::built_in(name).unwrap());
    let mut random = StdRng::seed_from_u64(31);
    let ids: Vec<String> = (0..IDS)
        .map(|at| {
            let format = &formats[at % formats.len()];
            format.canonical().to_text(any_id(format, &mut random))
        })
        .collect();
    let home = Home::new();
    let file = home.path("short.csv");
    fs::write(&file, ids.join("\n") + "\n").unwrap();
    let ended = run(idmint(&[
        "decode",
        "--csv",
        "--column",
        "1",
        file.to_str().unwrap(),
    ]));
    let lines = ended
        .out
        .lines()
        .map(|line| line.split_once(',').unwrap().1.to_owned());
    let columns: Vec<String> = lines.collect();
    assert_eq!(columns.len(), IDS);
    ids.into_iter().zip(columns).collect()
}

fn write_lines(input: ChildStdin, ids: &[(String, String)], lines: usize) {
    let mut input = BufWriter::new(input);
    for (at, (id, _)) in (0..lines).zip(ids.iter().cycle()) {
        writeln!(input, "{at},{id},a note").unwrap();
    }
    input.flush().unwrap();
}

/// Returns the peak memory of a process in KiB, without pages of files. The kernel decides how much
/// of the program's file it maps, which can be 30 MiB.
fn peak_kib_of(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let kib = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let value = line.expect("Linux reports it").trim();
        value.trim_end_matches(" kB").parse().unwrap()
    };
    kib("VmHWM:") - kib("RssFile:")
}

#[test]
fn any_number_of_lines_get_their_columns_in_64_mib() {
    let lines =
        std::env::var("CSV_LINES").map_or(LINES, |lines| lines.parse().expect("a number of lines"));
    let ids = ids_and_columns();
    let begun = Instant::now();
    let mut command = idmint(&["decode", "--csv", "--column", "2"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let input = child.stdin.take().unwrap();
    let mut peak_kib = 0;
    thread::scope(|scope| {
        scope.spawn(|| write_lines(input, &ids, lines));
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (mut line, mut expected) = (String::new(), String::new());
        for (at, (id, columns)) in (0..lines).zip(ids.iter().cycle()) {
            line.clear();
            expected.clear();
            assert!(
                output.read_line(&mut line).unwrap() > 0,
                "it ends before line {at}"
            );
            use std::fmt::Write as _;
            writeln!(expected, "{at},{id},a note,{columns}").unwrap();
            assert_eq!(line, expected);
            // Measure the memory near the end, while the program still runs. The pipes hold at most
            // 64 KiB of input and of output, so the program has processed nearly everything.
            if at == lines / 100 * 99 {
                peak_kib = peak_kib_of(child.id());
            }
        }
        line.clear();
        assert_eq!(output.read_line(&mut line).unwrap(), 0, "{line}");
    });
    let mut why = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut why)
        .unwrap();
    assert!(matches!(child.wait().unwrap().code(), Some(0 | 1)), "{why}");
    let took = begun.elapsed();
    println!("{lines} lines in {took:?}, {peak_kib} KiB at most");
    assert!((1..PEAK_MAX_KIB).contains(&peak_kib), "{peak_kib} KiB");
}
