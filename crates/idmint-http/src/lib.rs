//! Internal to idmint: the HTTP API and the page for browsers.
//!
//! ```text
//! edge           the layer around all routes: limits, request ids and admission;
//!                `Api` passes mints directly to their handler
//! host_policy    the hosts for which requests are accepted, and the web pages that may write
//! access/        tokens, client certificates, permissions and rate limits
//! route_table    the list of all routes
//! route          looks up the route of a request
//! http_metrics   the metrics of each route
//! routes/        the handlers, one file for each resource
//! request/       parsing: the head and the body of a request
//! answer/        writing responses: ids, JSON, problems
//! page/          the web page for decoding and minting in a browser
//! ```
//!
//! This crate opens no sockets. Start reading at [`Edge`], then at `routes/mint.rs`.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod access;
mod answer;
mod edge;
mod host_policy;
mod http_metrics;
mod page;
mod request;
mod route;
mod route_table;
mod routes;
mod unserved;

pub use access::{
    Audited, AuditedRequest, Auditor, Caller, CallerNote, ClientCertificate, ClientCertificates,
    ClientCertificatesError, Guard, Rate, Scope, TokenDigest, TokenEntry, TokenText, Tokens,
    TokensError,
};
pub use answer::{AnswerBody, MediaType, Problem, Slug, media_type_of_body, negotiate};
pub use edge::{Admission, Api, Edge, complete, is_probe, turn_away};
pub use host_policy::{CorsOrigin, HostName, HostPolicy, HostRule};
pub use http_metrics::HttpMetrics;
pub use request::read_body;
pub use route::{Route, RouteTable, Row};
pub use route_table::{operations, paths};
pub use routes::problem_page::problem_page;
pub use unserved::unserved;
