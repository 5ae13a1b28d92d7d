//! Runs the commands of every `console` block in every document, and compares their output with the
//! block. Ids and times may differ.
//!
//! Each page gets a new service. A configuration on a page applies to the blocks after it, up to
//! the next heading of the same or a higher level.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex_lite::Regex;

use idmint_testing::service::{Home, Service};

/// The beginnings of commands that this test does not run, each with the place where the command is
/// tested instead. Each entry must match at least one command.
const ELSEWHERE: [(&str, &str); 31] = [
    ("make run", "here: each page has a service"),
    (
        "idmint serve",
        "here: it is started with the configuration that stands before",
    ),
    ("make fleet", "fleet"),
    ("curl -X POST http://127.0.0.1:8081", "fleet"),
    ("curl -X POST http://127.0.0.1:8083", "fleet"),
    ("curl http://127.0.0.1:8083", "fleet"),
    ("idmint fleet", "fleet"),
    ("etcdctl", "fleet"),
    ("kill -9", "fleet"),
    ("docker", "image"),
    ("IDMINT_FLOOR=", "image"),
    ("install -m", "systemd"),
    ("touch /etc/idmint.toml", "systemd"),
    ("cp deploy/systemd", "systemd"),
    ("mkdir -p /etc/idmint", "systemd"),
    ("mkdir -p /etc/systemd", "systemd"),
    ("systemctl", "systemd"),
    ("idmint restore - --config /etc/idmint.toml", "systemd"),
    ("idmint backup - --data-dir /var/lib/idmint", "systemd"),
    ("mv /var/lib/private/idmint", "systemd"),
    ("printf '[Service]", "systemd"),
    ("kubectl", "kubernetes, as far as files go"),
    ("helm", "helm, as far as files go"),
    ("openapi-", "the clients"),
    ("kill -HUP", "tests/process, tokens"),
    (
        "idmint mint payment --server https",
        "tests/process, tls_commands",
    ),
    ("curl --cacert", "tests/process, tls"),
    ("date -u", "tests/process, restarts"),
    ("CARGO_PROFILE_RELEASE", "nobody: it measures"),
    ("TOKIO_WORKER_THREADS", "nobody: it measures"),
    ("perf", "nobody: it measures"),
];

/// The pages whose commands this test does not run, because they need several processes or a
/// separate build.
const PAGES_ELSEWHERE: [&str; 1] = ["docs/FLEET.md"];

#[derive(Debug)]
enum Block {
    Heading(String),
    Configuration(String),
    Console(Vec<Typed>),
}

/// A command and its expected output.
#[derive(Debug)]
struct Typed {
    command: String,
    printed: Vec<String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn pages() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut pages: Vec<_> = docs
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.extend(["README.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    pages.sort();
    pages
}

fn blocks(page: &str) -> Vec<Block> {
    // Match headings last, because a line inside a block may look like a heading.
    let part = Regex::new(r"(?ms)^```([a-z]*)\n(.*?)^```|^#+ [^\n]*$").unwrap();
    let parts = part.captures_iter(page).filter_map(|captures| {
        match captures.get(1).map(|language| language.as_str()) {
            None => Some(Block::Heading(captures[0].to_owned())),
            Some("toml") => Some(Block::Configuration(captures[2].to_owned())),
            Some("console") => Some(Block::Console(typed(&captures[2]))),
            Some(_) => None,
        }
    });
    parts.collect()
}

/// Returns the commands below a heading of a page, each with its expected output.
pub(crate) fn commands_below(page: &str, heading: &str) -> Vec<(String, Vec<String>)> {
    let page = fs::read_to_string(root().join(page)).unwrap();
    let below = blocks(&page)
        .into_iter()
        .skip_while(|block| !matches!(block, Block::Heading(text) if text == heading));
    let section = below
        .skip(1)
        .take_while(|block| !matches!(block, Block::Heading(_)));
    let typed = section.filter_map(|block| {
        if let Block::Console(console) = block {
            Some(console)
        } else {
            None
        }
    });
    typed
        .flatten()
        .map(|typed| (typed.command, typed.printed))
        .collect()
}

fn typed(block: &str) -> Vec<Typed> {
    let mut all: Vec<Typed> = Vec::new();
    let mut goes_on = false;
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            all.push(Typed {
                command: command.to_owned(),
                printed: Vec::new(),
            });
        } else {
            let last = all.last_mut().expect("a block begins with what is typed");
            if goes_on {
                last.command += &format!("\n{line}");
            } else {
                last.printed.push(line.to_owned());
            }
        }
        goes_on = line.ends_with('\\');
    }
    all
}

/// Replaces the parts of a line that differ between runs, such as times, ids and content lengths,
/// by fixed texts.
fn shape(line: &str) -> String {
    let rules = [
        (r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "(time)"),
        (r"\w{3}, \d\d \w{3} \d{4} [0-9:]+ GMT", "(date)"),
        (r"x-request-id: \S+", "(request)"),
        (r#""instance":"[^"]+""#, "(request)"),
        (r"\w+ evidence, -?[0-9.]+ bits", "(evidence)"),
        // On a slow machine, the reservation may already have expired when `idmint status` runs.
        (r" \(expired\), extended as", ", extended as"),
        // Right after a start, minting is ahead of the clock. A batch then has ids of several lanes
        // (worker numbers), so it has several rows.
        (
            r#""rows":\[(\{"first":"\d+","step":"\d+","count":\d+\},?)+\]"#,
            r#""rows":(rows)"#,
        ),
    ];
    let mut line = line.to_owned();
    for (pattern, name) in rules {
        line = Regex::new(pattern)
            .unwrap()
            .replace_all(&line, name)
            .into_owned();
    }
    let word = Regex::new(r"[A-Za-z0-9_-]+").unwrap();
    let shaped = word.replace_all(&line, |captures: &regex_lite::Captures<'_>| {
        let word = &captures[0];
        let has = |is: fn(&u8) -> bool| word.as_bytes().iter().any(&is);
        let is_number = !has(|byte| !byte.is_ascii_digit());
        let is_mixed = has(u8::is_ascii_uppercase)
            && (has(u8::is_ascii_lowercase) || has(|byte| *byte == b'-'));
        if is_number && word.len() < 9 {
            "(number)".to_owned()
        } else if word.len() >= 9 && (has(u8::is_ascii_digit) || is_mixed) {
            format!("({} letters)", word.len())
        } else {
            word.to_owned()
        }
    });
    shaped.into_owned()
}

