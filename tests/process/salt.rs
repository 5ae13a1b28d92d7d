//! Checks that a salt stays secret. The salt changes the texts of ids, but nothing that the program
//! writes may contain it.

use std::fs;
use std::path::Path;
use std::process::Command;

use idmint_core::id::{Encoding, EncodingDefinition};
use idmint_http::paths;
use serde_json::json;

use idmint_testing::http1::{Client, request};
use idmint_testing::service::{Home, Service, idmint, run};

const SALT: &str = "Qx7-for-nobody-3Jv";

/// The number of texts and bytes that were searched for the salt.
#[derive(Default)]
struct Written {
    pieces: usize,
    bytes: usize,
}

impl Written {
    #[track_caller]
    fn search(&mut self, what: &str, bytes: &[u8]) {
        self.pieces += 1;
        self.bytes += bytes.len();
        assert!(
            !tells(bytes),
            "{what} tells the salt: {}",
            String::from_utf8_lossy(bytes)
        );
    }

    /// Runs a command that must exit with `code`, and searches its output for the salt. Returns the
    /// text of both output channels.
    #[track_caller]
    fn of_command(&mut self, command: Command, code: i32) -> String {
        let what = format!("{command:?}").replace(SALT, "(salt)");
        let ended = run(command);
        let said = ended.out + &ended.err;
        self.search(&what, said.as_bytes());
        assert_eq!(ended.status.code(), Some(code), "{what}: {said}");
        said
    }

    fn of_folder(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if kind.is_dir() {
                self.of_folder(&path);
            } else if kind.is_file() {
                self.search(&path.display().to_string(), &fs::read(&path).unwrap());
            }
        }
    }
}

/// Returns `true` if the bytes contain the salt. The search covers the salt in any letter case, in
/// hexadecimal, and as a list of bytes. It also covers the beginning of the salt in base64.
fn tells(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes).to_lowercase();
    let hex: String = SALT.bytes().map(|byte| format!("{byte:02x}")).collect();
    [
        SALT.to_lowercase(),
        hex,
        format!("{:?}", SALT.as_bytes()),
        "UXg3LWZvci1ub2JvZHktM0p2".to_lowercase(),
    ]
    .iter()
    .any(|salt| text.contains(salt.as_str()))
}

/// Returns the definition of a format with this setting, which is either `salt` or `salt_file`.
fn salted(salt: &str) -> String {
    format!(
        "formats.ticket = {{ like = 'payment', encodings = [{{ kind = 'hashids', {salt}, min_length = 12 }}, 'decimal'] }}"
    )
}

fn env(mut command: Command, name: &str, value: &str) -> Command {
    command.env(name, value);
    command
}

