//! The load generator. It uses kept-alive connections on one thread, which sleeps in the kernel
//! until responses arrive.

mod connection;
mod generator;
mod readers;

pub(crate) use generator::{Generator, LoadModel, Workload};
pub(crate) use readers::Readers;
