//! Checks that the service refuses to start if it could mint an id twice or could not work. Each
//! case has its own exit code and message.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use idmint_testing::service::{Home, Service, idmint, run, serve_from};

/// Starts a service with this configuration, waits until it mints, and kills it.
fn mint_once_with(home: &Home, toml: &str) {
    let service = Service::start(home.serve_with(toml));
    service.wait_until_ready();
    service.kill();
}

#[test]
fn a_second_process_on_the_folder_exits_75_and_names_the_first() {
    let home = Home::new();
    let first = home.start();
    first.wait_until_ready();
    run(home.serve()).assert(75, &["is in use by", &format!("process {}", first.pid())]);
    assert_eq!(first.mint("snowflake").len(), 1);
    first.kill();
    home.start().wait_until_ready();
}

#[test]
fn a_single_node_begins_where_a_node_of_a_fleet_was_only_above_a_floor() {
    // Only a node of a fleet creates this file. The file counts even if it is empty.
    let back = Home::new();
    fs::create_dir(back.data_dir()).unwrap();
    fs::write(back.data_dir().join("high-water-default"), "").unwrap();
    run(back.serve()).assert(
        78,
        &["high-water-default", "--floor", "another storage.data_dir"],
    );
    let mut above = back.serve();
    above.args(["--floor", "2026-01-01T00:00:00Z"]);
    let service = Service::start(above);
    service.wait_until_ready();
    service.kill();
    mint_once_with(&back, "");
}

#[test]
fn a_format_with_another_epoch_exits_78_and_prints_the_difference() {
    let home = Home::new();
    mint_once_with(
        &home,
        "formats.invoice = { like = \"payment\", epoch = \"2025-01-01T00:00:00Z\" }",
    );
    let changed = home
        .serve_with("formats.invoice = { like = \"payment\", epoch = \"2024-06-01T00:00:00Z\" }");
    run(changed).assert(
        78,
        &[
            "\"invoice\"",
            "epoch: stored 2025-01-01T00:00:00",
            "configured 2024-06-01T00:00:00",
        ],
    );
    // Check that the refused start changed nothing.
    mint_once_with(
        &home,
        "formats.invoice = { like = \"payment\", epoch = \"2025-01-01T00:00:00Z\" }",
    );
}

#[test]
fn a_built_in_format_that_is_changed_exits_78() {
    let home = Home::new();
    mint_once_with(&home, "");
    run(home.serve_with("formats.payment.epoch = \"2022-01-01T00:00:00Z\""))
        .assert(78, &["\"payment\"", "epoch: stored"]);
    run(home.serve_with("formats.payment.first_worker = 3"))
        .assert(78, &["\"payment\"", "first_worker: stored 0, configured 3"]);
}

#[test]
fn a_format_of_a_new_name_joins() {
    let home = Home::new();
    mint_once_with(&home, "");
    let service =
        Service::start(home.serve_with(
            "formats.invoice = { like = \"payment\", epoch = \"2025-01-01T00:00:00Z\" }",
        ));
    service.wait_until_ready();
    assert_eq!(service.mint("invoice?count=3").len(), 3);
}

#[test]
fn a_name_whose_rule_was_changed_exits_78_and_mints_on_once_it_is_changed_back() {
    let home = Home::new();
    let fields =
        |rest: &str| format!("[{{ name = \"time\", kind = \"time\", bits = 48 }}, {rest}]");
    let format = |rule: &str, rest: &str| {
        format!(
            "[formats.invoice]\nsummary = \"\"\nrule = \"{rule}\"\ntick = \"1ms\"\nepoch = \"2025-01-01T00:00:00Z\"\n\
             encodings = [\"decimal\"]\nfields = {}\n",
            fields(rest)
        )
    };
    let sequenced = format(
        "sequenced",
        "{ name = \"sequence\", kind = \"sequence\", bits = 14 }",
    );
    let random = format(
        "random",
        "{ name = \"random\", kind = \"random\", bits = 14 }",
    );
    let mint = |toml: &str| -> Vec<u128> {
        let service = Service::start(home.serve_with(toml));
        service.wait_until_ready();
        let ids = service
            .mint("invoice?count=1000")
            .iter()
            .map(|id| id.parse().unwrap())
            .collect();
        service.kill();
        ids
    };
    let mut ids = mint(&sequenced);
    for changed in [
        &random,
        &random.replace("\"random\"\ntick", "\"decode-only\"\ntick"),
    ] {
        run(home.serve_with(changed))
            .assert(78, &["\"invoice\"", "rule: stored sequenced, configured"]);
    }
    ids.extend(mint(&sequenced));
    assert!(ids.is_sorted_by(|a, b| a < b), "no id twice");
    // The format can still be added under another name.
    let both = format!(
        "{sequenced}{}",
        random.replace("formats.invoice", "formats.voucher")
    );
    let service = Service::start(home.serve_with(&both));
    service.wait_until_ready();
    assert_eq!(
        (service.mint("invoice").len(), service.mint("voucher").len()),
        (1, 1)
    );
}

