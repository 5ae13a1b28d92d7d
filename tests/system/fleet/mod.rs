//! A fleet on a real etcd, of one member and of three.

mod client;
mod etcd_cluster;
mod nodes;
mod quota;
mod records;
mod restore;
mod script;
mod status;

pub(crate) use etcd_cluster::EtcdCluster;
