//! A TLS client, which may have a client certificate.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::WantsClientCert;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{ClientConfig, ConfigBuilder, RootCertStore, SupportedProtocolVersion};

use crate::authority::{Authority, Identity};
use crate::service::LONG;

/// The address and the TLS settings of a client.
#[derive(Clone)]
pub struct TlsClient {
    address: SocketAddr,
    config: ClientConfig,
}

/// A connection that can be used for several requests.
pub enum Connection {
    Http1(http1::SendRequest<Body>),
    Http2(http2::SendRequest<Body>),
}

/// A complete response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub text: String,
}

impl TlsClient {
    /// Creates a client that trusts this authority. `shown` is its client certificate, or `None` if
    /// it has none.
    pub fn new(address: SocketAddr, trusted: &Authority, shown: Option<&Identity>) -> TlsClient {
        let builder = trusting(trusted, &[&TLS12, &TLS13]);
        let config = match shown {
            None => builder.with_no_client_auth(),
            Some(shown) => {
                let certificate =
                    CertificateDer::from_pem_slice(shown.certificate.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(shown.key.as_bytes()).unwrap();
                builder
                    .with_client_auth_cert(vec![certificate], key)
                    .unwrap()
            }
        };
        TlsClient { address, config }
    }

    /// Creates a client that has no client certificate and supports only TLS 1.2.
    pub fn of_tls12(address: SocketAddr, trusted: &Authority) -> TlsClient {
        TlsClient {
            address,
            config: trusting(trusted, &[&TLS12]).with_no_client_auth(),
        }
    }

    /// Makes the client offer this ALPN protocol.
    pub fn speaking(mut self, protocol: &str) -> TlsClient {
        self.config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        self
    }

    pub async fn try_connect(&self) -> io::Result<Connection> {
        let connecting = async {
            let stream = TcpStream::connect(self.address).await?;
            let name = ServerName::try_from("localhost").unwrap();
            let connector = TlsConnector::from(Arc::new(self.config.clone()));
            let stream = connector.connect(name, stream).await?;
            let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            let stream = TokioIo::new(stream);
            Ok(if is_http2 {
                let (sender, connection) = http2::handshake(TokioExecutor::new(), stream)
                    .await
                    .map_err(io::Error::other)?;
                tokio::spawn(connection);
                Connection::Http2(sender)
            } else {
                let (sender, connection) =
                    http1::handshake(stream).await.map_err(io::Error::other)?;
                tokio::spawn(connection);
                Connection::Http1(sender)
            })
        };
        tokio::time::timeout(LONG, connecting)
            .await
            .expect("a handshake ends")
    }

    pub async fn connect(&self) -> Connection {
        self.try_connect().await.unwrap()
    }

    /// Sends one request on a new connection.
    pub async fn try_ask(&self, method_and_path: &str) -> io::Result<Answer> {
        self.try_connect()
            .await?
            .try_ask(method_and_path, &[])
            .await
    }

    /// Sends one request on a new connection.
    ///
    /// # Panics
    /// Panics if the request gets no response.
    pub async fn ask(&self, method_and_path: &str) -> Answer {
        self.try_ask(method_and_path).await.unwrap()
    }

    pub async fn wait_until_ready(&self) {
        let begun = std::time::Instant::now();
        while self.ask("GET /health/ready").await.status != 200 {
            assert!(begun.elapsed() < LONG, "the service is not ready");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Connection {
    pub fn is_http2(&self) -> bool {
        matches!(self, Connection::Http2(_))
    }

    /// Sends one request on this connection.
    pub async fn try_ask(
        &mut self,
        method_and_path: &str,
        headers: &[(&str, &str)],
    ) -> io::Result<Answer> {
        let (method, path) = method_and_path.split_once(' ').unwrap();
        let uri = if self.is_http2() {
            format!("https://localhost{path}")
        } else {
            path.to_owned()
        };
        let mut request = Request::builder().method(method).uri(uri);
        if !self.is_http2() {
            request = request.header("host", "localhost");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request
            .header("accept", "text/plain, */*;q=0.5")
            .body(Body::empty())
            .unwrap();
        let asking = async {
            let answer = match self {
                Connection::Http1(sender) => sender.send_request(request).await,
                Connection::Http2(sender) => sender.send_request(request).await,
            };
            let (head, body) = answer.map_err(io::Error::other)?.into_parts();
            let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
            let text = String::from_utf8_lossy(&body).into_owned();
            Ok(Answer {
                status: head.status.as_u16(),
                text,
            })
        };
        tokio::time::timeout(LONG, asking)
            .await
            .expect("an answer, or the end of the connection")
    }

    pub async fn ask(&mut self, method_and_path: &str) -> Answer {
        self.try_ask(method_and_path, &[]).await.unwrap()
    }
}

/// Returns a builder for the settings of a client that trusts this authority and supports these TLS
/// versions.
fn trusting(
    trusted: &Authority,
    versions: &[&'static SupportedProtocolVersion],
) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(trusted.pem.as_bytes()).unwrap())
        .unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    builder
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
}
