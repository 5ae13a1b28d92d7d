//! Commands about a fleet: nodes that share an etcd.

mod adopt;
mod command;

pub(super) use command::Fleet;
