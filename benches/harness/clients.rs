//! Clients on kept-alive connections. They send requests on all connections, and then receive all
//! responses.

use std::borrow::Cow;
use std::net::SocketAddr;

use idmint_testing::http1::{Answer, Client, request};

/// The default number of connections.
pub(crate) const CONNECTIONS: usize = 16;

/// Clients that send their requests at the same time.
pub(crate) struct Clients {
    clients: Vec<Client>,
    request: String,
}

impl Clients {
    /// Connects clients that send a request without a body. `method_and_target` has the form `POST
    /// /path`.
    pub(crate) fn new(address: SocketAddr, method_and_target: &str) -> Self {
        Self::with_body(address, method_and_target, "accept: */*\r\n", "")
    }

    /// Connects clients that send a request with a body. `headers` consists of complete lines.
    pub(crate) fn with_body(
        address: SocketAddr,
        method_and_target: &str,
        headers: &str,
        body: &str,
    ) -> Self {
        Self {
            request: request(method_and_target, headers, body),
            ..Self::connect(address, CONNECTIONS)
        }
    }

    /// Opens `connections` connections, to be used with [`Clients::exchange_each`].
    pub(crate) fn connect(address: SocketAddr, connections: usize) -> Self {
        Self {
            clients: (0..connections).map(|_| Client::connect(address)).collect(),
            request: String::new(),
        }
    }

    /// Sends the request once, on one connection, and returns the response.
    pub(crate) fn exchange_once(mut self) -> Answer {
        let answer = self.clients[0].exchange(&self.request);
        assert_success(answer.status);
        answer
    }

    /// Sends the request on every connection, then receives the responses.
    pub(crate) fn exchange_all(&mut self) {
        let request = std::mem::take(&mut self.request);
        self.exchange_each(|_| request.as_bytes().into());
        self.request = request;
    }

    /// Sends a different request on each connection, then receives the responses.
    pub(crate) fn exchange_each<'a>(&mut self, request: impl Fn(usize) -> Cow<'a, [u8]>) {
        for (at, client) in self.clients.iter_mut().enumerate() {
            client.send(request(at));
        }
        for client in &mut self.clients {
            assert_success(client.skip().status);
        }
    }
}

fn assert_success(status: u16) {
    assert!((200..300).contains(&status), "the answer is {status}");
}
