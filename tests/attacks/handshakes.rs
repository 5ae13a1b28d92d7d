//! Attackers that start a TLS handshake and never finish it. The service has then already computed
//! a signature, while the attackers have computed nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::AsyncReadExt;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::aim::Aim;
use super::attacker::{Attacker, COME_AGAIN, READ_LEN};
use super::door::client_hello;
use super::slow;
use idmint_testing::service::Home;

pub(super) const CALLERS: usize = 1_000;

const CERTIFICATE: &str = "service.crt";
const KEY: &str = "service.key";

/// Writes a certificate and its key, and returns the paths of both files.
pub(super) fn write_certificate(home: &Home) -> (PathBuf, PathBuf) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (home.path(CERTIFICATE), home.path(KEY));
    fs::write(&certificate, cert.pem()).unwrap();
    fs::write(&key, signing_key.serialize_pem()).unwrap();
    (certificate, key)
}

/// Returns the TLS configuration of a server with the files in this folder.
pub(super) fn server_config(dir: &Path) -> ServerConfig {
    let certificate = CertificateDer::from_pem_file(dir.join(CERTIFICATE)).unwrap();
    let key = PrivateKeyDer::from_pem_file(dir.join(KEY)).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder
        .with_safe_default_protocol_versions()
        .expect("ring knows TLS 1.2 and 1.3");
    builder
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("they belong together")
}

pub(super) fn certificate(home: &Home) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(home.path(CERTIFICATE)).unwrap()
}

/// Sends a ClientHello, the first message of a TLS handshake. Closes the connection after the first
/// response or after one second, and reconnects.
pub(super) fn begun(aim: &Aim) -> JoinSet<()> {
    let hello = client_hello();
    aim.attackers(CALLERS, move |aim, number| {
        let hello = hello.clone();
        async move {
            let mut buffer = vec![0; READ_LEN];
            loop {
                let mut attacker = Attacker::connect(&aim, number).await;
                let is_sent = attacker.send(&hello).await;
                attacker.deeds.requests.add(usize::from(is_sent));
                let answered = timeout(COME_AGAIN, attacker.stream.read(&mut buffer)).await;
                attacker
                    .deeds
                    .received
                    .add(answered.map_or(0, |read| read.unwrap_or(0)));
                drop(attacker);
                sleep(COME_AGAIN).await;
            }
        }
    })
}

/// Sends a ClientHello slowly, one byte every half second.
pub(super) fn stalled(aim: &Aim) -> JoinSet<()> {
    let hello = client_hello();
    aim.attackers(slow::SLOW, move |aim, number| {
        let hello = hello.clone();
        async move {
            loop {
                let mut attacker = Attacker::connect(&aim, number).await;
                for byte in &hello {
                    if !attacker.send(&[*byte]).await {
                        break;
                    }
                    sleep(slow::BETWEEN_BYTES).await;
                }
                sleep(COME_AGAIN).await;
            }
        }
    })
}
