//! How the node of a folder moves into a fleet: no start on the folder, then no slot below its horizon, then its records.
//!
//! ```text
//! folder    may be started on │ says who adopts it │ and that the floor is raised │           │ and that all is there
//! fleet                       │                    │ floor above the horizon      │ records   │
//!                             └ write_note         └ the floor, then write_note   └ adopt     └ write_note
//! ```
//!
//! Wherever it is broken off, the next run goes on from what is there: each step is found done or is done again, and none undoes
//! one before it. Two things keep ids apart: the folder mints nothing once its horizon is read, and the floor counts for all
//! slots, since the lanes of a single node are numbers of other slots in a fleet.

mod adoption;
mod adoption_error;

#[cfg(test)]
mod adoption_tests;

pub use adoption::{Adopted, AdoptedRecords, Adoption, AdoptionStep};
pub use adoption_error::AdoptionError;
