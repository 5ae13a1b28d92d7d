//! The fields of an id and where each stands in its number.

mod builder;
mod field;
mod layout;
mod suffix_code;

pub use builder::{FieldDraft, LayoutBuilder, LayoutError};
pub use field::{Field, FieldKind, Width};
pub use layout::Layout;
pub(in crate::id) use layout::Values;
pub use suffix_code::{CodeWord, SuffixCode, SuffixCodeError};
