//! Connections to a service: a request out, a whole answer in.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use tokio::time;

/// The connections of a client, kept open for the next request.
pub(super) struct Transport {
    connections: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Transport {
    /// Connects to nobody yet; `tls` is for addresses of `https`.
    pub(super) fn new(tls: ClientConfig) -> Transport {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1();
        let connections = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(connector.wrap_connector(tcp));
        Transport { connections }
    }

    /// Sends a request once, and reads the whole answer.
    pub(super) async fn ask(
        &self,
        request: Request<Full<Bytes>>,
        timeout: Duration,
    ) -> Result<Response<Bytes>, Box<dyn Error + Send + Sync>> {
        let answered = async {
            let (head, body) = self.connections.request(request).await?.into_parts();
            Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
        };
        time::timeout(timeout, answered)
            .await
            .unwrap_or_else(|_| Err(format!("not within {timeout:?}").into()))
    }
}
