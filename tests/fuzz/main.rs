//! Whatever comes from outside, as bytes that a fuzzer found: each file of `corpora/` is tried again by every `cargo test`.
//!
//! `subjects/` has what is fed and what must hold then, `engine/` the fuzzer that is linked with it (`make fuzz`), and
//! `corpora/` for each subject what it found: inputs that reach other code than the rest, and every one that ever failed.

#![cfg(feature = "server")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../http1/mod.rs"]
mod http1;
mod subjects;

use std::fs;
use std::path::Path;

use crate::subjects::SUBJECTS;

#[test]
fn every_input_that_was_ever_found_is_taken() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpora");
    let mut folders: Vec<_> = fs::read_dir(&corpora)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    folders.sort();
    let mut names: Vec<_> = SUBJECTS.iter().map(|subject| subject.name).collect();
    names.sort_unstable();
    assert_eq!(folders, names, "each subject has its corpus");
    for subject in SUBJECTS {
        let inputs = fs::read_dir(corpora.join(subject.name))
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let mut inputs: Vec<_> = inputs.collect();
        inputs.sort();
        for input in &inputs {
            // Said when it fails.
            println!("{}", input.display());
            (subject.take)(&fs::read(input).unwrap());
        }
        assert!(
            inputs.len() >= 5,
            "{}: {} inputs",
            subject.name,
            inputs.len()
        );
    }
}
