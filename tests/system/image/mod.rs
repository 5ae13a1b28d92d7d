//! Checks the image in operation: its contents, the requests that it refuses, and that it mints no
//! id twice when it is killed.

mod composed;
mod fleet;
mod pods;
mod restored;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use composed::{Composed, docker, docker_run};
use serde_json::Value;

use crate::tools::output_of;
use idmint_testing::http1::{Client, request};
use idmint_testing::ids::assert_no_id_twice;
use idmint_testing::load::{End, Load, fresh_callers, into_received};
use idmint_testing::service::{Home, idmint, run, until};

/// The number of kills of each kind. Docker kills the container and the test kills its process, in
/// turn. After the second kind of kill, Docker's restart policy applies.
const KILLS: u32 = 3;

const UNDER_LOAD: Duration = Duration::from_millis(700);

/// The paths that Docker adds to every container.
const ENGINES_OWN: [&str; 5] = [".dockerenv", "dev/", "etc/", "proc/", "sys/"];

#[test]
fn the_image_mints_as_compose_runs_it_alone_and_in_a_fleet_and_repeats_no_id_when_it_is_killed() {
    let composed = Composed::build();
    assert_holds_only_the_program_and_the_c_library(composed.image());
    assert_the_packed_image_is_the_same(composed.image());
    assert_refuses_to_be_public_unless_told_so(composed.image());
    assert_serves_behind_tokens(composed.image());

    composed.compose(&["up", "--detach"]);
    composed.ready("idmint");
    assert_has_no_rights(&composed);
    assert_repeats_no_id(&composed);
    assert_is_scraped(&composed);
    until("its own check finds it healthy", || {
        let health = docker(&[
            "inspect",
            "--format",
            "{{.State.Health.Status}}",
            &composed.container("idmint"),
        ]);
        (health == "healthy").then_some(())
    });

    // Check that SIGTERM drains the service, which then exits with the code 0.
    let container = composed.container("idmint");
    composed.compose(&["stop", "idmint"]);
    assert_eq!(
        docker(&["inspect", "--format", "{{.State.ExitCode}}", &container]),
        "0"
    );
    composed.compose(&["down", "--volumes"]);
    fleet::assert_no_kill_is_noticed(&composed);
}

/// Returns the paths in the image, except for those that Docker adds to every container. The path
/// of a folder ends with a slash.
fn listing_of(image: &str) -> Vec<String> {
    let home = Home::new();
    let archive = home.path("image.tar");
    let container = docker(&["create", image]);
    docker(&["export", "--output", archive.to_str().unwrap(), &container]);
    docker(&["rm", "--volumes", &container]);
    let listed = output_of(
        Command::new("tar")
            .arg("--list")
            .arg("--file")
            .arg(&archive),
    );
    let listed = String::from_utf8(listed.stdout).unwrap();
    let is_of_the_image = |path: &&str| !ENGINES_OWN.iter().any(|own| path.starts_with(own));
    let mut paths: Vec<String> = listed
        .lines()
        .filter(is_of_the_image)
        .map(str::to_owned)
        .collect();
    paths.sort();
    paths
}

fn assert_holds_only_the_program_and_the_c_library(image: &str) {
    let listing = listing_of(image);
    let files = listing.iter().filter(|path| !path.ends_with('/'));
    let (of_the_c_library, others): (Vec<_>, Vec<_>) = files.partition(|path| {
        let name = path.rsplit('/').next().unwrap();
        ["libc.so.", "libm.so.", "libgcc_s.so.", "ld-linux"]
            .iter()
            .any(|begin| name.starts_with(begin))
    });
    assert_eq!(others, ["idmint"]);
    assert!(of_the_c_library.len() >= 3, "{of_the_c_library:?}");
    assert!(
        listing.contains(&"data/".to_owned()),
        "a place for its state: {listing:?}"
    );
}

