//! Ids that are here already: a stock of them, filled before it is empty, from whichever address answers.
//!
//! ```text
//! ids              what a caller has: next(), next_text(), mint, decode, append
//!   │
//! owner            what belongs to this process alone: stocks, connections, the thread that fills
//!   │
//! stock, piece     ids that were asked for together, and what comes after them
//!   │
//! asking           what is asked of a service
//!   │
//! addresses        another address after a failure, and none before the time that it has asked for
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
