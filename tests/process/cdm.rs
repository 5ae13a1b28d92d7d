//! Checks `idmint cdm`, which reads Conjunction Data Messages and inserts ids into them.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use idmint_testing::service::{Ended, Home, Service, Signal, idmint, run};

const FIRST: &str = "zwwqlzz-pjjmxmd-lkpvwq";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cdm")
        .join(name)
}

fn run_cdm(args: &[&str]) -> Ended {
    let mut all = vec!["cdm"];
    all.extend(args);
    run(idmint(&all))
}

fn feed_cdm(document: &Path, args: &[&str]) -> Output {
    let mut command = idmint(&["cdm"]);
    command
        .args(args)
        .stdin(File::open(document).unwrap())
        .output()
        .unwrap()
}

/// Copies a fixture into the folder of the test, and returns the path of the copy.
fn copy_fixture(home: &Home, name: &str) -> PathBuf {
    let path = home.path(name);
    fs::copy(fixture(name), &path).unwrap();
    path
}

const ALL: [&str; 13] = [
    "one.kvn",
    "several-crlf.kvn",
    "noted.kvn",
    "one.xml",
    "several.xml",
    "cdm.json",
    "cdm_public.json",
    "envelope.json",
    "leolabs.json",
    "other-names.json",
    "nested.json",
    "cdm_public.csv",
    "socrates.csv",
];

#[test]
fn a_document_is_told_by_its_content_and_comes_out_with_its_id() {
    for name in ALL {
        let output = feed_cdm(&fixture(name), &[]);
        let (sent, text) = (
            fs::read_to_string(fixture(name)).unwrap(),
            String::from_utf8(output.stdout).unwrap(),
        );
        assert_eq!(
            output.status.code(),
            Some(0),
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(
            text.contains(&format!("CONJUNCTION_EVENT_ID = {FIRST}"))
                || text.contains(&format!("\"{FIRST}\""))
        );
        assert_eq!(
            text.len() > sent.len(),
            name != "noted.kvn",
            "{name}: {text}"
        );
    }
    let one = fixture("one.kvn");
    let both = run_cdm(&[
        one.to_str().unwrap(),
        one.to_str().unwrap(),
        "--encoding",
        "decimal",
    ]);
    both.assert(0, &[]);
    assert_eq!(
        both.out
            .matches("COMMENT CONJUNCTION_EVENT_ID = 30025386125795551919250\n")
            .count(),
        2
    );
}

#[test]
fn a_message_of_version_2_gets_the_keyword_of_the_standard_unless_the_configuration_says_a_comment()
{
    let home = Home::new();
    let two = fixture("two.kvn");
    let name = two.to_str().unwrap();
    let ended = run_cdm(&[name]);
    ended.assert(0, &[]);
    assert!(
        ended
            .out
            .contains(&format!("\nCONJUNCTION_ID = {FIRST}\nTCA ")),
        "{}",
        ended.out
    );
    let config = home.path("comment.toml");
    fs::write(&config, "conjunction.note = \"comment\"\n").unwrap();
    let ended = run_cdm(&[name, "--config", config.to_str().unwrap()]);
    assert!(
        ended
            .out
            .contains(&format!("COMMENT CONJUNCTION_EVENT_ID = {FIRST}\n")),
        "{}",
        ended.out
    );

    let unknown = home.path("unknown.kvn");
    fs::write(
        &unknown,
        fs::read_to_string(&two)
            .unwrap()
            .replacen("= 2.0", "= 2.7", 1),
    )
    .unwrap();
    let ended = run_cdm(&[unknown.to_str().unwrap()]);
    ended.assert(
        0,
        &["unknown.kvn:1: CCSDS_CDM_VERS 2.7 is not known; the message was read as 2.0"],
    );
}

#[test]
fn ids_are_printed_with_their_files_and_lines() {
    let several = fixture("several-crlf.kvn");
    let name = several.to_str().unwrap();
    let ended = run_cdm(&["--ids", name]);
    ended.assert(0, &[]);
    let lines: Vec<Vec<&str>> = ended
        .out
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    assert_eq!(
        lines
            .iter()
            .map(|line| (line[0], line[1]))
            .collect::<Vec<_>>(),
        [(name, "1"), (name, "14"), (name, "28")]
    );
    assert_eq!(lines[0][2], FIRST);
    let output = feed_cdm(
        &fixture("noted.kvn"),
        &["--ids", "--encoding", "hex_padded"],
    );
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "-\t1\t065badf00018f200bc92\n"
    );
}

