//! Runs the recipes of docs/CLIENTS.md. A program of this folder uses each recipe, in which only
//! the address of the service is replaced.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tools::{output_of, succeed};
use idmint_testing::service::{Home, Service};

/// The path of Debian's Python. Other builds of Python do not find Debian's modules.
const PYTHON: &str = "/usr/bin/python3";
const JPA: &str = "/usr/share/java/geronimo-jpa_2.0_spec.jar";

fn ours(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the block of this language that contains `what`. Its address is replaced by that of the
/// service.
fn recipe(language: &str, what: &str, service: &Service) -> String {
    let text = fs::read_to_string(ours("docs/CLIENTS.md")).unwrap();
    let (_, recipes) = text.split_once("## Recipes\n").expect("there are recipes");
    let (recipes, _) = recipes.split_once("\n## ").expect("something follows them");
    let fence = format!("```{language}\n");
    let blocks = recipes
        .split(&fence)
        .skip(1)
        .map(|rest| rest.split_once("```").expect("an end").0);
    let found: Vec<&str> = blocks.filter(|block| block.contains(what)).collect();
    assert_eq!(found.len(), 1, "one recipe in {language} has {what}");
    found[0].replace("http://127.0.0.1:8080", &service.url())
}

fn started() -> (Home, Service) {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    (home, service)
}

fn python(program: &str, home: &Home) -> Command {
    let mut command = Command::new(PYTHON);
    command.arg(ours("tests/system/prefetching/recipes").join(program));
    let folders = std::env::join_paths([ours("clients/python"), home.path("recipe")]).unwrap();
    command
        .env("PYTHONPATH", folders)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

fn assert_python_recipe(what: &str, program: &str) {
    let (home, service) = started();
    fs::create_dir(home.path("recipe")).unwrap();
    fs::write(
        home.path("recipe").join("recipe.py"),
        recipe("python", what, &service),
    )
    .unwrap();
    assert_eq!(succeed(&mut python(program, &home)), "done\n");
}

#[test]
fn sqlalchemy_gives_each_row_an_id() {
    assert_python_recipe("sqlalchemy", "sqlalchemy_order.py");
}

#[test]
fn django_gives_each_row_an_id() {
    assert_python_recipe("django", "django_order.py");
}

#[test]
fn workers_of_a_preloading_gunicorn_share_no_id_and_would_without_the_guard() {
    let (home, service) = started();
    let ids_of_workers = |guard: &str| {
        let output = output_of(python("preload.py", &home).args([&service.url(), guard]));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let printed = String::from_utf8(output.stdout).unwrap();
        let ids: Vec<&str> = printed.lines().collect();
        (
            ids.len(),
            ids.len() - ids.iter().collect::<BTreeSet<_>>().len(),
        )
    };
    assert_eq!(ids_of_workers("guarded"), (8 * 40, 0));
    let (ids, twice) = ids_of_workers("unguarded");
    println!("gunicorn: without the guard {twice} of {ids} ids come twice");
    assert!(ids == 8 * 40 && twice > 200, "{twice} of {ids}");
}

#[test]
fn a_batch_by_database_sql_has_ids_of_its_own() {
    let (home, service) = started();
    let folder = home.path("go/src/ids");
    fs::create_dir_all(folder.join("idmint")).unwrap();
    fs::copy(
        ours("clients/go/idmint.go"),
        folder.join("idmint/idmint.go"),
    )
    .unwrap();
    fs::copy(
        ours("tests/system/prefetching/recipes/main.go"),
        folder.join("main.go"),
    )
    .unwrap();
    let head = "package main\n\nimport (\n\t\"context\"\n\t\"database/sql\"\n\t\"strings\"\n\n\t\"ids/idmint\"\n)\n\n";
    fs::write(
        folder.join("recipe.go"),
        head.to_owned() + &recipe("go", "sql.DB", &service),
    )
    .unwrap();
    assert_eq!(
        succeed(Command::new("gofmt").arg("-l").arg(&folder)),
        "",
        "gofmt would write it otherwise"
    );
    // Use Debian's folder for Go libraries, which contains the database driver.
    let mut build = Command::new("go");
    build
        .args(["build", "-o"])
        .arg(home.path("program"))
        .arg("ids");
    build
        .env("GO111MODULE", "off")
        .env("GOFLAGS", "")
        .env("GOCACHE", ours("target/clients/go-cache"));
    build.env(
        "GOPATH",
        format!("{}:/usr/share/gocode", home.path("go").display()),
    );
    succeed(&mut build);
    assert_eq!(
        succeed(Command::new(home.path("program")).arg(service.url())),
        "done\n"
    );
}

#[test]
fn an_entity_of_jpa_gets_its_id_before_it_is_persisted() {
    let (home, service) = started();
    let imports = [
        "idmint.client.Idmint",
        "javax.persistence.Id",
        "javax.persistence.MappedSuperclass",
        "javax.persistence.PrePersist",
    ]
    .map(|name| format!("import {name};\n"));
    fs::write(
        home.path("Numbered.java"),
        imports.concat() + &recipe("java", "@PrePersist", &service),
    )
    .unwrap();
    let classes = home.path("classes");
    let mut compiler = Command::new("javac");
    compiler
        .args(["--release", "17", "-Xlint:all", "-Werror", "-cp", JPA, "-d"])
        .arg(&classes);
    compiler.args([
        ours("clients/java/idmint/client/Idmint.java"),
        home.path("Numbered.java"),
    ]);
    assert_eq!(
        succeed(compiler.arg(ours("tests/system/prefetching/recipes/Order.java"))),
        ""
    );
    let mut program = Command::new("java");
    program
        .arg("-cp")
        .arg(format!("{}:{JPA}", classes.display()));
    assert_eq!(succeed(program.arg("Order").arg(service.url())), "done\n");
}
