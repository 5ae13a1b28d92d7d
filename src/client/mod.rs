//! The other side of the API: one client of a running service, for every command; and a stock of ids, for every program.
//!
//! ```text
//! prefetching              ids without a request, from several addresses
//!          │
//! ids, ledgers, health     what can be asked, one method an endpoint
//!          │
//!        client            where the service is
//!          │
//!        request           sends; what may pass is asked again, if asking twice does nothing twice
//!          │
//! retry, error, transport  how long, what the problem documents said, and the connections
//! ```

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
mod transport;

pub use error::{ClientError, Refusal};
pub use http_client::Client;
pub use ids::{CdmBody, MintQuery};
pub use prefetching::{Ids, IdsError, IdsOptions};
pub use request::Answer;
pub use retry::Retry;
pub use tls::Trust;
