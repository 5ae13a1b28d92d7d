//! Checks the units in `deploy/systemd`. systemd analyses them, and runs them as the first process
//! of a container.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::console::commands_below;
use crate::tools::output_of;
use idmint_testing::authority::Authority;
use idmint_testing::service::{Home, until};

/// The maximum exposure that is accepted for the service, in tenths of systemd's scale from 0 to
/// 10. A unit without restrictions has 96 tenths.
const EXPOSURE_MAX: u32 = 12;

fn systemd_analyze(args: &[&str], units: &[&Path]) -> Output {
    output_of(Command::new("systemd-analyze").args(args).args(units))
}

fn told(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .concat()
}

/// Writes both units with the path of this program to a folder. `change` modifies the service unit.
fn units(change: impl FnOnce(String) -> String) -> (TempDir, [std::path::PathBuf; 2]) {
    let folder = TempDir::new().unwrap();
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/systemd");
    let [service, socket] =
        ["idmint.service", "idmint.socket"].map(|name| folder.path().join(name));
    let text = fs::read_to_string(ours.join("idmint.service")).unwrap();
    assert!(text.contains("ExecStart=/usr/local/bin/idmint serve"));
    let text = text.replace("/usr/local/bin/idmint", env!("CARGO_BIN_EXE_idmint"));
    fs::write(&service, change(text)).unwrap();
    fs::copy(ours.join("idmint.socket"), &socket).unwrap();
    (folder, [service, socket])
}

fn verify(units: &[std::path::PathBuf; 2]) -> Output {
    systemd_analyze(
        &["verify", "--man=no", "--recursive-errors=no"],
        &[&units[0], &units[1]],
    )
}

#[test]
fn the_units_are_sound() {
    let (_folder, sound) = units(|text| text);
    let output = verify(&sound);
    assert!(
        output.status.success() && told(&output).is_empty(),
        "{}",
        told(&output)
    );

    let (_folder, broken) = units(|text| text.replace("UMask=0077", "UMask=rather tight"));
    let output = verify(&broken);
    assert!(
        told(&output).contains("rather tight"),
        "the control: a mistake is found: {}",
        told(&output)
    );
}

#[test]
fn the_service_is_exposed_to_next_to_nothing() {
    let security = |unit: &Path| {
        let threshold = format!("--threshold={EXPOSURE_MAX}");
        systemd_analyze(
            &["security", "--no-pager", "--offline=yes", &threshold],
            &[unit],
        )
    };
    let (_folder, hardened) = units(|text| text);
    let output = security(&hardened[0]);
    let summary = told(&output).lines().last().unwrap_or_default().to_owned();
    println!("{summary}");
    assert!(output.status.success(), "{}", told(&output));

    let (_folder, bare) = units(|text| {
        let is_kept = |line: &&str| {
            line.starts_with('[') || line.starts_with("Exec") || line.starts_with("Type")
        };
        text.lines()
            .filter(is_kept)
            .map(|line| format!("{line}\n"))
            .collect()
    });
    assert!(
        !security(&bare[0]).status.success(),
        "the control: without hardening it is exposed"
    );
}

#[test]
fn a_reload_has_the_settings_read_again() {
    let home = Home::new();
    let service = home.start();
    let (_folder, [unit, _]) = units(|text| text);
    let unit = fs::read_to_string(unit).unwrap();
    let reload = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecReload="))
        .expect("a command");
    let mut words = reload
        .split(' ')
        .map(|word| word.replace("$MAINPID", &service.pid().to_string()));
    assert!(
        Command::new(words.next().unwrap())
            .args(words)
            .status()
            .expect("it runs")
            .success()
    );
    service.log_once_it_says("SIGHUP: reloading conjunction.catalogs");
    assert_eq!(service.get("/health/live").status, 200);
}

/// A container in which systemd is the first process. The units and this program are installed as
/// START.md describes.
struct Machine {
    name: String,
    home: Home,
}

impl Machine {
    fn start() -> Machine {
        let clone = Path::new(env!("CARGO_MANIFEST_DIR"));
        let machine = Machine {
            name: format!("idmint-systemd-{}", std::process::id()),
            home: Home::new(),
        };
        let mut stand_ins = Command::new(clone.join("tests/system/image/stand-ins"));
        let stand_ins = output_of(stand_ins.args(["systemd", &machine.name]));
        assert!(stand_ins.status.success(), "{}", told(&stand_ins));

        let home = &machine.home;
        let authority = Authority::new("systemd");
        let [certificate, key] = authority.sign(&["localhost"]).write(home, "tls");
        fs::write(home.path("ca.pem"), &authority.pem).unwrap();
        let volumes = [
            format!("{}:/clone/deploy:ro", clone.join("deploy").display()),
            format!(
                "{}:/clone/target/release/idmint:ro",
                env!("CARGO_BIN_EXE_idmint")
            ),
            format!("{}:/clone/tls.crt:ro", certificate.display()),
            format!("{}:/clone/tls.key:ro", key.display()),
            format!("{}:/clone/ca.pem:ro", home.path("ca.pem").display()),
            "/sys/fs/cgroup:/sys/fs/cgroup".to_owned(),
        ];
        let mut docker = Command::new("docker");
        docker.args(["run", "--detach", "--name", &machine.name]);
        // Give the container all capabilities, as a virtual machine would have. Leave out
        // SYS_RESOURCE, because the machine that runs the test may not have it.
        docker.args([
            "--cap-add",
            "ALL",
            "--cap-drop",
            "SYS_RESOURCE",
            "--cgroupns",
            "host",
            "--workdir",
            "/clone",
        ]);
        for option in ["seccomp", "apparmor", "systempaths"] {
            docker.args(["--security-opt", &format!("{option}=unconfined")]);
        }
        for folder in ["/run", "/run/lock", "/tmp"] {
            docker.args(["--tmpfs", folder]);
        }
        for volume in &volumes {
            docker.args(["--volume", volume]);
        }
        let output = output_of(docker.arg(&machine.name));
        assert!(output.status.success(), "{}", told(&output));
        until("systemd has started", || {
            let state = told(&machine.shell("systemctl is-system-running"));
            ["running", "degraded"]
                .contains(&state.trim())
                .then_some(())
        });
        machine
    }

