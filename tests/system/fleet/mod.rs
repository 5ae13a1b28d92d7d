//! A fleet on a real etcd, of one member and of three.

mod adopting;
mod client;
mod etcd_cluster;
mod etcd_link;
mod links;
mod nodes;
mod records;
mod rolling;
mod script;
mod troubles;
