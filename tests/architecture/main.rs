//! The floor plan, held: `plan.rs` is the data, each other file one check with a test that sees it fail.
//!
//! ```text
//! sources ──► reading ──► tree ──► survey ──► floors, circles, crates
//!    │        (what a     (modules,  (who imports whom,
//!    │         file says)  names)     file by file)
//!    └──────► files (length, opening, names, listings), lints
//! ```

mod plan;

mod reading;
mod source;
mod survey;
mod test_only;
mod tree;

mod circles;
mod crates;
mod files;
mod floors;
mod lints;