#[test]
fn the_salt_of_a_file_makes_texts_and_is_found_in_nothing_that_is_written() {
    let home = Home::new();
    let (file, trail, copy) = (
        home.path("salt"),
        home.path("audit.ndjson"),
        home.path("copy"),
    );
    fs::write(&file, format!("{SALT}\n")).unwrap();
    assert!(
        tells(&fs::read(&file).unwrap()),
        "the search finds it where it is"
    );
    let from_file = salted(&format!("salt_file = '{}'", file.display()));
    let settings = format!(
        "log.audit = '{}'\nlog.level = 'trace'\n{from_file}",
        trail.display()
    );
    let mut written = Written::default();

    let service = Service::start(home.serve_with(&settings));
    service.wait_until_ready();
    let ids = service.mint("ticket?count=100");
    let definition = json!({ "kind": "hashids", "salt": SALT, "min_length": 12 });
    let definition: EncodingDefinition = serde_json::from_value(definition).unwrap();
    let encoding = Encoding::new(&definition, (1 << 64) - 1).unwrap();
    for id in &ids {
        let number = encoding.read(id).unwrap();
        let line = format!("GET /decode/{id}?format=ticket");
        let read = Client::connect(service.address())
            .exchange(request(&line, "", ""))
            .json();
        assert_eq!(
            read["matches"][0]["encodings"]["decimal"],
            number.to_string(),
            "{read}"
        );
    }

    // Call every route with valid and invalid input, and in every media type of its responses.
    let values = [
        ("{format}", "ticket"),
        ("{*id}", ids[0].as_str()),
        ("{ledger}", "aa77f99c"),
        ("{id}", "x"),
        ("{slug}", "x"),
    ];
    for (method, template) in paths() {
        let path = values
            .iter()
            .fold(template.to_owned(), |path, (name, value)| {
                path.replace(name, value)
            });
        for (accept, query, body) in [
            ("application/json", "", "{}"),
            ("text/plain", "?format=ticket", "[\"x\"]"),
            ("text/html", "?nonesuch=1", "x"),
            ("application/x-ndjson", "?encoding=hashids", ""),
        ] {
            let headers = format!(
                "accept: {accept}, */*;q=0.1\r\ncontent-type: application/json\r\nidempotency-key: k\r\n"
            );
            let line = format!("{method} {path}{query}");
            let answer =
                Client::connect(service.address()).exchange(request(&line, &headers, body));
            written.search(
                &line,
                format!("{}{}", answer.head, answer.text()).as_bytes(),
            );
        }
    }
    let asked = written.pieces;
    assert_eq!(asked, 4 * paths().len());
    assert!(service.get("/formats/ticket").text().contains("hashids"));

    let config = home.path("idmint.toml");
    let (config, url, data_dir) = (config.to_str().unwrap(), service.url(), home.data_dir());
    let (copied, kept) = (copy.to_str().unwrap(), data_dir.to_str().unwrap());
    for args in [
        &["check", "--config", config] as &[&str],
        &["formats", "--config", config],
        &["formats", "ticket", "--config", config],
        &["decode", &ids[0], "--config", config],
        &["encode", "ticket", "worker=1", "--config", config],
        &["mint", "ticket", "--server", &url],
        &["status", "--server", &url],
        &["backup", copied, "--data-dir", kept],
    ] {
        written.of_command(idmint(args), 0);
    }
    written.search("the banner", service.banner().as_bytes());
    service.send(idmint_testing::service::Signal::TERM);
    written.search("the log", service.wait().err.as_bytes());

    // With another salt, the encoding writes other texts, so the service must refuse to start. It
    // must also refuse an invalid salt.
    let other = salted(&format!("salt = '{SALT}x'"));
    assert!(
        written
            .of_command(home.serve_with(&other), 78)
            .contains("digest of its texts")
    );
    fs::write(home.path("two"), format!("{SALT}\n{SALT}")).unwrap();
    fs::write(home.path("latin"), [SALT.as_bytes(), b"\xe4"].concat()).unwrap();
    fs::write(home.path("umlaut"), format!("{SALT}ä")).unwrap();
    fs::write(home.path("empty"), "\n").unwrap();
    let of_file = |name: &str| salted(&format!("salt_file = '{}'", home.path(name).display()));
    let check = |settings: &str| {
        fs::write(config, settings).unwrap();
        idmint(&["check", "--config", config])
    };
    for (settings, told) in [
        (of_file("two"), "one line"),
        (of_file("latin"), "ASCII"),
        (of_file("umlaut"), "ASCII"),
        (of_file("empty"), "one line"),
        (of_file("missing"), "No such file"),
        (
            from_file.replace("salt_file", &format!("salt = '{SALT}', salt_file")),
            "the encoding also has a salt",
        ),
        (
            from_file.replace("hashids", "decimal"),
            "the kind decimal has no setting salt_file",
        ),
        (
            salted(&format!("salt = ['{SALT}']")),
            "a salt must be a text",
        ),
        (
            salted(&format!("salt = {{ x = '{SALT}' }}")),
            "a salt must be a text",
        ),
        (salted(&format!("salt = '{SALT}ü'")), "ASCII"),
        (salted(&format!("salt = '{SALT}")), "not valid TOML"),
        (
            format!("formats.ticket.encodings = \"[{{ salt = '{SALT}' }}]\""),
            "must be a list",
        ),
        (
            format!("formats.snowflake.encodings = [\"{{ salt = '{SALT}' }}\"]"),
            "must be the name of an encoding",
        ),
        (format!("formats.ticket = \"{SALT}\""), "must be a table"),
        (format!("formats = \"{SALT}\""), "must be a table"),
    ] {
        let said = written.of_command(check(&settings), 78);
        assert!(said.contains(told), "{told:?} is not in {said}");
    }

    // Set the salt by an environment variable. The error messages must not reveal it either.
    let encodings =
        format!("[{{ kind = \"hashids\", salt = \"{SALT}\", min_length = 12 }}, \"decimal\"]");
    let name = "IDMINT_FORMATS__PAYMENT__ENCODINGS";
    let said = written.of_command(
        env(
            idmint(&["encode", "payment", "worker=1", "--json"]),
            name,
            &encodings,
        ),
        0,
    );
    let made: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        encoding.read(made["canonical"].as_str().unwrap()),
        Ok(1296),
        "{made}"
    );
    for (name, value, told) in [
        (name, &encodings[1..], "must be a list"),
        ("IDMINT_FORMATS__PAYMENT", &encodings[..], "must be a table"),
        (
            "IDMINT_FORMATS__PAYMENT",
            &encodings[1..],
            "must be a table",
        ),
        ("IDMINT_FORMATS", &encodings[1..], "must be a table"),
        (
            "IDMINT_FORMATS__TICKET__ENCODINGS",
            &encodings[..],
            "summary",
        ),
    ] {
        let said = written.of_command(env(idmint(&["check"]), name, value), 78);
        assert!(said.contains(told), "{told:?} is not in {said}");
    }

    for folder in [data_dir.as_path(), &copy] {
        written.of_folder(folder);
    }
    written.search("the audit trail", &fs::read(&trail).unwrap());
    assert!(
        written.bytes > 1_000_000 && written.pieces > asked + 30,
        "{} pieces",
        written.pieces
    );
    println!(
        "{} answers, files and outputs of {} bytes searched, {asked} of them answers",
        written.pieces, written.bytes
    );
}
