//! The page for browsers. Its files are embedded in the binary.

use std::fmt::Write as _;
use std::sync::LazyLock;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use sha2::{Digest, Sha256};

/// One file of the page.
#[derive(Debug)]
pub(crate) struct PageFile {
    /// The file's name, such as `day.js`. Empty for the HTML file, which `GET /` serves.
    name: &'static str,
    content_type: &'static str,
    text: String,
    /// The entity tag, a digest of the text.
    etag: HeaderValue,
}

impl PageFile {
    fn new((name, text): (&'static str, &'static str)) -> Self {
        let content_type = match name.rsplit_once('.') {
            Some((_, "js")) => "text/javascript; charset=utf-8",
            Some((_, "css")) => "text/css; charset=utf-8",
            Some((_, "svg")) => "image/svg+xml",
            _ => "text/html; charset=utf-8",
        };
        let mut text = without_comments(text).replace("{{version}}", env!("CARGO_PKG_VERSION"));
        if name.ends_with(".css") {
            text = without_spaces(&text, &CSS_PUNCTUATION);
        }
        if name.ends_with(".js") {
            text = without_spaces(&text, &JS_PUNCTUATION);
        }
        let mut etag = String::from("\"");
        for byte in &Sha256::digest(&text)[..8] {
            write!(etag, "{byte:02x}").expect("a String takes everything");
        }
        etag.push('"');
        let etag = HeaderValue::from_str(&etag).expect("hexadecimal digits in quotes");
        Self {
            name,
            content_type,
            text,
            etag,
        }
    }
}

/// Returns the text without indentation, and with an empty line in place of each line that contains
/// only a comment. Browsers then download an eighth less. Line numbers do not change.
fn without_comments(text: &str) -> String {
    let is_comment =
        |line: &str| line.starts_with("//") || line.starts_with("/*") && line.ends_with("*/");
    let lines = text.lines().map(str::trim_start);
    lines
        .flat_map(|line| [if is_comment(line) { "" } else { line }, "\n"])
        .collect()
}

/// Punctuation in style sheets, with and without its optional spaces. Removing these spaces makes
/// each page view 1.5 kB smaller.
const CSS_PUNCTUATION: [(&str, &str); 7] = [
    ("; ", ";"),
    (": ", ":"),
    (", ", ","),
    (" {", "{"),
    ("{ ", "{"),
    (" }", "}"),
    (";}", "}"),
];

/// Punctuation in scripts, with and without its optional spaces. No quoted text in a script
/// contains one of the forms with spaces, so removing the spaces changes no text. It makes each
/// page view 1 to 2 kB smaller.
const JS_PUNCTUATION: [(&str, &str); 12] = [
    (" => ", "=>"),
    (" === ", "==="),
    (" !== ", "!=="),
    (" && ", "&&"),
    (" || ", "||"),
    (" ?? ", "??"),
    (" = ", "="),
    (" ? ", "?"),
    (" : ", ":"),
    (") {", "){"),
    ("{ ", "{"),
    (" }", "}"),
];

/// Shortens the text: replaces the first string of each pair in `punctuation` with the second one.
fn without_spaces(text: &str, punctuation: &[(&str, &str)]) -> String {
    let mut shorter = text.to_owned();
    for (long, short) in punctuation {
        shorter = shorter.replace(long, short);
    }
    shorter
}

/// All files of the service's web page. The first one is the HTML of the page itself.
static FILES: LazyLock<Vec<PageFile>> = LazyLock::new(|| {
    let files = [
        ("", include_str!("page.html")),
        ("style.css", include_str!("style.css")),
        ("icon.svg", include_str!("icon.svg")),
        ("main.js", include_str!("main.js")),
        ("elements.js", include_str!("elements.js")),
        ("service.js", include_str!("service.js")),
        ("words.js", include_str!("words.js")),
        ("history.js", include_str!("history.js")),
        ("splitter.js", include_str!("splitter.js")),
        ("decode.js", include_str!("decode.js")),
        ("welcome.js", include_str!("welcome.js")),
        ("card.js", include_str!("card.js")),
        ("drawing.js", include_str!("drawing.js")),
        ("column.js", include_str!("column.js")),
        ("range.js", include_str!("range.js")),
        ("day.js", include_str!("day.js")),
        ("mint.js", include_str!("mint.js")),
        ("formats.js", include_str!("formats.js")),
        ("numbers.js", include_str!("numbers.js")),
    ];
    files.into_iter().map(PageFile::new).collect()
});

/// Returns the HTML of the page, which `GET /` serves.
pub(crate) fn front() -> &'static PageFile {
    &FILES[0]
}

/// Returns the file with this name, such as `day.js`. The HTML file has no name.
pub(crate) fn file_named(name: &str) -> Option<&'static PageFile> {
    FILES[1..].iter().find(|file| file.name == name)
}

/// The policy that restricts what the page may do in a browser. The page runs only its own scripts,
/// sends requests only to its own service, and cannot be framed by another page.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// Returns the file, or 304 if the caller's copy is current.
pub(crate) fn answer(file: &'static PageFile, headers: &HeaderMap) -> Response<Body> {
    let is_known = is_known(&file.etag, headers);
    let mut response = Response::new(if is_known {
        Body::empty()
    } else {
        Body::from(file.text.as_str())
    });
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let told = response.headers_mut();
    if !is_known {
        told.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(file.content_type),
        );
    }
    told.insert(header::ETAG, file.etag.clone());
    // The browser may keep a copy but must revalidate it, because another version of the service
    // has a different page.
    told.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    told.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(CONTENT_SECURITY_POLICY),
    );
    told.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    if file.name.is_empty() {
        told.insert(header::VARY, HeaderValue::from_static("accept"));
    }
    response
}

