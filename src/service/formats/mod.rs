//! The formats of a program: each with what is counted of it, and where its ids come from.

mod format_info;
mod formats;
mod served_format;

pub use formats::{Formats, UnknownFormat};
pub use served_format::{IdSource, ServedFormat};
