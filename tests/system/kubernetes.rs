//! Checks `deploy/kubernetes`. The output of kubectl must be valid for Kubernetes and consistent,
//! and nodes must run with it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::fleet::EtcdCluster;
use crate::tools::{promtool, succeed};
use idmint_testing::authority::Authority;
use idmint_testing::http1::{Client, request};
use idmint_testing::service::{Home, Service, idmint, run, until};
use idmint_testing::tls_client::TlsClient;

/// The release of Kubernetes whose schemas and kubectl the tests use.
const RELEASE: &str = "1.34";

/// The folders that deploy nodes. An operator applies one of them.
pub(crate) const SIZES: [&str; 3] = ["single", "ordinal", "fleet"];

/// The folders that an operator applies in addition, in a cluster with a Prometheus operator.
const MONITORING: [&str; 2] = ["monitoring", "monitoring-secured"];

/// The components from which the other folders are composed.
const PARTS: [&str; 2] = ["base", "secured"];

/// The folder with the pod that restores a backup.
const RESTORE: &str = "restore";

/// Kinds of the Prometheus operator, for which Kubernetes publishes no schema.
const OF_OTHERS: [&str; 2] = ["ServiceMonitor", "PrometheusRule"];

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns a command that runs the tool `name` of this environment. All tools for Kubernetes are of
/// the same release.
pub(crate) fn tool(environment: &str, name: &str) -> Command {
    Command::new(
        root()
            .join("target/tools")
            .join(environment)
            .join("bin")
            .join(name),
    )
}

/// Returns the YAML that `kubectl apply -k deploy/kubernetes/FOLDER` would send.
fn render(folder: &str) -> String {
    succeed(
        tool("kubectl", "kubectl")
            .arg("kustomize")
            .arg(root().join("deploy/kubernetes").join(folder)),
    )
}

/// Returns the documents that `kubectl apply -k deploy/kubernetes/FOLDER` would send.
pub(crate) fn documents(folder: &str) -> Vec<Value> {
    documents_of(&render(folder))
}

/// Splits YAML into its documents and parses them.
pub(crate) fn documents_of(rendered: &str) -> Vec<Value> {
    let home = Home::new();
    let file = home.path("rendered.yaml");
    fs::write(&file, rendered).unwrap();
    let script = root().join("tests/system/kubernetes.py");
    let printed = succeed(tool("kubernetes-validate", "python").arg(script).arg(file));
    serde_json::from_str(&printed).unwrap()
}

/// Checks each document whose kind belongs to Kubernetes against the published schemas. Returns the
/// number of these documents.
pub(crate) fn assert_every_field_is_known(rendered: &str) -> usize {
    let home = Home::new();
    let is_ours = |text: &&str| {
        !OF_OTHERS
            .iter()
            .any(|kind| text.contains(&format!("kind: {kind}\n")))
    };
    let ours: Vec<&str> = rendered.split("\n---\n").filter(is_ours).collect();
    let file = home.path("rendered.yaml");
    fs::write(&file, ours.join("\n---\n")).unwrap();
    let mut validate = tool("kubernetes-validate", "kubernetes-validate");
    let told = succeed(
        validate
            .args(["--strict", "--kubernetes-version", RELEASE])
            .arg(&file),
    );
    let passed = told.matches("passed for resource").count();
    assert_eq!(passed, ours.len(), "{told}");
    passed
}

pub(crate) fn of_kind<'a>(documents: &'a [Value], kind: &str) -> &'a Value {
    documents
        .iter()
        .find(|document| document["kind"] == kind)
        .unwrap_or_else(|| panic!("there is a {kind}"))
}

pub(crate) fn pod(documents: &[Value]) -> &Value {
    &of_kind(documents, "StatefulSet")["spec"]["template"]["spec"]
}

pub(crate) fn container(documents: &[Value]) -> &Value {
    &pod(documents)["containers"][0]
}

/// Returns the texts that the items of a list have under the key `name`.
fn names<'a>(list: &'a Value, name: &str) -> Vec<&'a str> {
    list.as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item[name].as_str())
        .collect()
}

/// Returns the configuration file that the pods of these documents get.
pub(crate) fn configuration_text(documents: &[Value]) -> &str {
    of_kind(documents, "ConfigMap")["data"]["idmint.toml"]
        .as_str()
        .unwrap()
}

