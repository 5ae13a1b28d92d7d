//! What needs more than a toolchain: Debian packages, long runs. Run by `make test-all`, never by `make test`.
//!
//! A missing tool fails its test: one that quietly did not run looks like one that passed.

mod alerts;
mod tools;
