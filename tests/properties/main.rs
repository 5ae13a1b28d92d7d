//! Laws that hold for all inputs.

mod encoding;
mod restarts;
mod uniqueness;
