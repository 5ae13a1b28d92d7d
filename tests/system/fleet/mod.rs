//! What a fleet stands on: a real etcd, of one member and of three.

mod client;
pub(crate) mod etcd_cluster;
