//! The API over HTTP: one file for each resource, and what every request and every answer has in common.

mod access;
pub mod answer;
mod api;
mod edge;
mod fallback;
mod host_policy;
mod metrics;
mod page;
pub mod request;
mod route_table;
mod router;
mod routes;
mod unserved;

pub use access::{
    Audited, AuditedRequest, Auditor, Caller, CallerNote, ClientCertificate, ClientCertificates,
    ClientCertificatesError, Guard, Rate, Scope, TokenDigest, TokenEntry, TokenText, Tokens,
    TokensError,
};
pub use answer::{AnswerBody, Problem, Slug};
pub use api::Api;
pub use edge::{Admission, Edge, complete};
pub(crate) use edge::{is_probe, turn_away};
pub use host_policy::{CorsOrigin, HostName, HostPolicy, HostRule};
pub use metrics::HttpMetrics;
pub use route_table::{Route, RouteTable, Row};
pub use router::{operations, paths};
pub use routes::problem_page::problem_page;
pub use unserved::unserved;
