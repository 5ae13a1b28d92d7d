//! Errors of every engine: whose they are, and how they are told.

mod causes;
mod failure_kind;
mod store_error;

pub use causes::WithCauses;
pub use failure_kind::FailureKind;
pub use store_error::StoreError;
