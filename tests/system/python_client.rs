//! Uses a client that a third-party generator makes from `openapi.yaml`. `python_client.py` calls
//! the client.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::tools::succeed;
use idmint_testing::chains::chains;
use idmint_testing::service::Home;

fn program(name: &str) -> Command {
    let tools =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/openapi-python-client/bin");
    assert!(
        tools.join(name).is_file(),
        "{name} is there: installed by .ci/install-openapi-python-client"
    );
    let mut command = Command::new(tools.join(name));
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

#[test]
fn a_generated_python_client_mints_decodes_appends_and_verifies() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let client = home.path("ids_client");
    let mut generate = program("openapi-python-client");
    generate
        .args([
            "generate",
            "--path",
            "openapi.yaml",
            "--meta",
            "none",
            "--output-path",
        ])
        .arg(&client);
    let said = succeed(&mut generate);
    // The generator does not support KVN, NDJSON and XML, which some operations offer in addition
    // to JSON. Check that it still generates every operation.
    assert!(!said.contains("will not be generated"), "{said}");

    // The chain must begin with the event that the documents show.
    let chain = chains().swap_remove(1);
    let events = home.path("chain.ndjson");
    fs::write(&events, chain.lines.join("\n")).unwrap();
    let mut script = program("python");
    script
        .arg("tests/system/python_client.py")
        .arg(&client)
        .arg(service.url())
        .arg(&events);
    assert_eq!(succeed(&mut script), "done\n");
}
