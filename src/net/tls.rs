//! TLS on a connection: the handshake, and the certificate that is shown in it, which can be replaced at any time.

use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

use super::stream::{Protocol, TlsWire};
use crate::http::ClientCertificate;

/// What a connection holds for TLS beside [`CONNECTION_LEN`](super::listener), in bytes: keys and state, one record that
/// comes in, and one that goes out.
pub(super) const TLS_LEN: usize = 40 * 1024;

/// Encrypted bytes that the kernel does not have yet: no more is taken before it does.
const UNSENT_LEN_MAX: usize = 16 * 1024;

/// What a caller is told that is turned away before its handshake: the fatal alert `internal_error`.
///
/// Source: RFC 8446, sections 5.1 and 6.2.
pub(super) const REFUSAL: &[u8] = &[21, 3, 3, 0, 2, 2, 80];

/// The names of protocols in a handshake (RFC 7301), the preferred one first.
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// TLS as a service speaks it now.
#[derive(Debug)]
pub struct Tls(ArcSwap<ServerConfig>);

/// A connection whose handshake is done.
pub(super) struct Secured {
    pub(super) stream: TlsStream<TlsWire>,
    pub(super) protocol: Protocol,
    /// What the other end has shown, if anything.
    pub(super) certificate: Option<Arc<ClientCertificate>>,
}

impl Tls {
    /// By this configuration, with HTTP/2 and HTTP/1.1 to choose from.
    pub fn new(config: ServerConfig) -> Arc<Tls> {
        Arc::new(Tls(ArcSwap::from_pointee(with_protocols(config))))
    }

    /// From now on connections are accepted by this one; those that are open stay so.
    pub fn replace(&self, config: ServerConfig) {
        self.0.store(Arc::new(with_protocols(config)));
    }

    /// Does the handshake.
    ///
    /// # Errors
    /// The other end has gone, does not speak TLS, or has shown a certificate that is no good.
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
        let certificate = session
            .peer_certificates()
            .and_then(ClientCertificate::of_chain)
            .map(Arc::new);
        Ok(Secured {
            stream,
            protocol,
            certificate,
        })
    }
}

fn with_protocols(mut config: ServerConfig) -> ServerConfig {
    config.alpn_protocols = ALPN.map(<[u8]>::to_vec).into();
    config
}
