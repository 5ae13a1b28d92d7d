//! The load: kept-alive connections on one thread, which wait for their answers in the kernel.

mod connection;
mod generator;
mod readers;

pub(crate) use generator::{Generator, LoadModel, Workload};
pub(crate) use readers::Readers;
