//! Who holds a slot.

use serde::{Deserialize, Serialize};

use super::value::{self, ValueError, millis};
use crate::cluster::nonce::Nonce;
use crate::time::UnixNanos;

/// The process that holds a slot. It is there for as long as its lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::cluster) struct SlotRecord {
    #[serde(
        rename = "v",
        skip_serializing,
        deserialize_with = "value::skip_version"
    )]
    version: (),
    /// The process.
    pub(in crate::cluster) instance: Nonce,
    /// Its machine, for people.
    pub(in crate::cluster) node: String,
    /// Where it listens.
    pub(in crate::cluster) addr: String,
    /// Since when it has the slot, by its own clock; whole milliseconds.
    #[serde(rename = "since_ms", with = "millis")]
    pub(in crate::cluster) since: UnixNanos,
}

impl SlotRecord {
    pub(in crate::cluster) fn new(
        instance: Nonce,
        node: &str,
        addr: &str,
        now: UnixNanos,
    ) -> SlotRecord {
        let since = value::ceil_to_millis(now);
        SlotRecord {
            version: (),
            instance,
            node: node.to_owned(),
            addr: addr.to_owned(),
            since,
        }
    }

    pub(in crate::cluster) fn to_bytes(&self) -> Vec<u8> {
        value::write(self)
    }

    pub(in crate::cluster) fn from_bytes(bytes: &[u8]) -> Result<SlotRecord, ValueError> {
        value::read(bytes)
    }
}