/// Asserts that the image of `make release` is equal to the image of `Dockerfile`. `make release`
/// packs its image without Docker.
fn assert_the_packed_image_is_the_same(built: &str) {
    let home = Home::new();
    let name = format!("{built}:packed");
    let mut pack = Command::new(".ci/pack-image");
    pack.args([env!("CARGO_BIN_EXE_idmint"), &name])
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    let packed = output_of(pack.env("SOURCE_DATE_EPOCH", "1790000000"));
    assert!(
        packed.status.success(),
        "{}",
        String::from_utf8_lossy(&packed.stderr)
    );
    fs::write(home.path("image.tar"), packed.stdout).unwrap();
    docker(&["load", "--input", home.path("image.tar").to_str().unwrap()]);

    let config = |image: &str| -> Vec<Value> {
        let config: Value =
            serde_json::from_str(&docker(&["inspect", "--format", "{{json .Config}}", image]))
                .unwrap();
        let named = [
            "User",
            "Env",
            "Entrypoint",
            "Cmd",
            "Volumes",
            "ExposedPorts",
            "StopSignal",
            "Healthcheck",
            "Labels",
        ];
        named.iter().map(|name| config[name].clone()).collect()
    };
    let same = (
        listing_of(&name) == listing_of(built),
        config(&name) == config(built),
    );
    let (code, said) = docker_run(&[&name]);
    docker(&["image", "rm", &name]);
    assert_eq!(same, (true, true));
    assert!(
        code == Some(78) && said.contains("IDMINT_INSECURE_PUBLIC=1"),
        "it runs: {code:?}: {said}"
    );
}

fn assert_refuses_to_be_public_unless_told_so(image: &str) {
    let (code, said) = docker_run(&[image]);
    assert!(
        code == Some(78) && said.contains("IDMINT_INSECURE_PUBLIC=1"),
        "{code:?}: {said}"
    );
    let (code, said) = docker_run(&["--env", "IDMINT_INSECURE_PUBLIC=1", image]);
    assert!(
        code == Some(78) && said.contains("worker.exclusive"),
        "{code:?}: {said}"
    );
}

/// Asserts that the image starts if tokens are required. The operator then need not state that the
/// network is trusted.
fn assert_serves_behind_tokens(image: &str) {
    let home = Home::new();
    let tokens = home.path("tokens.toml");
    let mut made = idmint(&[
        "token", "new", "--name", "caller", "--scopes", "mint", "--file",
    ]);
    made.arg(&tokens);
    let token = run(made).out.trim().to_owned();
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(home.path("."), fs::Permissions::from_mode(0o755)).unwrap();

    let mount = format!("{}:/tokens.toml:ro", tokens.display());
    let set = [
        "--env",
        "IDMINT_HTTP__TOKENS=/tokens.toml",
        "--env",
        "IDMINT_WORKER__EXCLUSIVE=true",
    ];
    let confined = [
        "--read-only",
        "--cap-drop",
        "ALL",
        "--publish",
        "127.0.0.1::8080",
    ];
    let container = format!("{image}-with-tokens");
    docker(
        &[
            &["run", "--detach", "--name", &container, "--volume", &mount][..],
            &set,
            &confined,
            &[image],
        ]
        .concat(),
    );
    let address = until("a port is published", || {
        let is_running =
            docker(&["inspect", "--format", "{{.State.Running}}", &container]) == "true";
        assert!(is_running, "it has ended; the log says why");
        docker(&["port", &container, "8080"])
            .lines()
            .find_map(|line| line.parse().ok())
    });
    let mint = |headers: &str| {
        let mint = request("POST /ids/snowflake", headers, "");
        Client::try_connect(address)
            .ok()?
            .try_exchange(mint)
            .ok()
            .map(|answer| answer.status)
    };
    let bearer = format!("authorization: Bearer {token}\r\n");
    until("it mints for who shows a token", || {
        (mint(&bearer) == Some(200)).then_some(())
    });
    assert_eq!(mint(""), Some(401));
    docker(&["exec", &container, "/idmint", "health"]);
    docker(&["rm", "--force", "--volumes", &container]);
}

