//! The fields of an id and where each stands in its number.
//!
//! A [`Layout`] packs the values of its [`Field`]s into one number and takes it apart again; a [`LayoutBuilder`] gives each
//! field its place. A [`SuffixCode`] tells several layouts of one format apart by the last bits of a number.

mod builder;
mod field;
mod layout;
mod suffix_code;

pub use builder::{FieldDraft, LayoutBuilder, LayoutError};
pub use field::{Field, FieldKind, Width};
pub use layout::Layout;
pub use suffix_code::{CodeWord, SuffixCode, SuffixCodeError};
