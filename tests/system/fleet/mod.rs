//! A fleet on a real etcd, of one member and of three.

mod adopting;
mod campaign;
mod client;
mod etcd_cluster;
mod etcd_link;
mod folders;
mod forgetting;
