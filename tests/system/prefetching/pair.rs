//! Two services that have no worker number in common. They are killed and restarted in turn.

use std::net::SocketAddr;
use std::process::Command;

use idmint_testing::loopback::address_of_its_own;
use idmint_testing::service::{Home, Service, idmint};

/// The rate limit of the second service, in requests per second.
const RATE: u32 = 20;

pub(crate) struct Pair {
    homes: [Home; 2],
    addresses: [SocketAddr; 2],
    running: [Option<Service>; 2],
}

impl Pair {
    pub(crate) fn start() -> Pair {
        let mut pair = Pair {
            homes: [Home::new(), Home::new()],
            addresses: [(); 2].map(|()| address_of_its_own()),
            running: [None, None],
        };
        (0..2).for_each(|at| pair.start_again(at));
        pair
    }

    pub(crate) fn urls(&self) -> String {
        self.addresses
            .map(|address| format!("http://{address}"))
            .join(",")
    }

    pub(crate) fn kill(&mut self, at: usize) {
        self.running[at].take().expect("it runs").kill();
    }

    pub(crate) fn start_again(&mut self, at: usize) {
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
            &self.addresses[at].to_string(),
            "--data-dir",
        ]);
        command
            .arg(self.homes[at].data_dir())
            .arg("--config")
            .arg(file);
        command
    }
}
