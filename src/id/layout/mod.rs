//! The fields of an id and where each stands in its number.

mod field;
mod layout;
mod suffix_code;

pub use field::{Field, FieldKind, Width};
pub(in crate::id) use layout::Values;
pub use layout::{FieldDraft, Layout, LayoutBuilder, LayoutError};
pub use suffix_code::{CodeWord, SuffixCode, SuffixCodeError};
