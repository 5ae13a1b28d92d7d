//! A request to create a ledger or to append to one, and the mark by which a repeated request is recognized.

use sha2::{Digest, Sha256};

use crate::ledger::events::{Event, EventId, EventTime, LedgerId};

/// Identifies a request, so that it takes effect once however often it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestMark {
    /// The hash of the idempotency key that the caller chose.
    pub key: KeyHash,
    /// SHA-256 over the events that the caller sent: the same key with other events is an error.
    pub digest: [u8; 32],
}

/// The hash of a caller's key: the first 128 bits of SHA-256 over the ledger and the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub u128);

impl KeyHash {
    /// The hash of a key for requests to `ledger`, or for requests that create a ledger.
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

/// One SHA-256 over events in their order.
pub fn digest_of(events: &[Event]) -> [u8; 32] {
    events
        .iter()
        .fold(Sha256::new(), |hash, event| {
            hash.chain_update(event.digest())
        })
        .finalize()
        .into()
}

/// A part of a ledger that is brought from elsewhere, events in the order of their timestamps. An event that came between
/// two parts would have the time of now, and no older one could follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportPart {
    /// More parts follow: until the last one nothing else is appended.
    More,
    /// The same, of an import that has begun: a ledger that takes other events is not kept from doing so.
    Further,
    /// The last part.
    Last,
}

impl ImportPart {
    /// What a request can say.
    pub const NAMED: [(&'static str, ImportPart); 2] =
        [("more", ImportPart::More), ("last", ImportPart::Last)];

    /// Its name in a request.
    pub fn name(self) -> &'static str {
        match self {
            ImportPart::More | ImportPart::Further => "more",
            ImportPart::Last => "last",
        }
    }
}

/// A request to change a ledger.
#[derive(Debug)]
pub enum LedgerRequest {
    /// Create the ledger that begins with this event. Without a mark the event must have a timestamp: a repetition then
    /// finds the ledger it made before.
    Create {
        /// The first event.
        genesis: Event,
        /// Identifies the request.
        mark: Option<RequestMark>,
        /// Whether it is the first part of an import.
        import: Option<ImportPart>,
    },
    /// Append events to a ledger.
    Append {
        /// The ledger.
        ledger: LedgerId,
        /// The events, at least one.
        events: Vec<Event>,
        /// The head that the caller knows; another one is refused.
        expected_previous: Option<EventId>,
        /// Identifies the request.
        mark: RequestMark,
        /// Whether it is a part of an import.
        import: Option<ImportPart>,
    },
}

impl LedgerRequest {
    /// The ledger to append to, or the one that would be created at that time.
    pub fn ledger_at(&self, now: EventTime) -> LedgerId {
        match self {
            LedgerRequest::Create { genesis, .. } => {
                LedgerId::of_genesis(genesis, genesis.timestamp().unwrap_or(now))
            }
            LedgerRequest::Append { ledger, .. } => *ledger,
        }
    }

    /// Whether the id of the created ledger depends on the time of its creation.
    pub fn ledger_depends_on_time(&self) -> bool {
        matches!(self, LedgerRequest::Create { genesis, .. } if genesis.timestamp().is_none())
    }

    /// The mark that identifies the request.
    pub fn mark(&self) -> Option<RequestMark> {
        match self {
            LedgerRequest::Create { mark, .. } => *mark,
            LedgerRequest::Append { mark, .. } => Some(*mark),
        }
    }

    /// The part of an import that it is.
    pub fn import(&self) -> Option<ImportPart> {
        match self {
            LedgerRequest::Create { import, .. } | LedgerRequest::Append { import, .. } => *import,
        }
    }

    /// The number of events.
    pub fn event_count(&self) -> usize {
        match self {
            LedgerRequest::Create { .. } => 1,
            LedgerRequest::Append { events, .. } => events.len(),
        }
    }
}
