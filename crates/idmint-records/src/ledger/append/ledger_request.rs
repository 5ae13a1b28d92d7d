//! Requests to create a ledger or append to one. A request with an idempotency key has a mark, by
//! which it is recognized if it is sent again.

use sha2::{Digest, Sha256};

use crate::ledger::events::{Event, EventId, EventTime, LedgerId};

/// The hashes of a request's idempotency key and content. They identify a request to a ledger or to
/// a series of numbers, so that a repeated request takes effect only once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestMark {
    /// The hash of the caller's idempotency key.
    pub key: KeyHash,
    /// The SHA-256 of the content of the request, such as its events. Using the same idempotency
    /// key for another content is an error.
    pub digest: [u8; 32],
}

/// The hash of an idempotency key: the first 128 bits of a SHA-256. The hash also covers the ledger
/// or the series of numbers, so a key can be used again for another ledger or series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub u128);

impl KeyHash {
    /// Hashes the idempotency key of a request to append to `ledger`. `ledger` is `None` for a
    /// request that creates a ledger.
    pub fn of(ledger: Option<LedgerId>, key: &str) -> KeyHash {
        let scope = match ledger {
            Some(ledger) => [1]
                .into_iter()
                .chain(ledger.bits().to_be_bytes())
                .collect::<Vec<u8>>(),
            None => vec![0],
        };
        let hash: [u8; 32] = Sha256::new()
            .chain_update(scope)
            .chain_update(key)
            .finalize()
            .into();
        KeyHash(u128::from_be_bytes(
            *hash.first_chunk().expect("16 of 32 bytes"),
        ))
    }
}

/// Returns a single SHA-256 over all events, which depends on the order of the events, and over the
/// name of the import part. Without a part, the digest covers only the events.
pub fn digest_of(events: &[Event], import: Option<ImportPart>) -> [u8; 32] {
    events
        .iter()
        .fold(Sha256::new(), |hash, event| {
            hash.chain_update(event.digest())
        })
        .chain_update(import.map_or("", ImportPart::name))
        .finalize()
        .into()
}

/// A part of a ledger that is imported from another system. The events of all parts must be in the
/// order of their timestamps.
///
/// No other event can be appended between two parts. Such an event would get the current time, and
/// the older events of the next part could not follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportPart {
    /// A part that is followed by more parts. Until the last part of the import, only parts of the
    /// import can be appended to the ledger.
    More,
    /// A part that continues an import and is followed by more parts. The part is refused if the
    /// ledger is not being imported. This avoids beginning an import by mistake, which would block
    /// all other events.
    Further,
    /// The last part of the import. After this part, other events can be appended again.
    Last,
}

impl ImportPart {
    /// The parts of an import that a caller can name in a request, with their names.
    pub const NAMED: [(&'static str, ImportPart); 2] =
        [("more", ImportPart::More), ("last", ImportPart::Last)];

    /// Returns the name of the part in a request.
    pub fn name(self) -> &'static str {
        match self {
            ImportPart::More | ImportPart::Further => "more",
            ImportPart::Last => "last",
        }
    }
}

/// A request to create a ledger, or to append to one.
#[derive(Debug)]
pub enum LedgerRequest {
    /// A request to create the ledger that begins with the event `genesis`.
    ///
    /// Without a mark, the event must have a timestamp. The id of the ledger is then the same
    /// whenever the request is sent, so a request that is sent again finds the ledger that it has
    /// already created.
    Create {
        /// The first event of the ledger.
        genesis: Event,
        /// The mark that identifies the request if it is sent again. It may be `None` only if the
        /// event has a timestamp, so that a repeated request finds the existing ledger by its id.
        mark: Option<RequestMark>,
        /// The part of an import to which this event belongs, or `None` if it is not imported.
        import: Option<ImportPart>,
    },
    /// A request to append events to a ledger.
    Append {
        /// The id of the ledger.
        ledger: LedgerId,
        /// The events to append. Never empty.
        events: Vec<Event>,
        /// The id that the caller expects the ledger's last event to have. The request is refused
        /// if the last event has another id. With `None`, the id is not checked.
        expected_previous: Option<EventId>,
        /// The mark that identifies the request if it is sent again.
        mark: RequestMark,
        /// The part of an import to which these events belong, or `None` if they are not imported.
        import: Option<ImportPart>,
    },
}

impl LedgerRequest {
    /// Returns the ledger to append to. For a request that creates a ledger, returns the ledger
    /// that the request would create at `now`.
    pub fn ledger_at(&self, now: EventTime) -> LedgerId {
        match self {
            LedgerRequest::Create { genesis, .. } => {
                LedgerId::of_genesis(genesis, genesis.timestamp().unwrap_or(now))
            }
            LedgerRequest::Append { ledger, .. } => *ledger,
        }
    }

    /// Returns `true` if the id of the ledger to create depends on the current time.
    pub fn ledger_depends_on_time(&self) -> bool {
        matches!(self, LedgerRequest::Create { genesis, .. } if genesis.timestamp().is_none())
    }

    /// Returns the mark that identifies the request if it is sent again.
    pub fn mark(&self) -> Option<RequestMark> {
        match self {
            LedgerRequest::Create { mark, .. } => *mark,
            LedgerRequest::Append { mark, .. } => Some(*mark),
        }
    }

    /// Returns which part of an import this request is, or `None` if the request does not belong to
    /// an import.
    pub fn import(&self) -> Option<ImportPart> {
        match self {
            LedgerRequest::Create { import, .. } | LedgerRequest::Append { import, .. } => *import,
        }
    }

    /// Returns the number of events in the request.
    pub fn event_count(&self) -> usize {
        match self {
            LedgerRequest::Create { .. } => 1,
            LedgerRequest::Append { events, .. } => events.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_tells_the_last_part_of_an_import_from_other_requests() {
        let digest = |import| digest_of(&[], import);
        let [plain, more, last] =
            [None, Some(ImportPart::More), Some(ImportPart::Last)].map(digest);
        assert!(plain != more && plain != last && more != last);
        assert_eq!(digest(Some(ImportPart::Further)), more);
        // Requests without a part have kept this digest since the first version.
        let of_events: [u8; 32] = Sha256::new().finalize().into();
        assert_eq!(plain, of_events);
    }
}
