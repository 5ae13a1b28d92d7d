//! Two services that have no worker number in common. They are killed and restarted in turn.

use std::net::TcpListener;
use std::process::Command;

use idmint_testing::service::{Home, Service, idmint, until};

/// The rate limit of the second service, in requests per second.
const RATE: u32 = 20;

pub(crate) struct Pair {
    homes: [Home; 2],
    ports: [u16; 2],
    running: [Option<Service>; 2],
}

impl Pair {
    pub(crate) fn start() -> Pair {
        // Bind both ports at the same time, so that they differ. Both ports are free again when
        // this function returns.
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let ports = listeners.map(|listener| listener.local_addr().unwrap().port());
        let mut pair = Pair {
            homes: [Home::new(), Home::new()],
            ports,
            running: [None, None],
        };
        (0..2).for_each(|at| pair.start_again(at));
        pair
    }

    pub(crate) fn urls(&self) -> String {
        self.ports
            .map(|port| format!("http://127.0.0.1:{port}"))
            .join(",")
    }

    pub(crate) fn kill(&mut self, at: usize) {
        self.running[at].take().expect("it runs").kill();
    }

    pub(crate) fn start_again(&mut self, at: usize) {
        // A connection of another process may have the port meanwhile.
        until("the port is free", || {
            TcpListener::bind(("127.0.0.1", self.ports[at])).ok()
        });
        let service = Service::start(self.serve(at));
        service.wait_until_ready();
        self.running[at] = Some(service);
    }

    fn serve(&self, at: usize) -> Command {
        let file = self.homes[at].path("idmint.toml");
        let rate = if at == 1 {
            format!("http.rate = {RATE}\n")
        } else {
            String::new()
        };
        std::fs::write(
            &file,
            format!("worker = {{ slots = 2, slot = {at}, exclusive = true }}\n{rate}"),
        )
        .unwrap();
        let mut command = idmint(&[
            "serve",
            "--listen",
            &format!("127.0.0.1:{}", self.ports[at]),
            "--data-dir",
        ]);
        command
            .arg(self.homes[at].data_dir())
            .arg("--config")
            .arg(file);
        command
    }
}
