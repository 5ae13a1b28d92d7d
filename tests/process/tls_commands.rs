//! Checks commands that call a service with TLS and client certificates.

use std::fs;
use std::process::Command;

use crate::tls::{BILLING, Secured};
use idmint_testing::service::{idmint, run};

#[tokio::test]
async fn commands_ask_a_service_that_speaks_tls() {
    let secured = Secured::new();
    let service = secured
        .start(&secured.client_settings(&format!("'{BILLING}' = ['mint', 'ledger']")))
        .await;
    let [cert, key] = secured
        .clients
        .sign(&[BILLING])
        .write(&secured.home, "billing")
        .map(|path| path.display().to_string());
    let (url, ca) = (
        format!("https://localhost:{}", service.address().port()),
        secured.path("ca.pem"),
    );
    let ask = |args: &[&str], more: &[&str]| {
        let mut command: Command = idmint(args);
        command.args(["--server", &url]).args(more);
        run(command)
    };
    let shown = ["--ca", &*ca, "--cert", &cert, "--cert-key", &key];
    let minted = ask(&["mint", "flax", "-n", "3"], &shown);
    minted.assert(0, &[]);
    assert_eq!(minted.out.lines().count(), 3);
    ask(&["health"], &shown[..2]).assert(0, &[]);
    ask(&["conjunction", "export"], &shown).assert(0, &[]);
    let event = secured.home.path("genesis.json");
    fs::write(
        &event,
        r#"{"event":"begin","entities":{},"meta":{},"data":{}}"#,
    )
    .unwrap();
    let created = ask(
        &[
            "ledger",
            "create",
            event.to_str().unwrap(),
            "--timeout",
            "0s",
        ],
        &shown,
    );
    // Exit code 1 means that the service refused the request, so the connection worked. A failed
    // connection gives exit code 69.
    assert!(
        [Some(0), Some(1)].contains(&created.status.code()),
        "{}",
        created.err
    );
    let both = secured.path("both.pem");
    fs::write(
        &both,
        [fs::read(&key).unwrap(), fs::read(&cert).unwrap()].concat(),
    )
    .unwrap();
    ask(&["mint", "flax"], &["--ca", &ca, "--cert", &both]).assert(0, &[]);

    ask(&["mint", "flax"], &shown[..2]).assert(1, &["no client certificate"]);
    ask(&["mint", "flax"], &shown[2..]).assert(69, &["UnknownIssuer"]);
    ask(
        &["mint", "flax"],
        &[&shown[..2], &["--cert", &cert]].concat(),
    )
    .assert(65, &["no valid private key in PEM format"]);
    ask(&["mint", "flax"], &["--cert-key", &key]).assert(64, &["--cert"]);
    ask(&["mint", "flax"], &["--ca", "/nonexistent/ca"]).assert(74, &["--ca /nonexistent/ca"]);
    ask(&["mint", "flax"], &["--ca", &key]).assert(65, &["no valid certificate in PEM format"]);
    ask(
        &["mint", "flax"],
        &["--ca", &ca, "--cert", &cert, "--cert-key", &ca],
    )
    .assert(65, &["no valid private key in PEM format"]);
    let plain = format!("http://{}", service.address());
    run(idmint(&["mint", "flax", "--server", &plain])).assert(69, &[]);
}
