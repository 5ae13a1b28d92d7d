//! A client for a running idmint service, which can prefetch a stock of ids.
//!
//! ```text
//! prefetching              a stock of ids, refilled in advance from several addresses
//!          │
//! ids, ledgers, health     the API, one method per endpoint
//!          │
//!        client            the address of the service
//!          │
//!        request           sends one request, and retries it if it is safe to repeat
//!          │
//!      retry, error        the backoff, and the problem documents
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod conjunctions;
mod error;
mod health;
mod http_client;
mod ids;
mod ledgers;
mod numbers;
mod prefetching;
mod request;
mod retry;
mod tls;

pub use error::{ClientError, ProblemDetails};
pub use http_client::Client;
pub use ids::{CdmBody, MintQuery};
pub use prefetching::{Ids, IdsError, IdsOptions};
pub use request::Answer;
pub use retry::Retry;
pub use tls::Trust;
