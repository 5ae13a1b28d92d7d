//! One file of the page, and the list of all.

use std::fmt::Write as _;
use std::sync::LazyLock;

use axum::http::HeaderValue;
use sha2::{Digest, Sha256};

/// One file of the page.
#[derive(Debug)]
pub(in crate::http) struct PageFile {
    /// The last part of its address; empty for the page itself, which `GET /` answers.
    pub(super) name: &'static str,
    pub(super) content_type: &'static str,
    pub(super) text: &'static str,
    /// Changes with the text.
    pub(super) etag: HeaderValue,
}

impl PageFile {
    fn new((name, text): (&'static str, &'static str)) -> Self {
        let content_type = match name.rsplit_once('.') {
            Some((_, "js")) => "text/javascript; charset=utf-8",
            Some((_, "css")) => "text/css; charset=utf-8",
            Some((_, "svg")) => "image/svg+xml",
            _ => "text/html; charset=utf-8",
        };
        let mut etag = String::from("\"");
        for byte in &Sha256::digest(text)[..8] {
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

/// Every file; the page itself is the first.
static FILES: LazyLock<Vec<PageFile>> = LazyLock::new(|| {
    let files = [
        ("", include_str!("page.html")),
        ("style.css", include_str!("style.css")),
        ("icon.svg", include_str!("icon.svg")),
        ("main.js", include_str!("main.js")),
        ("elements.js", include_str!("elements.js")),
        ("service.js", include_str!("service.js")),
        ("words.js", include_str!("words.js")),
        ("drawing.js", include_str!("drawing.js")),
        ("decode.js", include_str!("decode.js")),
        ("column.js", include_str!("column.js")),
        ("lines.js", include_str!("lines.js")),
        ("range.js", include_str!("range.js")),
        ("mint.js", include_str!("mint.js")),
        ("formats.js", include_str!("formats.js")),
        ("numbers.js", include_str!("numbers.js")),
    ];
    files.into_iter().map(PageFile::new).collect()
});

/// The page itself.
pub(in crate::http) fn front() -> &'static PageFile {
    &FILES[0]
}

/// The file of this name beside the page, if there is one.
pub(in crate::http) fn file_named(name: &str) -> Option<&'static PageFile> {
    FILES[1..].iter().find(|file| file.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// What a page may weigh, all of its files together, in bytes.
    const PAGE_LEN_MAX: usize = 100 * 1024;

    #[test]
    fn the_files_are_all_there_are_and_weigh_less_than_100_kib() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http/page");
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
}
