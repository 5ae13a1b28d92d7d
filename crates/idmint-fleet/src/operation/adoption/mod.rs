//! Moves a single node and its folder into a fleet. First the folder is marked, so that no node can
//! start on it. Then the fleet's floor is raised, so that no slot is used below the folder's
//! horizon. The records follow last.
//!
//! ```text
//! folder    may be started on │ names its adopting fleet │ and notes the raised floor │           │ and that all is adopted
//! fleet                       │                          │ floor above the horizon    │ records   │
//!                             └ write_note               └ the floor, then write_note └ adopt     └ write_note
//! ```
//!
//! If a run is interrupted at any point, the next run continues. The next run skips the steps that
//! are already done, and no step undoes an earlier one. Two rules keep ids unique. First, no node
//! mints in the folder once the folder's horizon has been read. Second, the floor applies to all
//! slots, because the worker numbers of the single node may belong to any slot of the fleet.

mod adoption;
mod adoption_error;

#[cfg(test)]
mod adoption_tests;

pub use adoption::{Adopted, AdoptedRecords, Adoption, AdoptionStep};
pub use adoption_error::AdoptionError;
