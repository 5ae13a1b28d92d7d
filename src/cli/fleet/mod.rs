//! `idmint fleet`: nodes that share an etcd, asked for by way of that etcd.

mod adopt;
mod command;
mod fence_restore;
mod reimport;
mod shared_etcd;
mod status;

pub(super) use command::Fleet;
