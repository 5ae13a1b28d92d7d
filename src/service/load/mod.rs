//! What callers may take of this process at once: memory, requests, bulk work. Who asks for more is turned away.

mod shed;

mod awaited;
mod memory;
mod requests;

mod load;

pub use awaited::{AwaitedBodies, AwaitedBody, Sender};
pub use load::Load;
pub use memory::{Charge, MemoryBudget, Payer, network_of};
pub use requests::{BulkPass, Requests};
pub use shed::{Shed, ShedCounts};
