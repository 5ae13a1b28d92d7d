//! The image as `Dockerfile` builds it and the services as `docker-compose.yml` and `docker-compose.fleet.yml` have them, under names of this test's own.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output};

use crate::http1::{Client, request};
use crate::service::until;

const FLEET: &str = "docker-compose.fleet.yml";

fn output_of(command: &mut Command) -> Output {
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}; installed by .ci/install-packages"))
}

fn printed(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes))
        .concat()
}

#[track_caller]
fn succeed(command: &mut Command) -> String {
    let output = output_of(command);
    assert!(
        output.status.success(),
        "{command:?}:\n{}",
        printed(&output)
    );
    String::from_utf8(output.stdout)
        .expect("text")
        .trim()
        .to_owned()
}

/// What docker prints when given these arguments, which it must follow.
#[track_caller]
pub(super) fn docker(args: &[&str]) -> String {
    succeed(Command::new("docker").args(args))
}

/// Whether docker can do what these arguments say.
pub(super) fn docker_succeeds(args: &[&str]) -> bool {
    output_of(Command::new("docker").args(args))
        .status
        .success()
}

/// Exit code of the container of a command that ends by itself, and all that it printed.
pub(super) fn docker_run(args: &[&str]) -> (Option<i32>, String) {
    let output = output_of(Command::new("docker").args(["run", "--rm"]).args(args));
    (output.status.code(), printed(&output))
}

fn stand_ins(action: &str) -> Command {
    let mut command =
        Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/system/image/stand-ins"));
    command.arg(action);
    command
}

/// The services of both files. Their containers, volumes and image go with the value.
pub(super) struct Composed {
    name: String,
}

impl Composed {
    /// Builds the image, from the images that are there or from stand-ins for them.
    pub(super) fn build() -> Composed {
        succeed(&mut stand_ins("make"));
        let composed = Composed {
            name: format!("idmint-test-{}", std::process::id()),
        };
        // How fast the program is says nothing here, and half of the time would go into that.
        let unoptimised = [
            "CARGO_PROFILE_RELEASE_OPT_LEVEL=0",
            "CARGO_PROFILE_RELEASE_LTO=off",
        ];
        composed.compose(&[
            "build",
            "--build-arg",
            unoptimised[0],
            "--build-arg",
            unoptimised[1],
        ]);
        composed
    }

    /// The name of the image.
    pub(super) fn image(&self) -> &str {
        &self.name
    }

    fn etcd_image(&self) -> String {
        format!("{}-etcd", self.name)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("docker-compose");
        // Any free ports of this machine.
        command
            .env("COMPOSE_PROJECT_NAME", &self.name)
            .env("IMAGE", &self.name)
            .env("ETCD_IMAGE", self.etcd_image());
        command.env("PORT", "0").env("PROMETHEUS_PORT", "0");
        command
    }

    #[track_caller]
    pub(super) fn compose(&self, args: &[&str]) -> String {
        succeed(self.command().args(args))
    }

    /// The same, of the fleet.
    #[track_caller]
    pub(super) fn compose_fleet(&self, args: &[&str]) -> String {
        succeed(self.command().args(["--file", FLEET]).args(args))
    }

    /// The container of a service.
    pub(super) fn container(&self, service: &str) -> String {
        let label = |name: &str, value: &str| format!("label=com.docker.compose.{name}={value}");
        let (project, service) = (label("project", &self.name), label("service", service));
        docker(&[
            "ps", "--all", "--quiet", "--filter", &project, "--filter", &service,
        ])
    }

    /// Where this machine finds a service; another port after each start.
    pub(super) fn address(&self, service: &str, port: u16) -> SocketAddr {
        until("a port is published", || {
            let output = output_of(Command::new("docker").args([
                "port",
                &self.container(service),
                &port.to_string(),
            ]));
            let address: SocketAddr = String::from_utf8_lossy(&output.stdout)
                .lines()
                .next()?
                .parse()
                .ok()?;
            (address.port() != 0).then_some(address)
        })
    }

    fn of_both(&self) -> Command {
        let mut command = self.command();
        command.args(["--file", "docker-compose.yml", "--file", FLEET]);
        command
    }

    /// The address of a service once whoever answers there mints.
    pub(super) fn ready(&self, service: &str) -> SocketAddr {
        until("the container is ready", || {
            let address = self.address(service, 8080);
            let answer = Client::try_connect(address)
                .ok()?
                .try_exchange(request("GET /health/ready", "", ""))
                .ok()?;
            (answer.status == 200).then_some(address)
        })
    }
}

impl Drop for Composed {
    fn drop(&mut self) {
        let alone = format!("{}-with-tokens", self.name);
        if std::thread::panicking() {
            eprintln!(
                "{}",
                printed(&output_of(self.of_both().args([
                    "logs",
                    "--no-color",
                    "--tail",
                    "60"
                ])))
            );
            eprintln!(
                "{}",
                printed(&output_of(Command::new("docker").args(["logs", &alone])))
            );
        }
        // There only if a test has failed.
        output_of(Command::new("docker").args(["rm", "--force", "--volumes", &alone]));
        // Whatever is left over is named; what failed before counts more.
        let down = output_of(self.of_both().args(["down", "--volumes", "--timeout", "0"]));
        let image = output_of(Command::new("docker").args([
            "image",
            "rm",
            "--force",
            &self.name,
            &self.etcd_image(),
        ]));
        for output in [down, image, output_of(&mut stand_ins("remove"))]
            .iter()
            .filter(|it| !it.status.success())
        {
            eprintln!("{}", printed(output));
        }
    }
}
