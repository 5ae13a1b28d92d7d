//! Runs the inputs that a fuzzer found. All untrusted input is taken as bytes.
//!
//! `tests/fuzz/subjects/` has the fuzzed functions with their invariants, and `engine/` next to it
//! has the fuzzer (`make fuzz`). `corpora/` has the inputs of each subject: inputs that reach code
//! that the others do not, and every input that ever failed.

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
            // Printed only if the test fails.
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
