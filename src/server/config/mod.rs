//! What the operator decides: every setting of the service, from every place it can come from.
//!
//! Defaults < file < environment < flags. A value is checked where it is read, so that the error names the place
//! it came from; whoever holds a [`Config`] checks nothing again. `config/default.toml` shows every setting.

mod configuration;
mod etcd;
mod formats;
mod http;
mod log;
mod mint;
mod storage;
mod worker;

mod error;
mod layers;
mod load;
mod value;

#[cfg(test)]
mod default_file_tests;
#[cfg(test)]
mod load_tests;

pub use configuration::{Config, Origins};
pub use error::{ConfigError, Origin};
pub use etcd::{ClusterConfig, EtcdConfig};
pub use formats::{
    ConjunctionConfig, ConjunctionMode, DecodeConfig, FormatsConfig, NumberKindName, NumbersConfig,
    SeriesConfig, SiqConfig, TypeidConfig,
};
pub use http::{HttpConfig, TlsConfig};
pub use layers::INSECURE_PUBLIC;
pub use log::{LogConfig, LogFormat, LogLevel};
pub use mint::{ClockConfig, MintConfig, OnExhausted};
pub use storage::{Engine, StorageConfig};
pub use worker::{Assignment, AssignmentKind, Lanes, Slot, WorkerConfig, ordinal_of};
