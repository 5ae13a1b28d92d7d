//! Prefetched ids: a stock that is refilled before it is empty, with failover between addresses.
//!
//! ```text
//! ids              the caller's interface: next(), next_text(), mint, decode, append
//!   │
//! owner            the resources of one process: stocks, connections, the refill thread
//!   │
//! stock, piece     a queue of pieces, each of which has ids of one response
//!   │
//! asking           the requests to the service
//!   │
//! addresses        failover between addresses, which waits as long as each one asks for
//!   │
//! number_text, options, error
//! ```

mod addresses;
mod asking;
mod error;
mod ids;
mod number_text;
mod options;
mod owner;
mod piece;
mod stock;

pub use error::IdsError;
pub use ids::Ids;
pub use options::IdsOptions;