#[test]
fn files_are_replaced_together_or_not_at_all() {
    let home = Home::new();
    let files: Vec<_> = ALL.iter().map(|name| copy_fixture(&home, name)).collect();
    let names: Vec<_> = files.iter().map(|path| path.to_str().unwrap()).collect();
    let contents = || {
        files
            .iter()
            .map(|path| fs::read(path).unwrap())
            .collect::<Vec<_>>()
    };
    let before = contents();
    fs::write(home.path("bad.kvn"), "CCSDS_CDM_VERS = 1.0\nTCA = never\n").unwrap();
    let bad = home.path("bad.kvn");
    let ended = run_cdm(&[&["--in-place"], &names[..], &[bad.to_str().unwrap()]].concat());
    ended.assert(65, &["bad.kvn:2: TCA: \"never\" is not a time"]);
    assert_eq!((ended.out.as_str(), contents() == before), ("", true));

    fs::set_permissions(&files[0], Permissions::from_mode(0o640)).unwrap();
    let link = home.path("link.json");
    symlink(&files[5], &link).unwrap();
    let by_link: Vec<_> = names
        .iter()
        .map(|name| {
            if *name == names[5] {
                link.to_str().unwrap()
            } else {
                name
            }
        })
        .collect();
    let ended = run_cdm(&[&["--in-place"], &by_link[..]].concat());
    ended.assert(0, &[]);
    assert_eq!(ended.out, "");
    let after = contents();
    for (at, name) in ALL.iter().enumerate() {
        assert_eq!(after[at] == before[at], *name == "noted.kvn", "{name}");
        assert_eq!(after[at], feed_cdm(&fixture(name), &[]).stdout, "{name}");
    }
    assert!(link.is_symlink());
    assert_eq!(
        files[0].metadata().unwrap().permissions().mode() & 0o777,
        0o640
    );
    run_cdm(&[&["--in-place"], &names[..]].concat()).assert(0, &[]);
    assert!(contents() == after, "a second time nothing changes");
    let left: Vec<_> = fs::read_dir(home.path("."))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), ALL.len() + 2, "{left:?}");
}

#[test]
fn a_file_that_cannot_be_replaced_is_named_with_the_number_of_replaced_files() {
    let home = Home::new();
    let [first, last] = ["one.kvn", "one.xml"].map(|name| copy_fixture(&home, name));
    let message = fs::read(fixture("one.kvn")).unwrap();
    let of_last = fs::read(&last).unwrap();
    let names = [
        first.to_str().unwrap(),
        "/dev/stdin",
        last.to_str().unwrap(),
    ];
    let mut command = idmint(&["cdm", "--in-place"]);
    command.args(names).stdin(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&message).unwrap();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(74), "{told}");
    assert!(told.contains("/dev/stdin: "), "{told}");
    assert!(told.contains("1 of 3 files were replaced before"), "{told}");
    assert_ne!(fs::read(&first).unwrap(), message);
    assert_eq!(fs::read(&last).unwrap(), of_last);
}

#[test]
fn what_is_wrong_has_an_exit_code_and_a_place() {
    let home = Home::new();
    let (one, noted) = (
        fixture("one.kvn"),
        fs::read_to_string(fixture("noted.kvn")).unwrap(),
    );
    let (one, other) = (one.to_str().unwrap(), home.path("other.kvn"));
    let other_name = other.to_str().unwrap();
    fs::write(&other, noted.replace("= 25544", "= 25545")).unwrap();
    run_cdm(&[other_name]).assert(65, &["other.kvn:2: CONJUNCTION_EVENT_ID: \"zwwqlzz-pjjmxmd-lkpvwq\" is not the id of a conjunction of these two objects"]);
    fs::write(&other, noted.replace(FIRST, "nonsense")).unwrap();
    run_cdm(&[other_name]).assert(65, &["\"nonsense\" is not an id of this format"]);
    fs::write(&other, noted.replace("48274", "4194304")).unwrap();
    run_cdm(&[other_name]).assert(
        65,
        &[
            "other.kvn:12: OBJECT_DESIGNATOR: secondary is 4194304",
            "4194303",
        ],
    );
    run_cdm(&[one, "--format", "snowflake"]).assert(64, &["snowflake", "conjunction"]);
    run_cdm(&[one, "--encoding", "base36"]).assert(64, &["base36", "hex_padded"]);
    run_cdm(&["--in-place"]).assert(64, &["FILE"]);
    run_cdm(&["--in-place", "--ids", one]).assert(64, &["--ids"]);
    run_cdm(&["/nonexistent/message.kvn"]).assert(74, &["/nonexistent/message.kvn: "]);
    run_cdm(&[one, "--server", "http://127.0.0.1:1"]).assert(69, &["one.kvn: "]);
}

