//! Installs the packages of the clients in clean environments, and uses them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tools::succeed;
use idmint_testing::service::Home;

const PYTHON: &str = "import idmint, sys
with idmint.Ids(sys.argv[1], 'snowflake') as ids:
    print(ids.next(), idmint.__version__)
";

const JAVASCRIPT: &str = r#"import { Ids, version } from "idmint";
const ids = new Ids(process.argv[2], "snowflake");
console.log(await ids.next(), version);
await ids.close();
"#;

const GO: &str = r#"package main

import (
	"context"
	"fmt"
	"os"

	"idmint.internal/idmint"
)

func main() {
	ids, err := idmint.New(os.Args[1:2], "snowflake", idmint.Options{})
	if err != nil {
		panic(err)
	}
	defer ids.Close()
	id, err := ids.Next(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(id, idmint.Version)
}
"#;

const JAVA: &str = r#"import idmint.client.Idmint;
import java.util.List;

class Main {
    public static void main(String[] args) {
        try (var ids = new Idmint(List.of(args[0]), "snowflake", new Idmint.Options())) {
            System.out.println(ids.next() + " " + Idmint.VERSION);
        }
    }
}
"#;

fn ours(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn each_package_installs_and_mints_an_id() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let packages = home.path("packages");
    succeed(Command::new(ours(".ci/pack-clients")).arg(&packages));
    let package = |end: &str| {
        let names = fs::read_dir(&packages).unwrap().map(|entry| entry.unwrap());
        let mut paths = names.map(|entry| entry.path());
        let found = paths.find(|path| path.to_string_lossy().ends_with(end));
        found.unwrap_or_else(|| panic!("no {end}"))
    };
    let (url, mut printed) = (service.url(), Vec::new());

    let python = home.path("venv/bin/python");
    succeed(
        Command::new("python3")
            .args(["-m", "venv"])
            .arg(home.path("venv")),
    );
    let mut pip = Command::new(&python);
    pip.args("-m pip --disable-pip-version-check install --quiet --no-index".split(' '));
    succeed(pip.arg(package(".whl")));
    printed.push(succeed(Command::new(&python).args(["-c", PYTHON, &url])));
    let mut mypy = Command::new(ours("target/tools/client-tools/bin/mypy"));
    mypy.args([
        "--strict",
        "--cache-dir",
        "/dev/null",
        "--python-executable",
    ]);
    mypy.arg(&python)
        .arg(ours("tests/system/prefetching/python/caller.py"));
    succeed(mypy.current_dir(home.path(".")));

    let folder = home.path("javascript");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("package.json"), "{}").unwrap();
    fs::write(folder.join("main.mjs"), JAVASCRIPT).unwrap();
    let mut npm = Command::new("npm");
    npm.args("install --offline --silent --no-audit --no-fund".split(' '));
    npm.env("npm_config_cache", home.path("npm"));
    succeed(npm.arg(package(".tgz")).current_dir(&folder));
    let mut node = Command::new("node");
    printed.push(succeed(node.args(["main.mjs", &url]).current_dir(&folder)));

    let folder = home.path("go");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("main.go"), GO).unwrap();
    let requires = "module main\n\ngo 1.19\n\nrequire idmint.internal/idmint v0.0.0\n\n";
    let replaces = format!(
        "replace idmint.internal/idmint => {}\n",
        package("/go").display()
    );
    fs::write(folder.join("go.mod"), requires.to_owned() + &replaces).unwrap();
    let mut go = Command::new("go");
    go.args(["run", ".", &url]).current_dir(&folder);
    go.env("GOPROXY", "off").env("GOTOOLCHAIN", "local");
    go.env("GOFLAGS", "")
        .env("GOCACHE", ours("target/clients/go-cache"));
    printed.push(succeed(&mut go));

    let (jar, classes) = (package(".jar"), home.path("java"));
    fs::create_dir(&classes).unwrap();
    fs::write(classes.join("Main.java"), JAVA).unwrap();
    let class_path = format!("{}:{}", jar.display(), classes.display());
    let mut compiler = Command::new("javac");
    compiler
        .args(["--release", "17", "-Xlint:all", "-Werror", "-cp"])
        .arg(&jar);
    succeed(
        compiler
            .arg("-d")
            .arg(&classes)
            .arg(classes.join("Main.java")),
    );
    let mut java = Command::new("java");
    printed.push(succeed(java.args(["-cp", &class_path, "Main", &url])));

    for line in printed {
        let (id, version) = line.trim().split_once(' ').unwrap();
        assert!(id.parse::<u64>().unwrap() > 1 << 60, "{line}");
        assert_eq!(version, env!("CARGO_PKG_VERSION"));
    }
}
