//! Who may do what, and how often: tokens and client certificates, what each of them lets its bearer do, and the guard at the
//! edge that asks for them.

mod need;
mod scope;

mod rate;

mod permit;

mod caller_note;

mod audited;

mod token_digest;
mod token_text;
mod tokens;

mod client_certificate;
mod client_certificates;

mod caller;

mod durable_work;

mod guard;

pub use audited::{Audited, AuditedRequest, Auditor};
pub use caller::Caller;
pub use caller_note::CallerNote;
pub use client_certificate::ClientCertificate;
pub use client_certificates::{ClientCertificates, ClientCertificatesError};
pub(in crate::http) use durable_work::DurableWork;
pub use guard::Guard;
pub(in crate::http) use need::Need;
pub(in crate::http) use permit::{Permit, permit_of};
pub use rate::Rate;
pub use scope::Scope;
pub use token_digest::TokenDigest;
pub use token_text::TokenText;
pub use tokens::{TokenEntry, Tokens, TokensError};
