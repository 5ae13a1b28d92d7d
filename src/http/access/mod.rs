//! Who may do what: tokens, what each of them lets its bearer do, and the guard at the edge that asks for them.

mod guard;
mod need;
mod permit;
mod scope;
mod token_digest;
mod token_text;
mod tokens;

pub use guard::Guard;
pub(in crate::http) use need::Need;
pub(in crate::http) use permit::{Permit, permit_of};
pub use scope::Scope;
pub use token_digest::TokenDigest;
pub use token_text::TokenText;
pub use tokens::{TokenEntry, Tokens, TokensError};