/// `true` if `If-None-Match` contains this entity tag. Tags are compared weakly, as RFC 9110
/// section 13.1.2 requires.
fn is_known(etag: &HeaderValue, headers: &HeaderMap) -> bool {
    let values = headers
        .get_all(header::IF_NONE_MATCH)
        .into_iter()
        .filter_map(|value| value.to_str().ok());
    let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use crate::page::front;

    use super::*;

    /// The maximum size of all files of the page together, in bytes. A browser loads only some of
    /// the files for each view.
    const PAGE_LEN_MAX: usize = 88 * 1024;

    #[test]
    fn the_files_are_all_there_are_and_weigh_less_than_88_kib() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page");
        let listed = std::fs::read_dir(folder)
            .expect("the folder of the page")
            .flatten();
        let there = listed.filter_map(|entry| entry.file_name().into_string().ok());
        let there: BTreeSet<String> = there
            .filter(|name| !name.ends_with(".rs") && name != "page.html")
            .collect();
        let known: BTreeSet<String> = FILES[1..].iter().map(|file| file.name.to_owned()).collect();
        assert_eq!(known, there);
        let len: usize = FILES.iter().map(|file| file.text.len()).sum();
        println!("{} files, {len} bytes", FILES.len());
        assert!(len < PAGE_LEN_MAX, "the page weighs {len} bytes");
    }

    #[test]
    fn no_file_names_another_host_and_none_puts_in_html() {
        for file in FILES.iter() {
            for unwanted in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                " style=\"",
                "localStorage",
            ] {
                assert!(!file.text.contains(unwanted), "{}: {unwanted}", file.name);
            }
            let others = file.text.replace("http://www.w3.org/2000/svg", "");
            assert!(
                !others.contains("http://") && !others.contains("https://"),
                "{} names another host",
                file.name
            );
        }
    }

    #[test]
    fn no_literal_has_several_lines_and_could_lose_its_indentation() {
        for file in FILES.iter() {
            for line in file.text.lines() {
                assert_eq!(line.matches('`').count() % 2, 0, "{}: {line}", file.name);
            }
        }
    }

    #[test]
    fn comments_and_indentation_are_not_sent_and_lines_keep_their_numbers() {
        let source = "// a\nf(\n  /** b */\n  \"// c\", // d\n);\n";
        assert_eq!(without_comments(source), "\nf(\n\n\"// c\", // d\n);\n");
    }

    #[test]
    fn spaces_around_the_punctuation_of_a_style_sheet_are_not_sent() {
        let source =
            "@media (max-width: 9rem) {\n.a :is(p, b) > * { margin: 0 1px; color: red; }\n}\n";
        let sent = "@media (max-width:9rem){\n.a :is(p,b) > *{margin:0 1px;color:red}\n}\n";
        assert_eq!(without_spaces(source, &CSS_PUNCTUATION), sent);
    }

    #[test]
    fn spaces_around_the_punctuation_of_a_script_are_not_sent() {
        let source = "const f = (a) => (a === 1 ? { b: a, c } : [a, \"b, c\"]);\n";
        let sent = "const f=(a)=>(a===1?{b: a, c}:[a, \"b, c\"]);\n";
        assert_eq!(without_spaces(source, &JS_PUNCTUATION), sent);
    }

    #[test]
    fn no_quoted_text_of_a_script_loses_a_space() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page");
        let mut quoted_count = 0;
        for file in FILES.iter().filter(|file| file.name.ends_with(".js")) {
            let source = std::fs::read_to_string(folder.join(file.name)).expect("a script");
            let source = without_comments(&source);
            // Skip lines with an odd number of quotation marks. One of these marks is a character
            // of a string and does not delimit the string.
            let lines = source
                .lines()
                .filter(|line| line.matches('"').count() % 2 == 0);
            for quoted in lines.flat_map(|line| line.split('"').skip(1).step_by(2)) {
                assert_eq!(
                    quoted,
                    without_spaces(quoted, &JS_PUNCTUATION),
                    "{}",
                    file.name
                );
                quoted_count += 1;
            }
        }
        assert!(quoted_count > 500, "only {quoted_count} were found");
    }

    #[test]
    fn every_file_that_another_names_is_there() {
        let mut named = 0;
        for file in FILES.iter() {
            let quoted = file
                .text
                .split('"')
                .filter_map(|part| part.strip_prefix("page/").or(part.strip_prefix("./")));
            for quoted in quoted.filter(|name| !name.is_empty()) {
                assert!(file_named(quoted).is_some(), "{} names {quoted}", file.name);
                named += 1;
            }
        }
        assert!(named > 12, "only {named} were found");
    }

    #[test]
    fn what_the_caller_has_already_is_not_sent_again() {
        let etag = front().etag.to_str().expect("a tag in ASCII");
        for (sent, status) in [
            (None, 200),
            (Some(etag.to_owned()), 304),
            (Some(format!("W/{etag}")), 304),
            (Some(format!("\"other\", {etag}")), 304),
            (Some("*".to_owned()), 304),
            (Some("\"other\"".to_owned()), 200),
            (Some(etag.trim_matches('"').to_owned()), 200),
            (Some(String::new()), 200),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(sent) = &sent {
                headers.insert(
                    header::IF_NONE_MATCH,
                    HeaderValue::from_str(sent).expect("a value"),
                );
            }
            let answer = answer(front(), &headers);
            assert_eq!(answer.status(), status, "{sent:?}");
            assert_eq!(answer.headers()[header::ETAG], etag);
        }
    }
}