/// Asserts that the container has no special rights. The rights are read from the kernel and not
/// from the Compose file.
fn assert_has_no_rights(composed: &Composed) {
    let process = docker(&[
        "inspect",
        "--format",
        "{{.State.Pid}}",
        &composed.container("idmint"),
    ]);
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let value = |name: &str| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .expect("a line of the kernel");
        line.trim_start_matches(':')
            .split_whitespace()
            .next()
            .unwrap()
            .to_owned()
    };
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(value(set), "0000000000000000", "{set}");
    }
    assert_eq!(
        [value("Uid"), value("Gid"), value("NoNewPrivs")],
        ["65532", "65532", "1"]
    );
    let mounts = fs::read_to_string(format!("/proc/{process}/mounts")).unwrap();
    let root = mounts
        .lines()
        .find(|line| line.split(' ').nth(1) == Some("/"))
        .expect("a root");
    assert!(
        root.split(' ')
            .nth(3)
            .unwrap()
            .split(',')
            .any(|option| option == "ro"),
        "{root}"
    );
}

fn assert_repeats_no_id(composed: &Composed) {
    let mut callers = fresh_callers();
    for kill in 0..2 * KILLS {
        let load = Load::start(composed.ready("idmint"), callers);
        std::thread::sleep(UNDER_LOAD);
        load.wait_until_each_has_ids();
        let container = composed.container("idmint");
        if kill % 2 == 0 {
            // Start the container again, because Docker does not restart a container after `docker
            // kill`, which counts as a decision of the operator.
            docker(&["kill", &container]);
            composed.compose(&["up", "--detach"]);
        } else {
            kill_process_of(&container);
        }
        let minted = load.join();
        assert!(
            minted
                .iter()
                .all(|minted| minted.end == End::Cut && minted.granted > 0),
            "killed under load"
        );
        callers = into_received(minted);
    }
    let load = Load::start(composed.ready("idmint"), callers);
    std::thread::sleep(UNDER_LOAD);
    let ids = assert_no_id_twice(into_received(load.stop()));
    println!("{} kills, ids {ids:?}, none twice", 2 * KILLS);
    assert!(ids.iter().all(|count| *count > 100), "{ids:?}");
}

/// Kills the process of a container, as the kernel does when memory runs out. Docker's restart
/// policy then starts the container again.
fn kill_process_of(container: &str) {
    let process = docker(&["inspect", "--format", "{{.State.Pid}}", container]);
    let starts = || docker(&["inspect", "--format", "{{.RestartCount}}", container]);
    let before = starts();
    assert!(
        Command::new("kill")
            .args(["-9", &process])
            .status()
            .unwrap()
            .success()
    );
    until("the container is started again", || {
        (starts() != before).then_some(())
    });
}

fn ask_prometheus(composed: &Composed, service: &str, path: &str) -> Option<Value> {
    let address = composed.address(service, 9090);
    let answer = Client::try_connect(address)
        .ok()?
        .try_exchange(request(&format!("GET {path}"), "", ""))
        .ok()?;
    (answer.status == 200).then(|| answer.json())
}

/// Asserts that the Prometheus of the Compose file reaches the service by its name, and that it has
/// loaded the rules.
fn assert_is_scraped(composed: &Composed) {
    let ask = |path: &str| ask_prometheus(composed, "prometheus", path);
    until("Prometheus has scraped it", || {
        let found = ask(
            "/api/v1/query?query=idmint_ids_minted_total%7Bformat%3D%22snowflake%22%7D%20%3E%200",
        )?;
        let series = found["data"]["result"].as_array()?.first()?.clone();
        (series["metric"]["job"] == "idmint" && series["metric"]["instance"] == "idmint:8080")
            .then_some(())
    });
    let rules = ask("/api/v1/rules").expect("the rules");
    let groups = rules["data"]["groups"].as_array().expect("groups");
    let loaded: usize = groups
        .iter()
        .map(|group| group["rules"].as_array().map_or(0, Vec::len))
        .sum();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/prometheus");
    let read = |file: &str| fs::read_to_string(format!("{folder}/{file}")).unwrap();
    let written = read("alerts.yml").matches("- alert:").count()
        + read("slis.yml").matches("- record:").count();
    assert_eq!(loaded, written, "{rules}");
}
