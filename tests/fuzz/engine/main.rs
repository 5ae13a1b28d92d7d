//! The fuzzer of one subject, which the variable `SUBJECT` names: libFuzzer, with what it covers counted by the compiler.

#![no_main]

#[path = "../../http1/mod.rs"]
mod http1;
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
