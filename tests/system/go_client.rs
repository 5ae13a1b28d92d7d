//! A client in Go that OpenAPI Generator makes of `openapi-3.0.yaml`, compiled and in use: see `go_client.go`.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::service::Home;
use crate::tools::succeed;

/// Libraries of Debian, without which what is generated does not compile.
const LIBRARIES: &str = "/usr/share/gocode";

#[test]
fn a_generated_go_client_mints_decodes_appends_and_reports() {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
    let generator = ours.join("target/tools/openapi-generator/bin/openapi-generator-cli");
    assert!(generator.is_file(), "it is there: installed by .ci/install-openapi-generator");
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let sources = home.path("go").join("src");
    let client = sources.join("ids");
    let mut generate = Command::new(generator);
    generate.args(["generate", "--generator-name", "go", "--additional-properties", "packageName=ids", "--input-spec"]);
    succeed(generate.arg(ours.join("openapi-3.0.yaml")).arg("--output").arg(&client));
    // Of these nothing is in use, and they need one library more.
    fs::remove_dir_all(client.join("test")).unwrap();

    let program = sources.join("try");
    fs::create_dir(&program).unwrap();
    fs::copy(ours.join("tests/system/go_client.go"), program.join("main.go")).unwrap();
    let mut build = Command::new("go");
    build.args(["build", "-o", "try", "."]).current_dir(&program);
    build.env("GO111MODULE", "off").env("GOFLAGS", "").env("GOCACHE", home.path("go-cache"));
    build.env("GOPATH", format!("{}:{LIBRARIES}", home.path("go").display()));
    succeed(&mut build);
    let said = succeed(Command::new(program.join("try")).arg(service.url()));
    println!("{said}");
    assert_eq!(said.lines().count(), 12, "each of its steps");
}
