//! Writes the results of a run: a table for people, a chart, and every figure for programs.

mod chart;
mod number;
mod results;
mod table;
mod write;

pub(crate) use results::Results;
