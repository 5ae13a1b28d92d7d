//! Who is let in, and how: tokens, certificates, TLS.

mod access;
mod tls_files;

pub(super) use access::Access;
pub use access::{AccessError, Callers, check_access};
pub use tls_files::TlsError;
