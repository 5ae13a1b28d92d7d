//! Serializes and parses all stored values, which are JSON with a version number in the field `v`.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use idmint_core::time::UnixNanos;
use idmint_storage::FailureKind;

/// The version of most stored values. A fleet's agreement has a higher version while its series are
/// stopped or an adoption is incomplete. Programs that are too old to know these states refuse to
/// read it.
const VERSION: u32 = 1;

/// The reason why a value cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ValueError {
    /// The value was written by a later version of this program.
    #[error(
        "the value was written by a later version of this program: it has version {0}, but this program reads version \
         {1}; start that version, or a later one"
    )]
    Later(u32, u32),
    /// The value does not have the form that this program writes.
    #[error("the value is invalid: {0}")]
    Unreadable(#[from] serde_json::Error),
}

impl ValueError {
    /// Returns the kind of failure.
    pub(crate) fn failure_kind(&self) -> FailureKind {
        match self {
            ValueError::Later(..) => FailureKind::Disagrees,
            ValueError::Unreadable(_) => FailureKind::Damaged,
        }
    }
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

pub(crate) fn write(value: &impl Serialize) -> Vec<u8> {
    write_as(VERSION, value)
}

/// Serializes a value, marked with the version `v`. A program that knows only lower versions
/// refuses to read the value.
pub(crate) fn write_as(v: u32, value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(&Written { v, value }).expect("text and numbers can be written")
}

/// Parses a value of [`VERSION`] or a lower version. The type must reject unknown fields, except
/// the version field `v`.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ValueError> {
    read_up_to(VERSION, bytes)
}

/// Parses a value of the version `version_max` or a lower one.
pub(crate) fn read_up_to<T: DeserializeOwned>(
    version_max: u32,
    bytes: &[u8],
) -> Result<T, ValueError> {
    match serde_json::from_slice::<Version>(bytes)?.v {
        found if found > version_max => Err(ValueError::Later(found, version_max)),
        _ => Ok(serde_json::from_slice(bytes)?),
    }
}

/// Skips the field `v`, which was already checked.
pub(crate) fn skip_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    u32::deserialize(deserializer).map(drop)
}

/// `true` if a count is 0. Serde omits such a field.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
pub(crate) fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Serializes an instant as whole milliseconds since 1970.
///
/// All stored instants are whole milliseconds, so a node reads exactly the instant that another
/// node wrote.
pub(super) mod millis {
    use super::{Deserialize, Deserializer, Serializer, UnixNanos};
    use serde::de::Error;

    const NANOS: u64 = 1_000_000;

    pub(in crate::stored) fn serialize<S: Serializer>(
        instant: &UnixNanos,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        assert!(
            instant.get().is_multiple_of(NANOS),
            "what is stored is whole milliseconds"
        );
        serializer.serialize_u64(instant.get() / NANOS)
    }

    pub(in crate::stored) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<UnixNanos, D::Error> {
        let nanos = u64::deserialize(deserializer)?.checked_mul(NANOS);
        nanos
            .map(UnixNanos::new)
            .ok_or_else(|| D::Error::custom("an instant after the year 2554"))
    }
}

/// An instant in whole milliseconds, which serde can also serialize within an `Option` or a
/// collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct StoredInstant(#[serde(with = "millis")] pub(crate) UnixNanos);

impl StoredInstant {
    /// Returns the first whole millisecond at or after an instant.
    pub(crate) fn ceil(instant: UnixNanos) -> StoredInstant {
        StoredInstant(ceil_to_millis(instant))
    }
}

/// Returns the first whole millisecond at or after an instant. Near the end of the representable
/// range, returns the last whole millisecond in that range.
pub(crate) fn ceil_to_millis(instant: UnixNanos) -> UnixNanos {
    let past = instant.get() % 1_000_000;
    let missing = if past == 0 { 0 } else { 1_000_000 - past };
    match instant.get().checked_add(missing) {
        Some(nanos) => UnixNanos::new(nanos),
        None => instant.before(Duration::from_nanos(past)),
    }
}
