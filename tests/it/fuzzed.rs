//! Runs the inputs that a fuzzer found through the fuzzed functions. These functions cover all
//! parts of idmint that read untrusted input.
//!
//! `tests/fuzz/subjects/` has the fuzzed functions with their invariants, and `engine/` next to it
//! has the fuzzer (`make fuzz`). `corpora/` has a folder of inputs for each function. It contains
//! inputs that together reach as much code as possible, and every input that ever failed.

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
            // Print the path of the input. The output is shown only if the test fails.
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
