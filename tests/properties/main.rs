//! Laws that hold for all inputs.

mod encoding;
