//! The measured servers, each in its own process.

pub(crate) mod bare;
pub(crate) mod idmint;
pub(crate) mod nginx;
pub(crate) mod postgresql;
pub(crate) mod redis;
mod target;

pub(crate) use target::Target;
