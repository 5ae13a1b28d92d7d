//! Generates clients from `openapi-3.0.yaml` with OpenAPI Generator, compiles them with Debian's
//! compilers, and uses them. Each language has its own folder.
//!
//! Every client runs the same steps, and prints `step: …` for each. If the generated code cannot do
//! a step, the client verifies that and prints `gap: …` instead. docs/CLIENTS.md lists the gaps
//! with their reasons, and the options of the generator.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tools::succeed;
use idmint_testing::chains::chains;
use idmint_testing::service::Home;

/// The steps that a client runs, in this order.
const STEPS: [&str; 18] = [
    "an id without a body",
    "ids with a body",
    "a batch",
    "an id of a type",
    "a decode",
    "decodes",
    "a ledger",
    "an append",
    "its replay",
    "told apart by status",
    "a chain checked",
    "a report",
    "a report that moved by an hour",
    "reports, one of them wrong",
    "a refusal",
    "its problem",
    "the page of its slug",
    "formats",
];

/// A step that the generated code cannot do, and the reason as in docs/CLIENTS.md.
type Gap = (&'static str, &'static str);

const PAGE_IS_TEXT: Gap = (
    "the page of its slug",
    "`/problems/{slug}` is a text unless `Accept` of all requests is JSON alone",
);

/// Options that turn off the generated tests and documentation.
const PARTS: &str = "apiTests=false,modelTests=false,apiDocs=false,modelDocs=false";

