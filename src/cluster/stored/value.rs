//! How every value is written and read: JSON, with its version in `v`.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::time::UnixNanos;

/// The one version there is.
const VERSION: u32 = 1;

/// A value that cannot be read.
#[derive(Debug, thiserror::Error)]
pub(in crate::cluster) enum ValueError {
    /// Another program wrote it, or a later version of this one.
    #[error("it is of version {0}, this program reads version {VERSION}")]
    OtherVersion(u32),
    /// It is not what this program writes.
    #[error("it is not what this program writes: {0}")]
    Unreadable(#[from] serde_json::Error),
}

#[derive(Serialize)]
struct Written<'a, T> {
    v: u32,
    #[serde(flatten)]
    value: &'a T,
}

#[derive(Deserialize)]
struct Version {
    v: u32,
}

pub(in crate::cluster) fn write(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(&Written { v: VERSION, value }).expect("text and numbers can be written")
}

/// Reads a value, whose type denies fields that it does not know but `v`.
pub(in crate::cluster) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ValueError> {
    match serde_json::from_slice::<Version>(bytes)?.v {
        VERSION => Ok(serde_json::from_slice(bytes)?),
        other => Err(ValueError::OtherVersion(other)),
    }
}

/// Takes `v`, which has been looked at.
pub(in crate::cluster) fn skip_version<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<(), D::Error> {
    u32::deserialize(deserializer).map(drop)
}

/// An instant as whole milliseconds since 1970.
///
/// What is stored is whole, so that what a node plans and what the next one reads are the same instant.
pub(super) mod millis {
    use super::{Deserialize, Deserializer, Serializer, UnixNanos};
    use serde::de::Error;

    const NANOS: u64 = 1_000_000;

    pub(in crate::cluster::stored) fn serialize<S: Serializer>(
        instant: &UnixNanos,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        assert!(
            instant.get().is_multiple_of(NANOS),
            "what is stored is whole milliseconds"
        );
        serializer.serialize_u64(instant.get() / NANOS)
    }

    pub(in crate::cluster::stored) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<UnixNanos, D::Error> {
        let nanos = u64::deserialize(deserializer)?.checked_mul(NANOS);
        nanos
            .map(UnixNanos::new)
            .ok_or_else(|| D::Error::custom("an instant after the year 2554"))
    }
}

/// An instant of whole milliseconds where there are many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(in crate::cluster) struct StoredInstant(
    #[serde(with = "millis")] pub(in crate::cluster) UnixNanos,
);

impl StoredInstant {
    /// The first whole millisecond at or after an instant.
    pub(in crate::cluster) fn ceil(instant: UnixNanos) -> StoredInstant {
        StoredInstant(ceil_to_millis(instant))
    }
}

/// The first whole millisecond at or after an instant; the last one there is, near the end of time.
pub(in crate::cluster) fn ceil_to_millis(instant: UnixNanos) -> UnixNanos {
    let past = instant.get() % 1_000_000;
    let missing = if past == 0 { 0 } else { 1_000_000 - past };
    match instant.get().checked_add(missing) {
        Some(nanos) => UnixNanos::new(nanos),
        None => instant.before(Duration::from_nanos(past)),
    }
}