#[test]
fn what_a_service_wrote_is_accepted_offline_however_far_the_time_has_moved() {
    let home = Home::new();
    let noted = fs::read_to_string(fixture("noted.kvn")).unwrap();
    let file = home.path("moved.kvn");
    for tca in ["2024-032T00:00:01.4", "2024-034T06:00:00"] {
        let moved = noted.replace("2024-032T00:00:00.25", tca);
        assert_ne!(moved, noted);
        fs::write(&file, &moved).unwrap();
        let ended = run_cdm(&[file.to_str().unwrap()]);
        ended.assert(0, &[]);
        assert_eq!(ended.out, moved);
        assert!(
            run_cdm(&["--ids", file.to_str().unwrap()])
                .out
                .ends_with(&format!("\t{FIRST}\n"))
        );
    }
}

#[test]
fn a_configuration_says_what_the_pair_and_the_spelling_are() {
    let home = Home::new();
    let config = home.path("idmint.toml");
    fs::write(&config, "conjunction.pair_order = 'unordered'").unwrap();
    let swapped = fs::read_to_string(fixture("one.kvn"))
        .unwrap()
        .replace("OBJECT1", "OBJECT3")
        .replace("OBJECT2", "OBJECT1");
    let file = home.path("swapped.kvn");
    fs::write(&file, swapped.replace("OBJECT3", "OBJECT2")).unwrap();
    let ids = |args: &[&str]| run_cdm(&[&["--ids", file.to_str().unwrap()], args].concat()).out;
    assert!(ids(&["--config", config.to_str().unwrap()]).ends_with(&format!("\t1\t{FIRST}\n")));
    assert!(!ids(&[]).contains(FIRST));
}

#[test]
fn a_service_gives_the_same_ids_and_its_own_refusals() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let url = service.url();
    for name in ALL {
        let path = fixture(name);
        let path = path.to_str().unwrap();
        for args in [
            &[path] as &[_],
            &["--ids", path],
            &["--encoding", "hex_padded", path],
            &["--ids", "--encoding", "decimal", path],
        ] {
            let (offline, asked) = (
                run_cdm(args),
                run_cdm(&[args, &["--server", &url]].concat()),
            );
            asked.assert(0, &[]);
            assert_eq!(asked.out, offline.out, "{args:?}");
        }
    }
    // Both objects have the same designator, and only their catalogue numbers keep them apart.
    let unknown = home.path("unknown.json");
    let objects = r#""SAT1_OBJECT_DESIGNATOR":"UNKNOWN","SAT1_COMMENT_NORAD_ID":"25544",
        "SAT2_OBJECT_DESIGNATOR":"UNKNOWN","SAT2_COMMENT_NORAD_ID":"48274""#;
    fs::write(
        &unknown,
        format!(r#"[{{"TCA":"2024-02-01T00:00:00",{objects}}}]"#),
    )
    .unwrap();
    let unknown = unknown.to_str().unwrap();
    let asked = run_cdm(&[unknown, "--server", &url]);
    asked.assert(0, &[]);
    assert_eq!(asked.out, run_cdm(&[unknown]).out);

    let file = copy_fixture(&home, "several.xml");
    run_cdm(&["--in-place", file.to_str().unwrap(), "--server", &url]).assert(0, &[]);
    assert_eq!(
        fs::read(&file).unwrap(),
        feed_cdm(&fixture("several.xml"), &[]).stdout
    );

    let one = fixture("one.kvn");
    let one = one.to_str().unwrap();
    run_cdm(&[one, "--server", &url, "--format", "nonesuch"])
        .assert(1, &["one.kvn: 404", "nonesuch"]);
    run_cdm(&[one, "--server", &url, "--encoding", "base36"])
        .assert(1, &["one.kvn: 422", "base36"]);
    let bad = fixture("malformed/no-tca.kvn");
    run_cdm(&[bad.to_str().unwrap(), "--server", &url]).assert(65, &["no-tca.kvn:1: TCA: "]);
}

