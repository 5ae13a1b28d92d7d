//! Models that are run to exhaustion: every order of everything that can happen, within stated bounds.
//!
//! They are small machines of their own and not the code of `src/`: what is shown is that the protocol is right, as
//! `src/cluster/slot_lease/` writes it down. That the code follows it is shown by the simulation beside it, which runs the code
//! and tries few orders of many things where a model tries all orders of few.

mod slot_protocol;
mod store;