#[test]
fn an_encoding_that_would_write_a_number_otherwise_exits_78_and_one_that_writes_it_alike_does_not()
{
    let home = Home::new();
    let with = |encodings: &str| {
        format!("formats.invoice = {{ like = \"snowflake\", encodings = [{encodings}] }}")
    };
    let kept = r#"{ kind = "base36", length = 13 }, { kind = "hashids", salt = "pepper" }"#;
    mint_once_with(&home, &with(kept));
    for (old, new, told) in [
        ("length = 13", "length = 14", "\"base36\""),
        (
            "length = 13",
            "length = 13, prefix = \"inv_\"",
            "\"base36\"",
        ),
        (
            "kind = \"base36\", length = 13",
            "kind = \"radix\", name = \"base36\", alphabet = \"0123456789ABCDEFGHIJLKMNOPQRSTUVWXYZ\"",
            "\"base36\"",
        ),
        ("pepper", "Pepper", "\"hashids\""),
        (
            "salt = \"pepper\"",
            "salt = \"pepper\", min_length = 20",
            "\"hashids\"",
        ),
    ] {
        let refused = run(home.serve_with(&with(&kept.replace(old, new))));
        refused.assert(
            78,
            &[
                "encoding",
                told,
                "\"invoice\"",
                "digest of its texts: stored ",
                ", configured ",
            ],
        );
        assert!(
            !refused.err.to_lowercase().contains("pepper"),
            "a salt is no text for a log: {}",
            refused.err
        );
    }
    // The refused starts changed nothing. Three changes are allowed: another definition of an
    // encoding that writes the same texts, another order, and a new name.
    let radix = kept.replace(
        "kind = \"base36\"",
        "kind = \"radix\", radix = 36, case = \"upper\"",
    );
    mint_once_with(&home, &with(&radix));
    mint_once_with(
        &home,
        &with(&format!(
            "\"decimal\", {kept}, {{ kind = \"hashids\", name = \"short\" }}"
        )),
    );
    // The folder does not record prefixes of ids, so they may change.
    let prefixed = with(kept).replace("like =", "prefixes = [\"pi_\", \"ch_\"], like =");
    mint_once_with(&home, &prefixed);
    mint_once_with(&home, &with(kept));
    // Remove an encoding, and then add it with another definition. The new definition must be
    // refused, because the folder still has the old one.
    mint_once_with(&home, &with("\"decimal\""));
    run(home.serve_with(&with("{ kind = \"hashids\" }")))
        .assert(78, &["\"hashids\"", "\"invoice\""]);
}

#[test]
fn another_number_of_slots_exits_78() {
    let home = Home::new();
    mint_once_with(&home, "");
    run(home.serve_with("worker.slots = 4")).assert(
        78,
        &["worker.slots is 4, but earlier ids were minted with 1"],
    );
}

#[test]
fn the_folder_of_another_slot_exits_65() {
    let home = Home::new();
    let slot = |slot: u32| {
        format!(
            "worker = {{ slot = {slot}, slots = 3, exclusive = true }}\nclock.max_ahead = \"1s\"\nstorage.window = \"1s\""
        )
    };
    mint_once_with(&home, &slot(1));
    run(home.serve_with(&slot(2)))
        .assert(65, &["is the horizon of slot 1, but slot 2 is configured"]);
}

#[test]
fn a_configuration_that_is_wrong_exits_78_and_names_the_setting() {
    let home = Home::new();
    run(home.serve_with("mint.nonesuch = 1")).assert(78, &["mint.nonesuch", "line 1"]);
    run(home.serve_with("mint.batch_max = 0")).assert(78, &["mint.batch_max"]);
    run(home.serve_with("mint =")).assert(78, &["not valid TOML"]);
    let mut by_variable = home.serve();
    by_variable.env("IDMINT_NONESUCH", "1");
    run(by_variable).assert(78, &["IDMINT_NONESUCH"]);
    let mut no_file = home.serve();
    no_file.arg("--config").arg(home.path("nonesuch.toml"));
    run(no_file).assert(78, &["nonesuch.toml", "No such file"]);
    assert!(!home.data_dir().exists(), "nothing was made");
}

#[test]
fn a_command_line_that_is_wrong_exits_64() {
    for args in [
        &["serve", "--nonesuch"][..],
        &["nonesuch"],
        &[],
        &["serve", "--listen", "here"],
        &["serve", "--floor", "x"],
    ] {
        run(idmint(args)).assert(64, &[]);
    }
    for args in [&["--help"], &["--version"]] {
        let ended = run(idmint(args));
        ended.assert(0, &[]);
        assert!(ended.out.contains("idmint"), "{}", ended.out);
    }
}

#[test]
fn an_address_that_others_can_reach_exits_78() {
    let home = Home::new();
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let mut command = idmint(&["serve", "--listen", listen, "--data-dir"]);
        command.arg(home.data_dir());
        run(command).assert(78, &[listen, "--insecure-public"]);
    }
    assert!(!home.data_dir().exists(), "nothing was made");
}

