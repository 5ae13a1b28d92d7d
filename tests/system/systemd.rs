//! The units in `deploy/systemd`, by systemd's own judgement.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::service::Home;

/// How exposed the service may be, in tenths of systemd's scale from 0 to 10. A unit that says nothing has 96.
const EXPOSURE_MAX: u32 = 12;

fn systemd_analyze(args: &[&str], units: &[&Path]) -> Output {
    Command::new("systemd-analyze")
        .args(args)
        .args(units)
        .output()
        .expect("systemd-analyze runs: Debian package systemd, installed by .ci/install-packages")
}

fn told(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// Both units, with the program of this build, after one more change to the service's.
fn units(change: impl FnOnce(String) -> String) -> (TempDir, [std::path::PathBuf; 2]) {
    let folder = TempDir::new().unwrap();
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/systemd");
    let [service, socket] = ["idmint.service", "idmint.socket"].map(|name| folder.path().join(name));
    let text = fs::read_to_string(ours.join("idmint.service")).unwrap();
    assert!(text.contains("ExecStart=/usr/local/bin/idmint serve"));
    let text = text.replace("/usr/local/bin/idmint", env!("CARGO_BIN_EXE_idmint"));
    fs::write(&service, change(text)).unwrap();
    fs::copy(ours.join("idmint.socket"), &socket).unwrap();
    (folder, [service, socket])
}

fn verify(units: &[std::path::PathBuf; 2]) -> Output {
    systemd_analyze(&["verify", "--man=no", "--recursive-errors=no"], &[&units[0], &units[1]])
}

#[test]
fn the_units_are_sound() {
    let (_folder, sound) = units(|text| text);
    let output = verify(&sound);
    assert!(output.status.success() && told(&output).is_empty(), "{}", told(&output));

    let (_folder, broken) = units(|text| text.replace("UMask=0077", "UMask=rather tight"));
    let output = verify(&broken);
    assert!(told(&output).contains("rather tight"), "the control: a mistake is found: {}", told(&output));
}

#[test]
fn the_service_is_exposed_to_next_to_nothing() {
    let security = |unit: &Path| {
        let threshold = format!("--threshold={EXPOSURE_MAX}");
        systemd_analyze(&["security", "--no-pager", "--offline=yes", &threshold], &[unit])
    };
    let (_folder, hardened) = units(|text| text);
    let output = security(&hardened[0]);
    let summary = told(&output).lines().last().unwrap_or_default().to_owned();
    println!("{summary}");
    assert!(output.status.success(), "{}", told(&output));

    let (_folder, bare) = units(|text| {
        let is_kept = |line: &&str| line.starts_with('[') || line.starts_with("Exec") || line.starts_with("Type");
        text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect()
    });
    assert!(!security(&bare[0]).status.success(), "the control: without hardening it is exposed");
}

#[test]
fn a_reload_has_the_settings_read_again() {
    let home = Home::new();
    let service = home.start();
    let (_folder, [unit, _]) = units(|text| text);
    let unit = fs::read_to_string(unit).unwrap();
    let reload = unit.lines().find_map(|line| line.strip_prefix("ExecReload=")).expect("a command");
    let mut words = reload.split(' ').map(|word| word.replace("$MAINPID", &service.pid().to_string()));
    assert!(Command::new(words.next().unwrap()).args(words).status().expect("it runs").success());
    service.log_once_it_says("SIGHUP: conjunction.catalogs");
    assert_eq!(service.get("/health/live").status, 200);
}
