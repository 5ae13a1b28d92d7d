//! Runs the container of a pod with Docker, as `deploy/kubernetes` describes it: with its
//! arguments, variables, probes and rights. The files have the owners and modes that Kubernetes
//! would give them. No cluster is needed.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use super::composed::{docker, docker_succeeds, start_engine};
use crate::kubernetes::{
    configuration_text, container, documents, of_kind, pod, probes, write_secrets,
};
use crate::tools::output_of;
use idmint_testing::authority::Authority;
use idmint_testing::http1::{Client, request};
use idmint_testing::service::{Home, until};
use idmint_testing::tls_client::TlsClient;

/// The image of a release with the program of this build. Dropping the value removes the image.
pub(super) struct PackedImage {
    name: String,
}

impl PackedImage {
    /// Packs the image and loads it as `idmint-TEST-PID:packed`.
    pub(super) fn load(test: &str) -> PackedImage {
        start_engine();
        let (home, name) = (Home::new(), format!("idmint-{test}-{}", std::process::id()));
        let mut pack = Command::new(".ci/pack-image");
        pack.args([env!("CARGO_BIN_EXE_idmint"), &format!("{name}:packed")])
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        let packed = output_of(pack.env("SOURCE_DATE_EPOCH", "1790000000"));
        assert!(
            packed.status.success(),
            "{}",
            String::from_utf8_lossy(&packed.stderr)
        );
        fs::write(home.path("image.tar"), packed.stdout).unwrap();
        docker(&["load", "--input", home.path("image.tar").to_str().unwrap()]);
        PackedImage { name }
    }

    /// Returns the name of the image with its tag.
    pub(super) fn tagged(&self) -> String {
        format!("{}:packed", self.name)
    }
}

impl Drop for PackedImage {
    fn drop(&mut self) {
        docker_succeeds(&["image", "rm", "--force", &format!("{}:packed", self.name)]);
    }
}

/// A running container. Dropping this value removes the container.
struct Container {
    name: String,
}

impl Container {
    /// Starts the container of the pod `pod_name`. Its files are in the folder `home`.
    fn start(image: &PackedImage, documents: &[Value], home: &Home, pod_name: &str) -> Container {
        let (pod, container) = (pod(documents), container(documents));
        let number = |value: &Value| value.as_u64().unwrap().to_string();
        let rights = &pod["securityContext"];
        assert_eq!(rights["runAsNonRoot"], true);
        let owner = format!(
            "{}:{}",
            number(&rights["runAsUser"]),
            number(&rights["runAsGroup"])
        );
        let confined = &container["securityContext"];
        assert_eq!(
            (
                &confined["readOnlyRootFilesystem"],
                &confined["allowPrivilegeEscalation"]
            ),
            (&true.into(), &false.into())
        );
        assert_eq!(confined["capabilities"]["drop"][0], "ALL");
        let name = format!("{}-{pod_name}", image.name);
        let mut run: Vec<String> = ["run", "--detach", "--read-only", "--cap-drop", "ALL"]
            .map(str::to_owned)
            .to_vec();
        let mut add = |flag: &str, value: String| run.extend([flag.to_owned(), value]);
        add("--name", name.clone());
        add("--hostname", pod_name.to_owned());
        add("--user", owner);
        add("--group-add", number(&rights["fsGroup"]));
        add("--security-opt", "no-new-privileges".to_owned());
        add(
            "--memory",
            container["resources"]["limits"]["memory"]
                .as_str()
                .unwrap()
                .replace("Mi", "m"),
        );
        add("--env", "KUBERNETES_SERVICE_HOST=10.0.0.1".to_owned());
        for variable in container["env"].as_array().unwrap() {
            add(
                "--env",
                format!(
                    "{}={}",
                    variable["name"].as_str().unwrap(),
                    variable["value"].as_str().unwrap()
                ),
            );
        }
        for port in container["ports"].as_array().unwrap() {
            add(
                "--publish",
                format!("127.0.0.1::{}", number(&port["containerPort"])),
            );
        }
        for mount in container["volumeMounts"].as_array().unwrap() {
            let path = mount["mountPath"].as_str().unwrap();
            let outside = match path.strip_prefix("/etc/idmint/") {
                Some(folder) => home.path(&format!("etc/{folder}")),
                None => volume(home, pod_name, rights["fsGroup"].as_u64().unwrap()),
            };
            let mode = if mount["readOnly"] == true { ":ro" } else { "" };
            add("--volume", format!("{}:{path}{mode}", outside.display()));
        }
        run.push(format!("{}:packed", image.name));
        run.extend(
            container["args"]
                .as_array()
                .unwrap()
                .iter()
                .map(|arg| arg.as_str().unwrap().to_owned()),
        );
        docker(&run.iter().map(String::as_str).collect::<Vec<_>>());
        Container { name }
    }

