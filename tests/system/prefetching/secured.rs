//! A service that requires tokens, a second service with TLS, and the arguments with which a
//! program uses both.

use std::fs;

use idmint_testing::authority::Authority;
use idmint_testing::chains::chains;
use idmint_testing::service::{Home, Service, idmint, run};

pub(crate) struct Secured {
    pub(crate) home: Home,
    wants_tokens: Service,
    speaks_tls: Service,
    /// Three tokens: one with all scopes, one that can only read, and one that can only mint.
    tokens: [String; 3],
    _home_of_tls: Home,
}

impl Secured {
    pub(crate) fn start() -> Secured {
        let (home, home_of_tls) = (Home::new(), Home::new());
        let path = |name: &str| home.path(name).display().to_string();
        let tokens = [
            ("all", "mint,ledger,decode,number"),
            ("reader", "decode"),
            ("minter", "mint"),
        ]
        .map(|(name, scopes)| {
            let file = path("tokens.toml");
            let made = run(idmint(&[
                "token", "new", "--name", name, "--scopes", scopes, "--file", &file,
            ]));
            made.assert(0, &[]);
            made.out.trim_end().to_owned()
        });
        let authority = Authority::new("authority of services");
        authority
            .sign(&["localhost", "127.0.0.1"])
            .write(&home, "service");
        fs::write(home.path("ca.pem"), &authority.pem).unwrap();
        fs::write(home.path("genesis.json"), &chains().swap_remove(1).lines[0]).unwrap();
        let wants_tokens =
            Service::start(home.serve_with(&format!("http.tokens = '{}'", path("tokens.toml"))));
        let (certificate, key) = (path("service.crt"), path("service.key"));
        let tls = format!("http.tls.certificate = '{certificate}'\nhttp.tls.key = '{key}'\n");
        let speaks_tls = Service::start(home_of_tls.serve_with(&tls));
        wants_tokens.wait_until_ready();
        Secured {
            home,
            wants_tokens,
            speaks_tls,
            tokens,
            _home_of_tls: home_of_tls,
        }
    }

    /// Returns the seven arguments of a program:
    /// - the port of the first service
    /// - a token with all scopes, and a token that can only read
    /// - the port of the second service, and the file with its certificate authority
    /// - the first event of a ledger
    /// - a token that can mint, but cannot read formats
    pub(crate) fn arguments(&self) -> [String; 7] {
        let [all, reader, minter] = self.tokens.clone();
        let port = |service: &Service| service.address().port().to_string();
        let path = |name: &str| self.home.path(name).display().to_string();
        [
            port(&self.wants_tokens),
            all,
            reader,
            port(&self.speaks_tls),
            path("ca.pem"),
            path("genesis.json"),
            minter,
        ]
    }
}