fn ours(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn text_of(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn generator(program: &str) -> PathBuf {
    let program = ours("target/tools/openapi-generator/bin").join(program);
    assert!(
        program.is_file(),
        "it is there: installed by .ci/install-openapi-generator"
    );
    program
}

/// Returns the cells in the row of a language in the table of docs/CLIENTS.md.
fn row_of(language: &str) -> Vec<String> {
    let table = text_of(&ours("docs/CLIENTS.md"));
    let row = table
        .lines()
        .find(|line| line.starts_with(&format!("| {language} |")));
    let row = row.unwrap_or_else(|| panic!("docs/CLIENTS.md has no client in {language}"));
    row.trim_matches('|')
        .split(" | ")
        .map(|column| column.trim().to_owned())
        .collect()
}

/// Generates a client into `src/ids` of a build folder, and returns the folder. The folder is used
/// again until one of its inputs changes.
fn generated(language: &str, options: &str) -> PathBuf {
    let folder = ours("target/clients").join(language.to_lowercase());
    let (document, made_of) = (ours("openapi-3.0.yaml"), folder.join("made-of"));
    let parts = [
        options.to_owned(),
        text_of(&ours(".ci/openapi-generator.txt")),
        text_of(&document),
    ]
    .concat();
    if fs::read_to_string(&made_of).is_ok_and(|before| before == parts) {
        return folder;
    }
    let sources = folder.join("src");
    if sources.exists() {
        fs::remove_dir_all(&sources).unwrap();
    }
    let mut generate = Command::new(generator("openapi-generator-cli"));
    generate
        .arg("generate")
        .args(options.split(' '))
        .args(["--global-property", PARTS, "-i"])
        .arg(document);
    succeed(generate.arg("-o").arg(sources.join("ids")));
    fs::write(made_of, parts).unwrap();
    folder
}

/// Copies a file of `tests/system/clients` into a folder. If the content is the same, the file
/// keeps its modification time, so that it is not compiled again.
fn lay(file: &str, folder: &Path, name: &str) {
    let (text, path) = (
        text_of(&ours("tests/system/clients").join(file)),
        folder.join(name),
    );
    if !fs::read_to_string(&path).is_ok_and(|before| before == text) {
        fs::create_dir_all(folder).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Generates a client, builds the program that uses it, and runs the program. Asserts that the
/// program completes every step except those in `gaps`.
fn assert_used(language: &str, gaps: &[Gap], built: impl FnOnce(&Path) -> Command) {
    let [_, options, gaps_told] = row_of(language)
        .try_into()
        .expect("language, options and gaps");
    let mut program = built(&generated(language, options.trim_matches('`')));

    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    // The chain must begin with the event that the documents show.
    let chain = chains().swap_remove(1);
    let events = home.path("chain.ndjson");
    fs::write(&events, chain.lines.join("\n")).unwrap();
    let said = succeed(program.arg(service.url()).arg(chain.ledger).arg(events));

    let expected: Vec<String> = STEPS
        .iter()
        .map(|step| {
            format!(
                "{}: {step}",
                if gaps.iter().any(|(gap, _)| gap == step) {
                    "gap"
                } else {
                    "step"
                }
            )
        })
        .collect();
    println!(
        "{language}: {} steps done, {} gaps\n{said}",
        STEPS.len() - gaps.len(),
        gaps.len()
    );
    // Ignore other lines, which may be warnings of the language's runtime.
    let done: Vec<_> = said
        .lines()
        .filter(|line| line.starts_with("step: ") || line.starts_with("gap: "))
        .collect();
    assert_eq!(done, expected, "{language}");
    let reasons: Vec<_> = gaps.iter().map(|(_, reason)| *reason).collect();
    let told = if gaps.is_empty() {
        "none".to_owned()
    } else {
        format!("{}: {}", gaps.len(), reasons.join("; "))
    };
    assert_eq!(
        gaps_told, told,
        "docs/CLIENTS.md tells the gaps of {language}"
    );
}

#[test]
fn a_client_in_go_does_every_step() {
    assert_used("Go", &[], |folder| {
        let program = folder.join("src/client");
        lay("go/client.go", &program, "main.go");
        let mut build = Command::new("go");
        build
            .args(["build", "-o", "../../client", "."])
            .current_dir(program);
        build
            .env("GO111MODULE", "off")
            .env("GOFLAGS", "")
            .env("GOCACHE", folder.join("cache"));
        // Add the folder with Debian's packages of the libraries that the generated code needs.
        build.env("GOPATH", format!("{}:/usr/share/gocode", folder.display()));
        succeed(&mut build);
        Command::new(folder.join("client"))
    });
}

#[test]
fn a_client_in_python_does_every_step() {
    assert_used("Python", &[], |folder| {
        let mut program = Command::new(generator("python"));
        program
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONPATH", folder.join("src/ids"));
        program.arg(ours("tests/system/clients/python/client.py"));
        program
    });
}

#[test]
fn a_client_in_java_does_every_step_that_it_can() {
    let gaps = [
        (
            "a chain checked",
            "a body of bytes is sent as the path of its file, so `POST /ledgers/{ledger}/verify` finds no event",
        ),
        PAGE_IS_TEXT,
    ];
    assert_used("Java", &gaps, |folder| {
        // Debian's package of Jackson lacks the date and time types. The generator's JAR contains
        // Jackson and these types.
        let mut find = Command::new(generator("python"));
        let libraries = succeed(find.args([
            "-c",
            "import openapi_generator_cli; print(*openapi_generator_cli.__path__)",
        ]));
        let jars = format!(
            "{}/openapi-generator.jar:/usr/share/java/jakarta-annotation-api.jar",
            libraries.trim()
        );
        let classes = folder.join("classes");
        let mut build = Command::new("javac");
        build
            .args(["-nowarn", "-cp", &jars, "-sourcepath"])
            .arg(folder.join("src/ids/src/main/java"));
        succeed(
            build
                .arg("-d")
                .arg(&classes)
                .arg(ours("tests/system/clients/java/Client.java")),
        );
        let mut program = Command::new("java");
        program.args(["-cp", &format!("{jars}:{}", classes.display()), "Client"]);
        program
    });
}

#[test]
fn a_client_in_typescript_does_every_step_that_it_can() {
    assert_used("TypeScript", &[PAGE_IS_TEXT], |folder| {
        let sources = folder.join("src");
        lay("typescript/client.ts", &sources, "client.ts");
        let mut build = Command::new("tsc");
        // Turn off one check of strict mode. The generated code passes strict mode only from
        // TypeScript 4.9 on, and Debian 12 has 4.8.
        build.args([
            "--strict",
            "--noImplicitAny",
            "false",
            "--target",
            "es2020",
            "--lib",
            "es2020,dom",
        ]);
        succeed(
            build
                .args(["--module", "commonjs", "--outDir", "../out", "client.ts"])
                .current_dir(sources),
        );
        let mut program = Command::new("node");
        program.arg(folder.join("out/client.js"));
        program
    });
}

#[test]
fn a_client_in_rust_does_every_step_that_it_can() {
    let gaps = [
        (
            "told apart by status",
            "a success has no status, so a replay looks like the first append",
        ),
        (
            "a chain checked",
            "a body of bytes has no `Content-Type`, so `POST /ledgers/{ledger}/verify` is 415",
        ),
        (
            "reports, one of them wrong",
            "no item of a list is null, so `partial=true` cannot be read where a report is refused",
        ),
        PAGE_IS_TEXT,
    ];
    assert_used("Rust", &gaps, |folder| {
        let program = folder.join("src/client");
        for file in ["Cargo.toml", "Cargo.lock", "main.rs"] {
            lay(&format!("rust/{file}"), &program, file);
        }
        let mut build = Command::new(env!("CARGO"));
        build
            .args(["build", "--locked", "--target-dir"])
            .arg(folder.join("target"))
            .current_dir(program);
        succeed(&mut build);
        Command::new(folder.join("target/debug/client"))
    });
}
