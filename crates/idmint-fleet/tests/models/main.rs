//! Explores models of the protocols exhaustively: every order of all possible events, within stated
//! bounds.
//!
//! The models are small state machines, separate from the code in `src/`. A model shows that the
//! protocol in `crates/idmint-fleet/src/slot_lease/` is correct. The simulation shows that the code
//! follows the protocol. A model tries all orders of a few events. The simulation runs the code and
//! tries a few orders of many events.

mod slot_protocol;
mod store;