    fn shell(&self, command: &str) -> Output {
        let script = format!("curl() {{ command curl --silent --show-error \"$@\"; }}\n{command}");
        output_of(Command::new("docker").args(["exec", &self.name, "bash", "-c", &script]))
    }

    #[track_caller]
    fn succeed(&self, command: &str) -> String {
        let output = self.shell(command);
        if !output.status.success() {
            let journal = self.shell("journalctl --no-pager --lines 30 --unit idmint");
            panic!("{command}\n{}\n{}", told(&output), told(&journal));
        }
        told(&output)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for remove in [
            ["rm", "--force", "--volumes"].as_slice(),
            &["image", "rm", "--force"],
        ] {
            let output = output_of(Command::new("docker").args(remove).arg(&self.name));
            if !output.status.success() {
                eprintln!("{}", told(&output));
            }
        }
    }
}

/// Types the commands of START.md for a backup and a restore. A number that was issued before the
/// backup must still be known.
fn assert_a_backup_is_restored(machine: &Machine) {
    machine.succeed(
        "idmint token new --name orders --scopes number --file /etc/idmint/tokens.toml > orders.token \
         && systemctl restart idmint",
    );
    let number = |method: &str, path: &str| {
        machine.succeed(&format!(
            r#"curl -X {method} -H 'Idempotency-Key: order-1' -H "Authorization: Bearer $(cat orders.token)" http://127.0.0.1:8080/numbers/{path}"#
        ))
    };
    number("POST", "orders");
    let before = number("GET", "orders");
    assert!(before.contains(r#""number":"1""#), "{before}");

    let commands = commands_below("docs/START.md", "### Backup and restore under systemd");
    let mut floor: Option<(String, String)> = None;
    for (command, printed) in &commands {
        let command = match &floor {
            Some((documented, floor)) => command.replace(documented.as_str(), floor),
            None => command.clone(),
        };
        let told = machine.succeed(&command);
        if let [documented] = printed.as_slice() {
            floor = Some((documented.clone(), told.trim().to_owned()));
        }
    }
    assert!(commands.len() >= 7 && floor.is_some(), "{commands:?}");
    let after = number("GET", "orders");
    assert!(after.contains(r#""number":"1""#), "{after}");
    machine.succeed("systemctl is-active idmint.socket idmint.service");
}

#[test]
fn under_systemd_the_service_reads_the_tokens_and_the_key_that_root_keeps() {
    let machine = Machine::start();
    let commands = commands_below("docs/START.md", "## systemd");
    for (command, printed) in &commands {
        let told = machine.succeed(command);
        let ids = r#"{"format":"snowflake","count":1,"ids":[""#;
        assert!(
            printed.is_empty() || printed[0].starts_with(ids) && told.starts_with(ids),
            "{command}: {told}"
        );
    }
    println!(
        "{} commands of START.md typed under systemd",
        commands.len()
    );
    assert!(commands.len() >= 10, "{commands:?}");
    let modes = machine.succeed("stat --format '%U %a' /etc/idmint/tokens.toml");
    assert!(modes.starts_with("root 600"), "{modes}");
    let refused = machine.succeed("curl -X POST http://127.0.0.1:8080/ids/snowflake");
    assert!(refused.contains("missing_token"), "{refused}");
    let stats = machine
        .succeed("cat /proc/$(systemctl show --value --property MainPID idmint)/task/*/stat");
    // The 19th value is the niceness, and the name is the second one.
    let is_nice = |stat: &str| {
        let after_name = stat.split_once("(long-work) ");
        after_name.and_then(|(_, values)| values.split(' ').nth(16)) == Some("5")
    };
    assert!(stats.lines().any(is_nice), "{stats}");

    assert_a_backup_is_restored(&machine);

    machine.succeed("install -m 600 tls.crt tls.key /etc/idmint/");
    machine.succeed(
        "cp deploy/systemd/idmint.service.d/tls.conf /etc/systemd/system/idmint.service.d/",
    );
    machine.succeed("systemctl daemon-reload && systemctl restart idmint");
    let minted = machine.succeed(
        r#"curl --cacert ca.pem -X POST -H "Authorization: Bearer $(cat billing.token)" https://localhost:8080/ids/snowflake"#,
    );
    assert!(minted.contains(r#""ids":["#), "{minted}");

    // For comparison, remove the credential. The service must then fail, because only root can read
    // the file.
    machine.succeed("rm -r /etc/systemd/system/idmint.service.d && systemctl daemon-reload");
    machine.succeed(r#"echo 'http.tokens = "/etc/idmint/tokens.toml"' > /etc/idmint.toml"#);
    assert!(!machine.shell("systemctl restart idmint").status.success());
    let status = machine.succeed("systemctl show --property ExecMainStatus idmint");
    assert!(status.contains("ExecMainStatus=78"), "{status}");
    until("the journal has the error \"Permission denied\"", || {
        let journal = machine.succeed("journalctl --no-pager --lines 20 --unit idmint");
        journal.contains("Permission denied").then_some(())
    });
}