fn configuration(documents: &[Value]) -> toml::Table {
    toml::from_str(configuration_text(documents)).unwrap()
}

/// Returns a command that runs the container of a pod as a process of this machine, with its
/// arguments and environment. Mounted files are in the folder `home`, and ports are replaced by
/// free ones.
fn command(documents: &[Value], home: &Home, pod: &str, config: &toml::Table) -> Command {
    let here = |text: &str| text.replace("/etc/idmint", home.path("etc").to_str().unwrap());
    fs::create_dir_all(home.path("etc/config")).unwrap();
    fs::write(
        home.path("etc/config/idmint.toml"),
        here(&toml::to_string(config).unwrap()),
    )
    .unwrap();
    let container = container(documents);
    let args: Vec<String> = container["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|arg| here(arg.as_str().unwrap()))
        .collect();
    let mut command = idmint(&args.iter().map(String::as_str).collect::<Vec<_>>());
    for variable in container["env"].as_array().unwrap() {
        let (name, value) = (
            variable["name"].as_str().unwrap(),
            variable["value"].as_str().unwrap(),
        );
        let value = match name {
            "IDMINT_HTTP__LISTEN" | "IDMINT_HTTP__ADMIN_LISTEN" => {
                let (host, _) = value.rsplit_once(':').unwrap();
                assert!(
                    ["[::]", "0.0.0.0"].contains(&host),
                    "other pods reach it: {value}"
                );
                format!("{host}:0")
            }
            "IDMINT_STORAGE__DATA_DIR" => {
                let mounts = container["volumeMounts"].as_array().unwrap();
                assert!(
                    mounts
                        .iter()
                        .any(|mount| mount["mountPath"] == value && mount["name"] == "data"),
                    "{value}"
                );
                home.path(&format!("data-{pod}")).display().to_string()
            }
            _ => here(value),
        };
        command.env(name, value);
    }
    command
        .env("KUBERNETES_SERVICE_HOST", "10.0.0.1")
        .env("HOSTNAME", pod);
    command
}

/// Returns the path of each probe. Asserts that the container has the port of each probe.
pub(crate) fn probes<'a>(documents: &'a [Value], scheme: &str) -> Vec<&'a str> {
    let container = container(documents);
    let ports = names(&container["ports"], "name");
    let probes = ["startupProbe", "livenessProbe", "readinessProbe"].map(|probe| {
        let asked = &container[probe]["httpGet"];
        assert_eq!(asked["scheme"], scheme, "{probe}");
        assert!(
            ports.contains(&asked["port"].as_str().unwrap()),
            "{probe}: {ports:?}"
        );
        asked["path"].as_str().unwrap()
    });
    probes.to_vec()
}

/// Writes the two secrets of nodes with TLS. Returns a token with the scope `mint`.
pub(crate) fn write_secrets(home: &Home, services: &Authority) -> String {
    for folder in ["etc/tls", "etc/tokens"] {
        fs::create_dir_all(home.path(folder)).unwrap();
    }
    services
        .sign(&["localhost", "127.0.0.1"])
        .write(home, "etc/tls/tls");
    let mut made = idmint(&[
        "token", "new", "--name", "caller", "--scopes", "mint", "--file",
    ]);
    made.arg(home.path("etc/tokens/tokens.toml"));
    run(made).out.trim().to_owned()
}

/// Asserts that a node responds to its probes over TLS, and that it mints only with a token.
fn assert_serves_by_tls(node: &Service, documents: &[Value], services: &Authority, token: &str) {
    let address = format!("127.0.0.1:{}", node.address().port())
        .parse()
        .unwrap();
    let client = TlsClient::new(address, services, None);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for path in probes(documents, "HTTPS") {
        until(path, || {
            (runtime.block_on(client.ask(&format!("GET {path}"))).status == 200).then_some(())
        });
    }
    let mint = |headers: &[(&str, &str)]| {
        runtime.block_on(async {
            client
                .connect()
                .await
                .try_ask("POST /ids/snowflake", headers)
                .await
                .unwrap()
                .status
        })
    };
    let bearer = format!("Bearer {token}");
    assert_eq!(mint(&[]), 401);
    assert_eq!(mint(&[("authorization", &bearer)]), 200);
}

