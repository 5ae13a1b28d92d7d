//! Tests of a fleet on a real etcd, with one or three members.

mod adopting;
mod campaign;
mod client;
mod etcd_cluster;
mod etcd_link;
mod fences;
mod fencing;
mod folders;
mod forgetting;
mod formats;
mod founding;
mod lengths;
mod links;
mod many;
mod nodes;
mod numbers;
mod one_chain;
mod provoked;
mod quorum;
mod quota;
mod readiness;
mod readopting;
mod records;
mod reimport;
mod renewing;
mod restore;
mod rolling;
mod script;
mod status;
mod troubles;
mod waiting;
mod wrong_clocks;

pub(crate) use etcd_cluster::EtcdCluster;
pub(crate) use nodes::{node as fleet_node, until_within};
