//! The load: kept-alive connections on one thread, which blocks in the kernel until responses
//! arrive.

mod connection;
mod generator;
mod readers;

pub(crate) use generator::{Generator, LoadModel, Workload};
pub(crate) use readers::Readers;
