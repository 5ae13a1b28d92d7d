//! Builds the image of `Dockerfile`, and runs the services of `docker-compose.yml` and
//! `docker-compose.fleet.yml`. All names are used only by this test.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output};

use crate::tools;
use idmint_testing::http1::{Client, request};
use idmint_testing::service::until;

const FLEET: &str = "docker-compose.fleet.yml";

fn output_of(command: &mut Command) -> Output {
    tools::output_of(command.current_dir(env!("CARGO_MANIFEST_DIR")))
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

/// Runs docker with these arguments, and returns its output. The command must succeed.
#[track_caller]
pub(super) fn docker(args: &[&str]) -> String {
    succeed(Command::new("docker").args(args))
}

/// Runs docker with these arguments. Returns `true` if the command succeeds.
pub(super) fn docker_succeeds(args: &[&str]) -> bool {
    output_of(Command::new("docker").args(args))
        .status
        .success()
}

/// Runs a container until its command ends. Returns its exit code and its output.
pub(super) fn docker_run(args: &[&str]) -> (Option<i32>, String) {
    let output = output_of(Command::new("docker").args(["run", "--rm"]).args(args));
    (output.status.code(), printed(&output))
}

fn stand_ins(action: &str) -> Command {
    let mut command =
        Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/system/image/stand-ins"));
    command.arg(action);
    // Copy the program of this build into the image. With `IMAGE_COMPILES=1`, as in `make torture`,
    // the program is compiled in the image instead.
    if std::env::var_os("IMAGE_COMPILES").is_none() {
        command.env("PREBUILT", env!("CARGO_BIN_EXE_idmint"));
    }
    command
}

/// Starts the Docker Engine if none runs.
#[track_caller]
pub(super) fn start_engine() {
    succeed(&mut stand_ins("engine"));
}

/// The services of both Compose files. Dropping this value removes their containers, volumes and
/// images.
pub(super) struct Composed {
    name: String,
}

impl Composed {
    /// Builds the image. Its base images must be on this machine, or stand-ins are used for them.
    pub(super) fn build() -> Composed {
        succeed(&mut stand_ins("make"));
        let composed = Composed {
            name: format!("idmint-test-{}", std::process::id()),
        };
        // Compile without optimization, which would take half of the build time. The speed of the
        // program does not matter here.
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

    /// Returns the name of the image.
    pub(super) fn image(&self) -> &str {
        &self.name
    }

    fn etcd_image(&self) -> String {
        format!("{}-etcd", self.name)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("docker-compose");
        // Port 0 publishes the service on any free port.
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

    /// Runs docker-compose for the fleet and returns its output.
    #[track_caller]
    pub(super) fn compose_fleet(&self, args: &[&str]) -> String {
        succeed(self.command().args(["--file", FLEET]).args(args))
    }

    /// Returns the container in which a service runs.
    pub(super) fn container(&self, service: &str) -> String {
        let label = |name: &str, value: &str| format!("label=com.docker.compose.{name}={value}");
        let (project, service) = (label("project", &self.name), label("service", service));
        docker(&[
            "ps", "--all", "--quiet", "--filter", &project, "--filter", &service,
        ])
    }

    /// Returns the address at which this machine reaches a service. The port changes with each
    /// start.
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

    /// Waits until a service mints, and returns its address.
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
        // This container still exists only if a test has failed.
        output_of(Command::new("docker").args(["rm", "--force", "--volumes", &alone]));
        // Print what could not be removed. Do not panic here, so that the panic of a failed test is
        // kept.
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