#[test]
fn what_designators_stand_for_is_read_again_without_a_restart() {
    let home = Home::new();
    let message = fs::read_to_string(fixture("one.kvn")).unwrap();
    let (moved, first) = (home.path("moved.kvn"), home.path("first.kvn"));
    fs::write(&moved, message.replace("48274", "L3972")).unwrap();
    fs::write(&first, &message).unwrap();
    let service = Service::start(home.serve_with("conjunction.mode = 'grouped'"));
    service.wait_until_ready();
    let ask = |file: &Path| run_cdm(&[file.to_str().unwrap(), "--server", &service.url()]);
    ask(&moved).assert(1, &["L3972", "conjunction.designators"]);
    let ids = |file: &Path| run_cdm(&["--ids", file.to_str().unwrap(), "--server", &service.url()]);
    ids(&moved).assert(1, &["L3972", "conjunction.designators"]);

    let reload = |settings: &str, expected: &str| {
        fs::write(home.path("idmint.toml"), settings).unwrap();
        service.send(Signal::HUP);
        service.log_once_it_says(expected);
    };
    reload(
        "conjunction.designators = { L3972 = 48274 }",
        "SIGHUP: reloading conjunction.catalogs, conjunction.designators, tokens",
    );
    let ended = ask(&moved);
    ended.assert(0, &[]);
    assert!(ended.out.contains(FIRST), "{}", ended.out);
    let listed = ids(&moved);
    listed.assert(0, &[]);
    assert!(
        listed.out.ends_with(&format!("moved.kvn\t1\t{FIRST}\n")),
        "{}",
        listed.out
    );
    // An invalid configuration must be logged and must change nothing.
    reload(
        "conjunction.designators = { L3972 = 0 }",
        "SIGHUP: reloading only tokens and certificates, because the configuration is invalid",
    );
    ask(&moved).assert(0, &[]);
    ask(&first).assert(0, &[]);
}

#[test]
fn in_mode_pure_the_id_of_a_report_needs_no_service() {
    let home = Home::new();
    let (pure, grouped) = (home.path("pure.toml"), home.path("grouped.toml"));
    fs::write(&pure, "conjunction.mode = 'pure'").unwrap();
    fs::write(&grouped, "http.listen = '127.0.0.1:1'").unwrap();
    let mint = |config: &Path, secondary: &str, more: &[&str]| {
        let config = config.to_str().unwrap();
        let mut args = vec![
            "mint",
            "conjunction",
            "--tca",
            "2024-032T00:00:00.25",
            "--primary",
            "25544",
            "--secondary",
        ];
        args.extend([&[secondary, "--config", config], more].concat());
        let mut command = idmint(&args);
        // With this address, the command would fail if it called the service.
        command.env("IDMINT_HTTP__LISTEN", "127.0.0.1:1");
        run(command)
    };
    let ended = mint(&pure, "48274", &[]);
    ended.assert(0, &[]);
    assert_eq!(ended.out, format!("{FIRST}\n"));
    assert_eq!(
        mint(&pure, "48274", &["--encoding", "decimal"]).out,
        "30025386125795551919250\n"
    );
    mint(&pure, "4194304", &[]).assert(65, &["secondary is 4194304"]);
    mint(&pure, "48274", &["--encoding", "base36"]).assert(64, &["base36", "hex_padded"]);
    for option in ["--prefix", "--type", "--domain"] {
        mint(&pure, "48274", &[option, "x"]).assert(64, &[&format!("remove {option}")]);
    }
    mint(&grouped, "48274", &[]).assert(69, &[]);
}
