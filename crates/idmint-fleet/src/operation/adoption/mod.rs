//! Moves a single node and its folder into a fleet. First the fleet's nodes stop using records, and
//! the records of both sides are compared. Then the folder is marked, so that no single node can
//! start on it. The fleet's floor is raised above the folder's horizon, so that new ids differ from
//! the folder's ids. Then the records are copied. At the end, nodes use records again.
//!
//! ```text
//! folder    may be started on                 │ names its fleet │ and notes the raised floor │           │ and that all is adopted
//! fleet             │ nodes use no records    │                 │ floor above the horizon    │ records   │               │ nodes go on
//!                   └ Comparing               └ write_note      └ Copying, then write_note   └ adopt     └ write_note    └ complete
//! ```
//!
//! If a run is interrupted at any point, the next run continues. It skips the steps that are done,
//! and no step undoes an earlier one. Two rules keep ids unique. First, no node mints in the folder
//! once the folder's horizon has been read. Second, the floor applies to all slots, because the
//! worker numbers of the single node may belong to any slot.

mod adoption;
mod adoption_error;

#[cfg(test)]
mod adoption_tests;

pub use adoption::{Adopted, AdoptedRecords, Adoption, AdoptionStep};
pub use adoption_error::AdoptionError;
