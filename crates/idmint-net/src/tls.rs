//! TLS on a connection: the handshake, and the server configuration, which can be replaced at any
//! time.

use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::server::TlsStream;

use super::stream::{Protocol, TlsWire};

/// The memory that TLS adds to the [`CONNECTION_LEN`](crate::limits::CONNECTION_LEN) of a
/// connection, in bytes: keys and state, one incoming record, and one outgoing record.
pub(super) const TLS_LEN: usize = 40 * 1024;

/// The maximum number of encrypted bytes that wait to be written to the socket. While this many
/// bytes wait, the TLS session accepts no more data.
const UNSENT_LEN_MAX: usize = 16 * 1024;

/// The response to a connection that is refused before its handshake: the fatal alert
/// `internal_error`.
///
/// Source: RFC 8446, sections 5.1 and 6.2.
pub(super) const REFUSAL: &[u8] = &[21, 3, 3, 0, 2, 2, 80];

/// The protocol names offered in a handshake, in order of preference. RFC 7301 defines this
/// negotiation.
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The current TLS configuration of a service.
#[derive(Debug)]
pub struct Tls(ArcSwap<ServerConfig>);

/// A connection that has completed its handshake.
pub(super) struct Secured {
    pub(super) stream: TlsStream<TlsWire>,
    pub(super) protocol: Protocol,
    /// The certificate chain that the client presented, starting with its own certificate.
    pub(super) certificates: Vec<CertificateDer<'static>>,
}

impl Tls {
    /// Creates the TLS settings of a service from this configuration. The configuration is extended
    /// to offer HTTP/2 and HTTP/1.1.
    pub fn new(config: ServerConfig) -> Arc<Tls> {
        Arc::new(Tls(ArcSwap::from_pointee(with_protocols(config))))
    }

    /// Replaces the configuration for new connections. Open connections stay open.
    pub fn replace(&self, config: ServerConfig) {
        self.0.store(Arc::new(with_protocols(config)));
    }

    /// Performs the handshake.
    ///
    /// # Errors
    /// Returns an error if the client disconnects, does not speak TLS, or presents an invalid
    /// certificate.
    pub(super) async fn accept(&self, socket: TcpStream) -> io::Result<Secured> {
        let acceptor = TlsAcceptor::from(self.0.load_full());
        let wire = TlsWire::before_handshake(socket);
        let mut stream = acceptor
            .accept_with(wire, |session| {
                session.set_buffer_limit(Some(UNSENT_LEN_MAX))
            })
            .await?;
        let (wire, session) = stream.get_mut();
        wire.end_handshake();
        let protocol = if session.alpn_protocol() == Some(ALPN[0]) {
            Protocol::Http2
        } else {
            Protocol::Http1
        };
        let certificates = session.peer_certificates().unwrap_or_default().to_vec();
        Ok(Secured {
            stream,
            protocol,
            certificates,
        })
    }
}

fn with_protocols(mut config: ServerConfig) -> ServerConfig {
    config.alpn_protocols = ALPN.map(<[u8]>::to_vec).into();
    config
}
