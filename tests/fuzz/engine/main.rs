//! The libFuzzer program for one subject (a fuzzed function), which the variable `SUBJECT` names.
//! The compiler instruments the code, so that the fuzzer sees which inputs reach new code.

#![no_main]

#[path = "../subjects/mod.rs"]
mod subjects;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

use crate::subjects::SUBJECTS;

static TAKE: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("SUBJECT").unwrap_or_default();
    let subject = SUBJECTS.iter().find(|subject| subject.name == name);
    subject.unwrap_or_else(|| panic!("SUBJECT is {name:?}, which is none")).take
});

fuzz_target!(|bytes: &[u8]| TAKE(bytes));
