//! The stored record of a slot's horizon, and of the process that wrote it.

use serde::{Deserialize, Serialize};

use super::value::{self, ValueError, millis};
use crate::nonce::Nonce;
use idmint_core::time::UnixNanos;

/// The stored horizon of a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HorizonRecord {
    #[serde(
        rename = "v",
        skip_serializing,
        deserialize_with = "value::skip_version"
    )]
    version: (),
    /// The slot's horizon. No node has minted ids in the slot for this instant or a later one. A
    /// whole number of milliseconds.
    #[serde(rename = "h_ms", with = "millis")]
    pub(crate) horizon: UnixNanos,
    /// The nonce of the process that wrote the horizon.
    pub(crate) instance: Nonce,
    /// The nonce of the request that wrote this record. A node that got no response to the request
    /// recognizes its own write by this nonce.
    pub(crate) attempt: Nonce,
    /// The writer's clock reading, rounded up to whole milliseconds.
    #[serde(rename = "wall_ms", with = "millis")]
    pub(crate) clock: UnixNanos,
}

impl HorizonRecord {
    pub(crate) fn new(
        horizon: UnixNanos,
        instance: Nonce,
        attempt: Nonce,
        now: UnixNanos,
    ) -> HorizonRecord {
        HorizonRecord {
            version: (),
            horizon,
            instance,
            attempt,
            clock: value::ceil_to_millis(now),
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        value::write(self)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<HorizonRecord, ValueError> {
        value::read(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_was_written_and_nothing_else_is() {
        let record = HorizonRecord::new(
            UnixNanos::from_seconds(9),
            Nonce::new(1),
            Nonce::new(2),
            UnixNanos::new(1),
        );
        let text = String::from_utf8(record.to_bytes()).expect("JSON");
        assert_eq!(
            text,
            "{\"v\":1,\"h_ms\":9000,\"instance\":\"00000000000000000000000000000001\",\
             \"attempt\":\"00000000000000000000000000000002\",\"wall_ms\":1}"
        );
        assert_eq!(
            HorizonRecord::from_bytes(text.as_bytes()).expect("read"),
            record
        );
        let newer = text
            .replace("\"v\":1", "\"v\":2")
            .replace("wall_ms", "since");
        assert!(matches!(
            HorizonRecord::from_bytes(newer.as_bytes()),
            Err(ValueError::Later(2, 1))
        ));
        for (part, other) in [
            ("\"v\":1,", ""),
            ("\"h_ms\":9000,", ""),
            ("9000", "-1"),
            ("9000", "9000.5"),
            ("9000", "18446744073709551"),
            ("\"wall_ms\":1", "\"wall_ms\":1,\"more\":0"),
            ("0002\"", "002\""),
            ("0002\"", "000G\""),
        ] {
            let wrong = text.replacen(part, other, 1);
            assert_ne!(wrong, text, "{part}");
            assert!(
                HorizonRecord::from_bytes(wrong.as_bytes()).is_err(),
                "{wrong}"
            );
        }
    }
}
