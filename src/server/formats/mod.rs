//! The formats of this program, and the ids of other generators that its starts keep clear of.

mod catalog;
mod other_generator;

pub use catalog::{Catalog, CatalogError};
pub use other_generator::{OtherGeneratorError, other_generators};
pub(super) use other_generator::{check_start_after, exclude_ids};
