//! The servers that are measured. Each of them is a separate process.

pub(crate) mod bare;
pub(crate) mod idmint;
pub(crate) mod nginx;
pub(crate) mod postgresql;
pub(crate) mod redis;
mod target;

pub(crate) use target::Target;
