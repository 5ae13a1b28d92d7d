//! Checks the Helm chart in `deploy/helm`. It must render the same objects as `deploy/kubernetes`,
//! and must use its values.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::{Value, json};

use crate::console::commands_below;
use crate::kubernetes::{
    SIZES, assert_every_field_is_known, configuration_text, container, documents, documents_of,
    of_kind, pod, root, tool,
};
use crate::tools::{output_of, succeed};

/// Returns the namespace of a size of `deploy/kubernetes` (a single node or a fleet). The namespace
/// is part of host names.
fn namespace(size: &str) -> &'static str {
    if size == "single" { "default" } else { "ids" }
}

fn helm(args: &[&str]) -> Command {
    let mut helm = tool("kubectl", "helm");
    helm.args(args).arg(root().join("deploy/helm/idmint"));
    helm
}

/// Returns a `helm template` command for this mode, with additional values.
fn template(mode: &str, values: &[&str]) -> Command {
    let mut template = helm(&["template", "idmint", "--namespace", namespace(mode)]);
    template.args(["--set", &format!("mode={mode}")]);
    for value in values {
        template.args(["--set", value]);
    }
    template
}

fn rendered(mode: &str, values: &[&str]) -> Vec<Value> {
    documents_of(&succeed(&mut template(mode, values)))
}

