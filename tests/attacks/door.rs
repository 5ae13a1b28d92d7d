//! Connects honest callers to the service, with TLS if the service uses TLS.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use idmint_testing::http1::{Client, Wire, request};
use idmint_testing::service::until;

/// A client with or without TLS.
pub(crate) type AnyClient = Client<Box<dyn Wire + Send>>;

/// The address of a service, and the TLS configuration to connect to it.
#[derive(Clone)]
pub(crate) struct Door {
    address: SocketAddr,
    /// The TLS configuration, or `None` if the service does not use TLS.
    tls: Option<Arc<ClientConfig>>,
}

impl Door {
    pub(crate) fn in_the_clear(address: SocketAddr) -> Door {
        Door { address, tls: None }
    }

    /// Creates a door to a service that uses TLS with this certificate.
    pub(crate) fn by_tls(address: SocketAddr, certificate: CertificateDer<'static>) -> Door {
        Door {
            address,
            tls: Some(Arc::new(trusting([certificate]))),
        }
    }

    /// Returns the TLS configuration of a client that offers the ALPN protocol `alpn`. Returns
    /// `None` if the service does not use TLS.
    pub(crate) fn encryption(&self, alpn: &str) -> Option<Arc<ClientConfig>> {
        let mut config = ClientConfig::clone(self.tls.as_ref()?);
        config.alpn_protocols = vec![alpn.into()];
        Some(Arc::new(config))
    }

    /// Connects within 60 seconds.
    ///
    /// # Panics
    /// Panics if the server does not accept the connection.
    pub(crate) fn connect(&self) -> AnyClient {
        self.try_connect_within(Duration::from_secs(60))
            .expect("it takes connections")
    }

    /// Connects within `timeout`.
    ///
    /// # Errors
    /// Returns an error if the server does not accept the connection in time.
    pub(crate) fn try_connect_within(&self, timeout: Duration) -> io::Result<AnyClient> {
        let socket = TcpStream::connect_timeout(&self.address, timeout)?;
        let wire: Box<dyn Wire + Send> = match &self.tls {
            None => Box::new(socket),
            Some(config) => Box::new(StreamOwned::new(begin(Arc::clone(config)), socket)),
        };
        Client::over(wire)
    }

    /// Requests `target` on new connections until the response has the status 200. Returns the body
    /// of that response.
    pub(crate) fn get(&self, target: &str) -> String {
        until(target, || {
            let mut client = self.try_connect_within(Duration::from_secs(1)).ok()?;
            let answer = client
                .try_exchange(request(&format!("GET {target}"), "", ""))
                .ok()?;
            (answer.status == 200).then(|| answer.text())
        })
    }
}

/// Returns a TLS ClientHello, the first message of a client.
pub(crate) fn client_hello() -> Vec<u8> {
    let mut hello = Vec::new();
    begin(Arc::new(trusting([])))
        .write_tls(&mut hello)
        .expect("memory takes all");
    hello
}

fn begin(config: Arc<ClientConfig>) -> ClientConnection {
    ClientConnection::new(config, ServerName::try_from("localhost").expect("a name"))
        .expect("a sound configuration")
}

fn trusting(certificates: impl IntoIterator<Item = CertificateDer<'static>>) -> ClientConfig {
    let mut trusted = RootCertStore::empty();
    assert_eq!(
        trusted.add_parsable_certificates(certificates).1,
        0,
        "all are certificates"
    );
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    builder
        .expect("ring knows TLS 1.2 and 1.3")
        .with_root_certificates(trusted)
        .with_no_client_auth()
}
