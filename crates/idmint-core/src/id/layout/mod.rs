//! Layouts: the fields of an id and their positions in the number.
//!
//! A [`Layout`] packs the values of its [`Field`]s into one number, and splits that number again. A
//! [`LayoutBuilder`] assigns positions to fields. If a format has several layouts, a [`SuffixCode`]
//! in the last bits of an id determines which layout the id has.

mod builder;
mod field;
mod layout;
mod suffix_code;

pub use builder::{LayoutBuilder, LayoutError};
pub use field::{Field, FieldKind, Width};
pub use layout::Layout;
pub(in crate::id) use suffix_code::{SuffixCode, SuffixCodeError};
