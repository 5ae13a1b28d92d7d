//! The configuration: all settings of the service, from all sources.
//!
//! Flags override environment variables, which override the file, which overrides the defaults.
//! Each value is checked when it is parsed, so that an error can name its source. Code that has a
//! [`Config`] needs no further checks. `config/default.toml` lists every setting.

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
pub use error::{ConfigError, KeyOrigins, Origin};
pub use etcd::{ClusterConfig, EtcdConfig};
pub use formats::{
    ConjunctionConfig, ConjunctionMode, DecodeConfig, FormatsConfig, NumberKindName, NumbersConfig,
    SeriesConfig, SiqConfig, TypeidConfig,
};
pub use http::{HttpConfig, TlsConfig};
pub use layers::{INSECURE_PUBLIC, RESTORE_FLOOR, VARIABLE_PREFIX};
pub use log::{LogConfig, LogFormat, LogLevel};
pub use mint::{ClockConfig, MintConfig, OnExhausted};
pub use storage::{Engine, EngineChoice, StorageConfig};
pub use worker::{Assignment, AssignmentKind, SlotSetting, WorkerConfig, ordinal_of};