#[test]
fn kubectl_is_of_the_release_whose_schemas_are_asked() {
    let told = succeed(tool("kubectl", "kubectl").args(["version", "--client"]));
    assert!(
        told.contains(&format!("Client Version: v{RELEASE}.")),
        "{told}"
    );
    let folder = fs::read_dir(root().join("deploy/kubernetes")).unwrap();
    let there: BTreeSet<String> = folder
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let known = SIZES
        .iter()
        .chain(&MONITORING)
        .chain(&PARTS)
        .chain([&RESTORE])
        .map(|name| (*name).to_owned());
    assert_eq!(there, known.collect());
}

#[test]
fn kubernetes_knows_every_field_of_the_manifests() {
    for folder in SIZES.iter().chain(&MONITORING).chain([&RESTORE]) {
        let passed = assert_every_field_is_known(&render(folder));
        println!("{folder}: {passed} resources");
        assert!(
            passed >= if SIZES.contains(folder) { 6 } else { 1 },
            "{folder}: {passed}"
        );
    }
}

/// The pod that restores must be able to write the volume as the node does.
#[test]
fn the_pod_that_restores_has_the_volume_image_and_rights_of_the_first_node() {
    let (node, restore) = (documents("single"), documents(RESTORE));
    let claim = of_kind(&restore, "PersistentVolumeClaim");
    let template = &of_kind(&node, "StatefulSet")["spec"]["volumeClaimTemplates"][0];
    assert_eq!(claim["metadata"]["name"], "data-idmint-0");
    assert_eq!(claim["spec"], template["spec"]);
    let restoring = &of_kind(&restore, "Pod")["spec"];
    let volume = &restoring["volumes"][0]["persistentVolumeClaim"];
    assert_eq!(volume["claimName"], claim["metadata"]["name"]);
    assert_eq!(restoring["securityContext"], pod(&node)["securityContext"]);
    let restoring = &restoring["containers"][0];
    for same in ["image", "securityContext"] {
        assert_eq!(restoring[same], container(&node)[same], "{same}");
    }
    let mounts = container(&node)["volumeMounts"].as_array().unwrap();
    assert!(mounts.contains(&restoring["volumeMounts"][0]));
}

#[test]
fn what_a_pod_mounts_and_what_the_others_select_is_there() {
    for size in SIZES {
        let documents = documents(size);
        let (pod, container) = (pod(&documents), container(&documents));
        let claims = &of_kind(&documents, "StatefulSet")["spec"]["volumeClaimTemplates"];
        let volumes: BTreeSet<&str> = names(&pod["volumes"], "name").into_iter().collect();
        let mut volumes_and_claims = volumes;
        volumes_and_claims.extend(
            claims
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|claim| claim["metadata"]["name"].as_str()),
        );
        let mounted: BTreeSet<&str> = names(&container["volumeMounts"], "name")
            .into_iter()
            .collect();
        assert_eq!(mounted, volumes_and_claims, "{size}");
        let config = &of_kind(&documents, "ConfigMap")["metadata"]["name"];
        let volume = pod["volumes"]
            .as_array()
            .unwrap()
            .iter()
            .find(|volume| volume["name"] == "config")
            .unwrap();
        assert_eq!(
            &volume["configMap"]["name"], config,
            "{size}: another content is another name"
        );
        assert_eq!(
            container["image"],
            concat!("idmint:", env!("CARGO_PKG_VERSION")),
            "{size}"
        );
        let labels = &of_kind(&documents, "StatefulSet")["spec"]["template"]["metadata"]["labels"];
        for kind in ["Service", "PodDisruptionBudget", "NetworkPolicy"] {
            let spec = &of_kind(&documents, kind)["spec"];
            let selector = [
                &spec["selector"]["matchLabels"],
                &spec["podSelector"]["matchLabels"],
                &spec["selector"],
            ];
            let selected = selector
                .into_iter()
                .find(|selector| selector.is_object())
                .unwrap();
            assert_eq!(selected, labels, "{size}: {kind}");
        }
        let secrets = pod["volumes"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|volume| volume["secret"]["secretName"].as_str());
        let secrets: Vec<&str> = secrets.collect();
        let expected: &[&str] = match size {
            "single" => &[],
            "ordinal" => &["idmint-tls", "idmint-tokens"],
            _ => &["idmint-etcd", "idmint-tls", "idmint-tokens"],
        };
        assert_eq!(secrets, expected, "{size}");
        let namespace = if size == "single" {
            Value::Null
        } else {
            "ids".into()
        };
        assert!(
            documents
                .iter()
                .all(|document| document["metadata"]["namespace"] == namespace),
            "{size}"
        );
    }
}