/// Returns every object by its kind and name. Namespaces are left out, because Helm adds one to
/// each object without a namespace.
fn by_name(documents: Vec<Value>) -> BTreeMap<(String, String), Value> {
    let named = documents.into_iter().map(|mut document| {
        let text = |value: &Value| {
            value
                .as_str()
                .expect("an object has a kind and a name")
                .to_owned()
        };
        let name = (text(&document["kind"]), text(&document["metadata"]["name"]));
        document["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("namespace");
        (name, document)
    });
    named.collect()
}

#[test]
fn a_chart_of_each_mode_is_what_kubectl_makes_of_the_size_of_that_name() {
    for size in SIZES {
        let (ours, theirs) = (by_name(rendered(size, &[])), by_name(documents(size)));
        assert!(
            ours.keys().eq(theirs.keys()),
            "{size}: {:?}, {:?}",
            ours.keys(),
            theirs.keys()
        );
        for (name, object) in &ours {
            assert_eq!(object, &theirs[name], "{size}: {name:?}");
        }
        println!("{size}: {} objects", ours.len());
        assert!(ours.len() >= 6, "{size}");
    }
}

#[test]
fn helm_finds_no_fault_in_the_chart_and_kubernetes_knows_every_field() {
    for size in SIZES {
        let told = succeed(helm(&["lint", "--strict"]).args(["--set", &format!("mode={size}")]));
        assert!(
            told.contains("1 chart(s) linted, 0 chart(s) failed"),
            "{told}"
        );
        // Remove the first separator, because the text before it would count as an empty document.
        let text = succeed(&mut template(size, &[]));
        assert!(
            assert_every_field_is_known(text.trim_start_matches("---\n")) >= 6,
            "{size}"
        );
    }
    let chart = std::fs::read_to_string(root().join("deploy/helm/idmint/Chart.yaml")).unwrap();
    let chart = &documents_of(&chart)[0];
    let version = Value::from(env!("CARGO_PKG_VERSION"));
    assert_eq!(
        (&chart["version"], &chart["appVersion"]),
        (&version, &version)
    );
}

#[test]
fn what_a_release_says_of_its_nodes_is_in_what_is_rendered() {
    let said = [
        "image.repository=registry.example.com/idmint",
        "image.tag=9.9.9",
        "image.pullPolicy=Always",
        "replicas=5",
        "resources.limits.memory=1Gi",
        "volume.size=2Gi",
        "hosts={ids.example.com,idmint}",
        "etcd.endpoints={https://etcd.example.com:2379}",
        "secrets.tls=of-tls",
        "secrets.tokens=of-tokens",
        "secrets.etcd=of-etcd",
        "networkPolicy=false",
    ];
    let documents = rendered("fleet", &said);
    let container = container(&documents);
    assert_eq!(
        (&container["image"], &container["imagePullPolicy"]),
        (
            &json!("registry.example.com/idmint:9.9.9"),
            &json!("Always")
        )
    );
    assert_eq!(container["resources"]["limits"]["memory"], "1Gi");
    let set = &of_kind(&documents, "StatefulSet")["spec"];
    assert_eq!(set["replicas"], 5);
    assert_eq!(
        set["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"],
        "2Gi"
    );
    let volumes = pod(&documents)["volumes"].as_array().unwrap();
    let secrets: Vec<&str> = volumes
        .iter()
        .filter_map(|volume| volume["secret"]["secretName"].as_str())
        .collect();
    assert_eq!(secrets, ["of-etcd", "of-tls", "of-tokens"]);
    let configuration: toml::Table = configuration_text(&documents).parse().unwrap();
    assert_eq!(
        configuration["http"]["hosts"],
        vec!["ids.example.com", "idmint"].into()
    );
    assert_eq!(
        configuration["etcd"]["endpoints"],
        vec!["https://etcd.example.com:2379"].into()
    );
    assert!(
        documents
            .iter()
            .all(|document| document["kind"] != "NetworkPolicy")
    );
    let usual = rendered("fleet", &[]);
    let name = |documents: &[Value]| of_kind(documents, "ConfigMap")["metadata"]["name"].clone();
    assert_ne!(
        name(&documents),
        name(&usual),
        "another content is another name"
    );
}

/// Returns the names of all values in a table of values, such as `image.tag`.
fn leaves(above: &str, value: &Value) -> Vec<String> {
    match value.as_object() {
        // The names below `resources` are defined by Kubernetes and not by the chart.
        Some(table) if above != "resources" => {
            let below = |name: &String| {
                if above.is_empty() {
                    name.clone()
                } else {
                    format!("{above}.{name}")
                }
            };
            table
                .iter()
                .flat_map(|(name, value)| leaves(&below(name), value))
                .collect()
        }
        _ => vec![above.to_owned()],
    }
}

#[test]
fn what_the_page_types_renders_and_its_table_has_every_value() {
    let page = "docs/KUBERNETES.md";
    let typed = commands_below(page, "## With Helm");
    assert!(typed.len() >= 3, "{typed:?}");
    for (command, _) in typed {
        let words = command
            .split_whitespace()
            .skip(2)
            .filter(|word| *word != "--reset-then-reuse-values");
        let mut template = tool("kubectl", "helm");
        let text = succeed(template.arg("template").args(words).current_dir(root()));
        assert!(documents_of(&text).len() >= 6, "{command}");
    }
    let page = std::fs::read_to_string(root().join(page)).unwrap();
    let values = std::fs::read_to_string(root().join("deploy/helm/idmint/values.yaml")).unwrap();
    for name in leaves("", &documents_of(&values)[0]) {
        assert!(
            page.contains(&format!("`{name}`")),
            "the page has no {name}"
        );
    }
}

#[test]
fn what_would_run_no_node_or_two_on_one_record_is_not_rendered() {
    for (mode, value, told) in [
        ("single", "replicas=3", "replicas"),
        ("ordinal", "replicas=33", "replicas"),
        ("ordinal", "replicas=0", "replicas"),
        ("cluster", "replicas=1", "mode"),
        ("fleet", "etcd.endpoints={http://etcd:2379}", "endpoints"),
        ("fleet", "etcd.endpoint=https://etcd:2379", "endpoint"),
        ("single", "image.policy=Always", "policy"),
    ] {
        let output = output_of(&mut template(mode, &[value]));
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && text.contains(told),
            "{mode} {value}: {text}"
        );
    }
}
