//! What a fleet stands on: a real etcd, of one member and of three.

mod client;
mod etcd_cluster;
mod records;
mod script;