/// Parses a duration of Prometheus such as `30s`.
fn seconds(text: &str) -> u64 {
    let (number, unit) = text.split_at(text.len() - 1);
    let number: u64 = number.parse().expect("a number");
    number
        * match unit {
            "s" => 1,
            "m" => 60,
            "h" => 60 * 60,
            "d" => 24 * 60 * 60,
            _ => panic!("{text}"),
        }
}

#[test]
fn the_monitoring_finds_the_nodes_and_has_the_alerts_and_the_dashboard() {
    let nodes = documents("fleet");
    let is_of_nodes = |document: &&Value| document["metadata"]["name"] == "idmint-nodes";
    let service = nodes
        .iter()
        .find(is_of_nodes)
        .expect("a service of the nodes");
    for folder in MONITORING {
        let documents = documents(folder);
        let monitor = &of_kind(&documents, "ServiceMonitor")["spec"];
        let selected = monitor["selector"]["matchLabels"].as_object().unwrap();
        assert!(
            selected
                .iter()
                .all(|(name, value)| &service["metadata"]["labels"][name] == value),
            "{selected:?}"
        );
        let endpoint = &monitor["endpoints"][0];
        assert!(
            names(&service["spec"]["ports"], "name").contains(&endpoint["port"].as_str().unwrap())
        );
        let scheme = if folder == "monitoring" {
            "http"
        } else {
            "https"
        };
        assert_eq!(
            (&endpoint["scheme"], endpoint["tlsConfig"].is_object()),
            (&scheme.into(), scheme == "https")
        );
        let relabeling = &endpoint["relabelings"][0];
        assert_eq!(
            (&relabeling["targetLabel"], &relabeling["replacement"]),
            (&"job".into(), &"idmint-$1".into()),
            "{folder}"
        );
        // A rate over a range needs two scrapes in the range.
        let interval = seconds(endpoint["interval"].as_str().unwrap());
        let groups = of_kind(&documents, "PrometheusRule")["spec"]["groups"].to_string();
        let ranges = groups.split("increase(").skip(1).map(|increase| {
            let (range, _) = increase.split_once("])").expect("a range");
            seconds(range.rsplit_once('[').expect("a range").1)
        });
        let shortest = ranges.min().expect("an increase");
        assert!(
            2 * interval <= shortest,
            "{folder}: {interval} s, {shortest} s"
        );

        let home = Home::new();
        let rules = home.path("rules.yaml");
        // Write the rules as JSON, because every JSON text is also YAML.
        fs::write(
            &rules,
            of_kind(&documents, "PrometheusRule")["spec"].to_string(),
        )
        .unwrap();
        let told = promtool(&[Path::new("check"), Path::new("rules"), &rules]);
        let alerts = fs::read_to_string(root().join("deploy/prometheus/alerts.yml"))
            .unwrap()
            .matches("- alert:")
            .count();
        assert!(told.contains(&format!("{alerts} rules found")), "{told}");

        let dashboard = of_kind(&documents, "ConfigMap");
        assert_eq!(dashboard["metadata"]["labels"]["grafana_dashboard"], "1");
        let file = fs::read_to_string(root().join("deploy/grafana/idmint.json")).unwrap();
        assert_eq!(dashboard["data"]["idmint.json"], file);
    }
}

