//! `deploy/kubernetes`: what it says is what Kubernetes understands, fits together, and runs a node.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::authority::Authority;
use crate::fleet::EtcdCluster;
use crate::service::{Home, Service, idmint, run, until};
use crate::tls_client::TlsClient;
use crate::tools::succeed;

/// The release of Kubernetes whose schemas are asked.
const RELEASE: &str = "1.34";

/// Kinds that Kubernetes does not define itself, so that their schemas are not among those it publishes.
const OF_OTHERS: [&str; 2] = ["kustomization.yaml", "service-monitor.yaml"];

fn manifests() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/kubernetes");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn tool(name: &str) -> Command {
    let bin = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/kubernetes-validate/bin");
    Command::new(bin.join(name))
}

/// All documents of all manifests.
fn documents() -> Vec<Value> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/system/kubernetes.py");
    let printed = succeed(tool("python").arg(script).args(manifests()));
    serde_json::from_str(&printed).unwrap()
}

fn of_kind<'a>(documents: &'a [Value], kind: &str) -> &'a Value {
    documents.iter().find(|document| document["kind"] == kind).unwrap_or_else(|| panic!("there is a {kind}"))
}

/// The configuration of a node that has these files, and reaches this etcd.
fn configuration(documents: &[Value], home: &Home, etcd: &EtcdCluster) -> String {
    let text = of_kind(documents, "ConfigMap")["data"]["idmint.toml"].as_str().unwrap();
    let mut config: toml::Table = toml::from_str(text).unwrap();
    config["etcd"]["endpoints"] = etcd.endpoints().into();
    config["http"]["admin_listen"] = "127.0.0.1:0".into();
    // Otherwise it would wait with nobody to wait for.
    config["http"]["drain_delay"] = "0s".into();
    toml::to_string(&config).unwrap().replace("/etc/idmint", home.path("etc").to_str().unwrap())
}

#[test]
fn kubernetes_knows_every_field_of_the_manifests() {
    let ours = |file: &PathBuf| !OF_OTHERS.iter().any(|other| file.ends_with(other));
    let files: Vec<PathBuf> = manifests().into_iter().filter(ours).collect();
    let told = succeed(tool("kubernetes-validate").args(["--strict", "--kubernetes-version", RELEASE]).args(&files));
    let passed = told.matches("passed for resource").count();
    println!("{passed} resources in {} files", files.len());
    assert!(passed >= 6 && passed >= files.len(), "{told}");
    let kustomization = documents().into_iter().find(|document| document["kind"] == "Kustomization").unwrap();
    let listed: BTreeSet<&str> =
        kustomization["resources"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let there = manifests();
    let there: BTreeSet<&str> = there.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(there.difference(&listed).copied().collect::<Vec<_>>(), ["kustomization.yaml"]);
    assert!(listed.is_subset(&there), "{listed:?}");
}

#[test]
fn a_node_runs_by_the_manifests_and_answers_their_probes() {
    let documents = documents();
    let home = Home::new();
    let (services, etcds) = (Authority::new("of services"), Authority::new("of etcd"));
    for folder in ["etc/tls", "etc/etcd", "etc/tokens"] {
        fs::create_dir_all(home.path(folder)).unwrap();
    }
    for (folder, authority) in [("etc/tls", &services), ("etc/etcd", &etcds)] {
        authority.sign(&["localhost", "127.0.0.1"]).write(&home, &format!("{folder}/tls"));
        fs::write(home.path(folder).join("ca.crt"), &authority.pem).unwrap();
    }
    let mut made = idmint(&["token", "new", "--name", "caller", "--scopes", "mint", "--file"]);
    made.arg(home.path("etc/tokens/tokens.toml"));
    let token = run(made).out.trim().to_owned();

    let file = |name: &str| home.path(&format!("etc/etcd/{name}")).display().to_string();
    let [ca, certificate, key] = ["ca.crt", "tls.crt", "tls.key"].map(file);
    let etcd = EtcdCluster::start_with(
        1,
        "https",
        &[
            format!("--cert-file={certificate}"),
            format!("--key-file={key}"),
            format!("--trusted-ca-file={ca}"),
            "--client-cert-auth=true".to_owned(),
        ],
        &[format!("--cacert={ca}"), format!("--cert={certificate}"), format!("--key={key}")],
    );
    let mut serve = home.serve_with(&configuration(&documents, &home, &etcd));
    // Its etcd is its own; without this the first start of all takes a minute.
    serve.arg("--new-fleet");
    let node = Service::start(serve);

    let client = TlsClient::new(node.address(), &services, None);
    let container = &of_kind(&documents, "StatefulSet")["spec"]["template"]["spec"]["containers"][0];
    let ports: Vec<&str> =
        container["ports"].as_array().unwrap().iter().filter_map(|port| port["name"].as_str()).collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        let asked = &container[probe]["httpGet"];
        assert_eq!(asked["scheme"], "HTTPS", "{probe}");
        assert!(ports.contains(&asked["port"].as_str().unwrap()), "{probe}: {ports:?}");
        let path = asked["path"].as_str().unwrap();
        until(path, || (runtime.block_on(client.ask(&format!("GET {path}"))).status == 200).then_some(()));
    }
    let mint = |headers: &[(&str, &str)]| {
        runtime.block_on(async { client.connect().await.try_ask("POST /ids/snowflake", headers).await.unwrap().status })
    };
    let bearer = format!("Bearer {token}");
    assert_eq!(mint(&[]), 401);
    assert_eq!(mint(&[("authorization", &bearer)]), 200);
}