    fn address(&self, port: &str) -> SocketAddr {
        until("a port is published", || {
            let is_running =
                docker(&["inspect", "--format", "{{.State.Running}}", &self.name]) == "true";
            assert!(
                is_running,
                "it has ended: {}",
                docker(&["logs", &self.name])
            );
            docker(&["port", &self.name, port])
                .lines()
                .find_map(|line| line.parse().ok())
        })
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        docker_succeeds(&["rm", "--force", "--volumes", &self.name]);
    }
}

/// Creates a volume like those that Kubernetes provides. It belongs to root and to the group of the
/// pod, which can write to it.
fn volume(home: &Home, pod: &str, group: u64) -> std::path::PathBuf {
    let folder = home.path(&format!("volume-{pod}"));
    fs::create_dir_all(&folder).unwrap();
    chown(&folder, Some(0), Some(group.try_into().unwrap())).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o2775)).unwrap();
    folder
}

/// Writes the files of the config map and the secrets. They belong to root, and the group of the
/// pod can read them.
fn hand_over(documents: &[Value], home: &Home) {
    fs::create_dir_all(home.path("etc/config")).unwrap();
    fs::write(
        home.path("etc/config/idmint.toml"),
        configuration_text(documents),
    )
    .unwrap();
    let group = pod(documents)["securityContext"]["fsGroup"]
        .as_u64()
        .unwrap()
        .try_into()
        .unwrap();
    for folder in fs::read_dir(home.path("etc"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        for file in fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            chown(&file, Some(0), Some(group)).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        }
    }
}

#[test]
fn the_pods_of_both_sizes_without_an_etcd_run_as_containers() {
    let image = PackedImage::load("pods");

    let (single, home) = (documents("single"), Home::new());
    hand_over(&single, &home);
    let begun = Instant::now();
    let alone = Container::start(&image, &single, &home, "idmint-0");
    let ask = |port: &str, line: &str| {
        let mut client = Client::try_connect(alone.address(port)).ok()?;
        client
            .try_exchange(request(line, "", ""))
            .ok()
            .map(|answer| answer.status)
    };
    until("it mints", || {
        (ask("8080", "POST /ids/snowflake") == Some(200)).then_some(())
    });
    println!("from `docker run` to the first id: {:?}", begun.elapsed());
    for path in probes(&single, "HTTP") {
        until(path, || {
            (ask("9090", &format!("GET {path}")) == Some(200)).then_some(())
        });
    }
    let minted = docker(&["exec", &alone.name, "/idmint", "mint", "snowflake"]);
    assert!(minted.parse::<u64>().is_ok(), "{minted}");
    // Restart the container, as Kubernetes restarts a pod with its volume.
    docker(&["restart", "--time", "45", &alone.name]);
    until("it mints again", || {
        (ask("8080", "POST /ids/snowflake") == Some(200)).then_some(())
    });
    drop(alone);

    let (ordinal, home, services) = (
        documents("ordinal"),
        Home::new(),
        Authority::new("of services"),
    );
    let token = write_secrets(&home, &services);
    hand_over(&ordinal, &home);
    let replicas = of_kind(&ordinal, "StatefulSet")["spec"]["replicas"]
        .as_u64()
        .unwrap();
    let pods: Vec<Container> = (0..replicas)
        .map(|number| Container::start(&image, &ordinal, &home, &format!("idmint-{number}")))
        .collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for (number, pod) in pods.iter().enumerate() {
        let at = |port: &str| TlsClient::new(pod.address(port), &services, None);
        for path in probes(&ordinal, "HTTPS") {
            let asked = || {
                runtime.block_on(async { at("9090").try_ask(&format!("GET {path}")).await.ok() })
            };
            until(path, || {
                asked().filter(|answer| answer.status == 200).map(drop)
            });
        }
        let ready = runtime.block_on(at("9090").ask("GET /health/ready"));
        assert!(
            ready.text.contains(&format!("\"slot\":{number},")),
            "{}",
            ready.text
        );
        let bearer = format!("Bearer {token}");
        let mint = || async {
            let mut connection = at("8080").connect().await;
            connection
                .try_ask("POST /ids/snowflake", &[("authorization", &bearer)])
                .await
                .unwrap()
        };
        // Retry, because a mint waits at most 2 s for the disk, and the disk of the volume may be
        // slower.
        until("an id is minted", || {
            (runtime.block_on(mint()).status == 200).then_some(())
        });
    }
}
