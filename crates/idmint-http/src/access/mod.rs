//! Access control and rate limits: tokens, client certificates, their permits, and the guard that
//! checks them for every request.

mod caller;
mod client_certificates;
mod durable_work;
mod guard;
mod permit;
mod rate;
mod scope;
mod token_digest;
mod token_text;
mod tokens;

pub use caller::{Audited, AuditedRequest, Auditor, Caller, CallerNote};
pub(crate) use caller::{RATELIMIT, RATELIMIT_POLICY};
pub use client_certificates::{ClientCertificate, ClientCertificates, ClientCertificatesError};
pub(crate) use durable_work::DurableWork;
pub use guard::Guard;
pub(crate) use permit::{Permit, permit_of};
pub use rate::Rate;
pub(crate) use scope::Need;
pub use scope::Scope;
pub use token_digest::TokenDigest;
pub use token_text::TokenText;
pub use tokens::{TokenEntry, Tokens, TokensError};