/// Compares the output of a command line by line. In the document, `…` at the end of a line stands
/// for any text, and the line `⋮` stands for any number of lines.
fn assert_printed(place: &str, typed: &Typed, printed: &str) {
    let mut lines = printed.lines();
    for expected in &typed.printed {
        if matches!(expected.trim(), "⋮" | "…") {
            return;
        }
        let Some(line) = lines.next() else {
            panic!(
                "{place}: {}\n  ends before {expected:?}:\n{printed}",
                typed.command
            )
        };
        let same = match expected.strip_suffix('…') {
            Some(beginning) => shape(line).starts_with(&shape(beginning)),
            None => shape(line) == shape(expected),
        };
        assert!(
            same,
            "{place}: {}\n  the page has {expected:?}\n  printed was {line:?}",
            typed.command
        );
    }
    let rest: Vec<_> = lines.collect();
    assert!(
        rest.is_empty() || typed.printed.is_empty(),
        "{place}: {}\n  goes on with {rest:#?}",
        typed.command
    );
}

struct Shell {
    home: Home,
    service: Service,
}

impl Shell {
    fn start(toml: &str) -> Shell {
        let home = Home::new();
        let service = Service::start(home.serve_with(toml));
        service.wait_until_ready();
        for (name, file) in [("message.kvn", "one.kvn"), ("message.xml", "one.xml")] {
            fs::copy(root().join("tests/cdm").join(file), home.path(name)).unwrap();
        }
        fs::write(home.path("ids.txt"), "1I9ZC1002\nhello\n").unwrap();
        Shell { home, service }
    }

    fn run(&self, command: &str) -> String {
        // Replace the address that the pages use, which is also the default of the commands.
        let url = self.service.url();
        let folder = self.home.path("").display().to_string();
        let typed = command
            .replace("http://127.0.0.1:8080", &url)
            .replace("/etc/idmint/", &folder);
        let typed = typed.replace("cargo run -- ", "idmint ");
        let asks = [
            "idmint mint",
            "idmint ledger",
            "idmint numbers",
            "idmint health",
        ]
        .iter()
        .any(|word| typed.starts_with(word));
        let typed = if asks {
            format!("{typed} --server {url}")
        } else {
            typed
        };
        let program = Path::new(env!("CARGO_BIN_EXE_idmint")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("bash");
        shell.arg("-c").arg(format!(
            "curl() {{ command curl --silent --show-error \"$@\"; }}\n{typed}"
        ));
        let output = shell
            .current_dir(&folder)
            .env("PATH", path)
            .output()
            .unwrap();
        let [out, errors] = [&output.stdout, &output.stderr]
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        assert!(
            output.status.success(),
            "{typed}: {}\n{out}{errors}",
            output.status
        );
        out.replace(['\r'], "")
    }
}

#[test]
fn every_console_block_of_every_document_does_what_it_shows() {
    let (mut typed_here, mut lines, mut met) = (0, 0, [0; ELSEWHERE.len()]);
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        let mut toml = String::new();
        let mut shell: Option<Shell> = None;
        // The level of the last heading, and the level of the heading above the current
        // configuration.
        let (mut depth, mut depth_of_toml) = (0, 0);
        for block in blocks(&page) {
            let console = match block {
                Block::Configuration(text) => {
                    (toml, shell, depth_of_toml) = (text, None, depth);
                    continue;
                }
                Block::Heading(text) => {
                    depth = text.bytes().take_while(|byte| *byte == b'#').count();
                    if !toml.is_empty() && depth <= depth_of_toml {
                        (toml, shell) = (String::new(), None);
                    }
                    continue;
                }
                Block::Console(console) => console,
            };
            for typed in console {
                let of = ELSEWHERE
                    .iter()
                    .position(|(beginning, _)| typed.command.starts_with(beginning));
                if let Some(of) = of {
                    met[of] += 1;
                    continue;
                }
                if PAGES_ELSEWHERE.contains(&name.as_str()) {
                    continue;
                }
                let printed = shell
                    .get_or_insert_with(|| Shell::start(&toml))
                    .run(&typed.command);
                assert_printed(&name, &typed, &printed);
                typed_here += 1;
                lines += typed.printed.len();
            }
        }
    }
    let elsewhere: usize = met.iter().sum();
    println!(
        "{typed_here} commands typed, {lines} lines of answers compared; {elsewhere} commands belong to other tests"
    );
    assert!(
        typed_here >= 35 && lines >= 60,
        "{typed_here} commands, {lines} lines"
    );
    for ((beginning, _), met) in ELSEWHERE.iter().zip(met) {
        assert!(
            met > 0,
            "no page has a command that begins with {beginning:?}"
        );
    }
}
