//! The stored record of a slot's holder.

use serde::{Deserialize, Serialize};

use super::value::{self, ValueError, millis};
use crate::nonce::Nonce;
use idmint_core::time::UnixNanos;

/// The name of the row that stores the hold on numbers.
pub(crate) const HOLD_ROW: &str = "number-hold";

/// The name of the row that stores a closed series of numbers, which issues no more numbers.
pub(crate) const CLOSED_ROW: &str = "number-closed";

/// The names of the kinds of rows that this version can read but some earlier versions cannot,
/// separated by spaces. A process announces these names under a separate key, because earlier
/// versions reject a [`SlotRecord`] with an additional field.
pub(crate) const KNOWN_ROWS: &str = "number-hold number-closed";

/// The process that holds a slot. The record is deleted when the lease of the process ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SlotRecord {
    #[serde(
        rename = "v",
        skip_serializing,
        deserialize_with = "value::skip_version"
    )]
    version: (),
    /// The nonce of the process.
    pub(crate) instance: Nonce,
    /// The name of the machine. Together with `addr`, it identifies the node across restarts.
    pub(crate) node: String,
    /// The address on which the process listens.
    pub(crate) addr: String,
    /// The time at which the process took the slot, according to its own clock. A whole number of
    /// milliseconds.
    #[serde(rename = "since_ms", with = "millis")]
    pub(crate) since: UnixNanos,
}

impl SlotRecord {
    pub(crate) fn new(instance: Nonce, node: &str, addr: &str, now: UnixNanos) -> SlotRecord {
        let since = value::ceil_to_millis(now);
        SlotRecord {
            version: (),
            instance,
            node: node.to_owned(),
            addr: addr.to_owned(),
            since,
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        value::write(self)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<SlotRecord, ValueError> {
        value::read(bytes)
    }
}