#[test]
fn a_variable_says_that_others_may_reach_the_address_for_those_who_cannot_give_flags() {
    let home = Home::new();
    let serve = |word: &str| {
        let mut command = idmint(&["serve", "--listen", "0.0.0.0:0", "--data-dir"]);
        command
            .arg(home.data_dir())
            .env("IDMINT_WORKER__EXCLUSIVE", "true")
            .env("IDMINT_INSECURE_PUBLIC", word);
        command
    };
    run(serve("0")).assert(78, &["IDMINT_INSECURE_PUBLIC=1"]);
    run(serve("")).assert(78, &["IDMINT_INSECURE_PUBLIC=1"]);
    run(serve("perhaps")).assert(78, &["IDMINT_INSECURE_PUBLIC=perhaps"]);
    assert!(!home.data_dir().exists(), "nothing was made");
    for word in ["1", "true"] {
        let service = Service::start(serve(word));
        service.wait_until_ready();
        service.kill();
    }
    // This variable is a permission for `serve` and not a setting, so other commands ignore it.
    let mut check = idmint(&["check"]);
    check.env("IDMINT_INSECURE_PUBLIC", "1");
    run(check).assert(0, &[]);
    let mut test = idmint(&["serve", "--test", "--listen", "127.0.0.1:0"]);
    test.env("IDMINT_INSECURE_PUBLIC", "0");
    Service::start(test).wait_until_ready();
    let mut check = idmint(&["check"]);
    check.env("IDMINT_INSECURE_PUBLIK", "1");
    run(check).assert(78, &["IDMINT_INSECURE_PUBLIK"]);
}

#[test]
fn an_address_that_is_taken_exits_74_and_says_why() {
    let home = Home::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let mut command = idmint(&["serve", "--listen", &listen, "--data-dir"]);
    command.arg(home.data_dir());
    run(command).assert(
        74,
        &[
            &format!("cannot listen on {listen}"),
            "Address already in use",
        ],
    );
}

#[test]
fn a_folder_that_is_a_file_exits_74_with_its_path_and_the_cause() {
    let home = Home::new();
    fs::write(home.data_dir(), "not a folder").unwrap();
    run(home.serve()).assert(74, &[home.data_dir().to_str().unwrap(), "File exists"]);
    assert_eq!(fs::read_to_string(home.data_dir()).unwrap(), "not a folder");
}

#[test]
fn a_folder_that_may_not_be_written_exits_74_with_its_path_and_the_cause() {
    let home = Home::new();
    let folder = home.data_dir();
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    run(as_nobody_if_root(&home, &serve_from(&folder)))
        .assert(74, &[folder.to_str().unwrap(), "Permission denied"]);
}

/// Returns the command so that it runs without permission to write everywhere. If the test runs as
/// root, the command runs as another user, who may be unable to read the binary. The command
/// therefore runs a copy of the binary.
fn as_nobody_if_root(home: &Home, command: &Command) -> Command {
    const NOBODY: u32 = 65_534;
    let binary = home.path("idmint");
    fs::copy(command.get_program(), &binary).unwrap();
    fs::set_permissions(home.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let mut same = Command::new(binary);
    same.args(command.get_args()).current_dir("/");
    if rustix::process::geteuid().is_root() {
        same.uid(NOBODY).gid(NOBODY);
    }
    same
}

#[test]
fn a_new_folder_begins_with_only_one_of_two_formats_that_write_equal_texts() {
    let home = Home::new();
    let both = "formats.payment-wide.enabled = true";
    let pair = "payment (workers 0 to 35) and payment-wide (workers 0 to 44) write equal texts";
    let edit = "set mint = false in [formats.payment] or [formats.payment-wide]";
    run(home.serve_with(both)).assert(78, &[pair, edit, "formats.enabled", "new data directory"]);
    let file = home.path("idmint.toml");
    let checked = run(idmint(&["check", "--config", file.to_str().unwrap()]));
    checked.assert(0, &[]);
    assert!(
        [pair, edit].iter().all(|words| checked.out.contains(words)),
        "{}",
        checked.out
    );

    // The refused start left no record, so the folder is still new.
    run(home.serve_with(both)).assert(78, &[pair]);
    mint_once_with(&home, "");
    let service = Service::start(home.serve_with(both));
    service.wait_until_ready();
    assert!(service.log_once_it_says(pair).contains("WARN"));
    assert_eq!(service.mint("payment-wide").len(), 1);
    service.kill();
    for edit in [
        "formats.payment-wide = { enabled = true, mint = false }",
        "formats.payment-wide.enabled = true\nformats.payment.mint = false",
        "formats.enabled = ['payment-wide']",
    ] {
        let home = Home::new();
        let service = Service::start(home.serve_with(edit));
        service.wait_until_ready();
        assert!(!service.log().contains("equal texts"), "{edit}");
        service.kill();
    }
}