#[test]
fn one_node_runs_by_the_manifests_of_the_smallest_size_without_a_secret() {
    let (documents, home) = (documents("single"), Home::new());
    let mut config = configuration(&documents);
    // Turn off the delay before a shutdown. It is meant for callers, and this node has none.
    config["http"]["drain_delay"] = "0s".into();
    let node = Service::start(command(&documents, &home, "idmint-0", &config));
    let address = format!("127.0.0.1:{}", node.address().port())
        .parse()
        .unwrap();
    let ask = |line: &str, headers: &str| {
        Client::connect(address)
            .exchange(request(line, headers, ""))
            .status
    };
    for path in probes(&documents, "HTTP") {
        until(path, || {
            (ask(&format!("GET {path}"), "") == 200).then_some(())
        });
    }
    assert_eq!(ask("POST /ids/snowflake", ""), 200);
    for host in configuration(&documents)["http"]["hosts"]
        .as_array()
        .unwrap()
    {
        let host = host.as_str().unwrap();
        let named = request("POST /ids/snowflake", "", "")
            .replace("host: localhost", &format!("host: {host}"));
        assert_eq!(
            Client::connect(address).exchange(named).status,
            200,
            "{host}"
        );
    }
    // Run the documented command with the environment of the container.
    let mut mint = idmint(&["mint", "snowflake"]);
    mint.env("IDMINT_HTTP__LISTEN", address.to_string());
    run(mint).assert(0, &[]);
}

#[test]
fn pods_have_the_slots_of_their_numbers_by_the_manifests_without_an_etcd() {
    let (documents, home) = (documents("ordinal"), Home::new());
    let services = Authority::new("of services");
    let token = write_secrets(&home, &services);
    let mut config = configuration(&documents);
    config["http"]["drain_delay"] = "0s".into();
    let replicas = of_kind(&documents, "StatefulSet")["spec"]["replicas"]
        .as_u64()
        .unwrap();
    assert_eq!(replicas, 3);
    for number in 0..replicas {
        let node = Service::start(command(
            &documents,
            &home,
            &format!("idmint-{number}"),
            &config,
        ));
        assert_serves_by_tls(&node, &documents, &services, &token);
        assert!(
            node.banner().contains(&format!("slot {number} of 32")),
            "{}",
            node.banner()
        );
    }
    let stray = command(&documents, &home, "idmint-32", &config);
    run(stray).assert(78, &["32"]);
}

#[test]
fn a_node_of_a_fleet_runs_by_the_manifests_with_the_role_that_the_page_grants() {
    let (documents, home) = (documents("fleet"), Home::new());
    let (services, etcds) = (Authority::new("of services"), Authority::new("of etcd"));
    let token = write_secrets(&home, &services);
    fs::create_dir_all(home.path("etc/etcd")).unwrap();
    let [certificate, key] = etcds
        .sign(&["idmint", "localhost", "127.0.0.1"])
        .write(&home, "etc/etcd/tls");
    let ca = home.path("etc/etcd/ca.crt");
    fs::write(&ca, &etcds.pem).unwrap();
    let flag = |name: &str, path: &PathBuf| format!("--{name}={}", path.display());
    let args = [
        flag("cert-file", &certificate),
        flag("key-file", &key),
        flag("trusted-ca-file", &ca),
        "--client-cert-auth=true".to_owned(),
    ];
    let etcdctl = [
        flag("cacert", &ca),
        flag("cert", &certificate),
        flag("key", &key),
    ];
    let etcd = EtcdCluster::start_with(1, "https", &args, &etcdctl);
    let page = fs::read_to_string(root().join("docs/KUBERNETES.md")).unwrap();
    let typed = page
        .lines()
        .filter_map(|line| line.strip_prefix("$ etcdctl "));
    let granting: Vec<Vec<&str>> = typed
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert!(granting.len() >= 4, "{granting:?}");
    etcd.etcdctl(&["user", "add", "root:secret"]);
    etcd.etcdctl(&["user", "grant-role", "root", "root"]);
    granting
        .iter()
        .for_each(|command| drop(etcd.etcdctl(command)));
    etcd.etcdctl(&["auth", "enable"]);

    let mut config = configuration(&documents);
    config["etcd"]["endpoints"] = etcd.endpoints().into();
    config["http"]["drain_delay"] = "0s".into();
    let mut serve = command(&documents, &home, "idmint-0", &config);
    // Say that the fleet is new, because the etcd of this node is new. Without this flag, the first
    // start takes a minute.
    serve.arg("--new-fleet");
    let node = Service::start(serve);
    assert_serves_by_tls(&node, &documents, &services, &token);
}
