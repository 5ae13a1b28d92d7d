//! The byte format of records. Each row has a checksum over its key and its content.
//!
//! Integers are big-endian, and each row begins with its version, 1.
//!
//! ```text
//! ledger        first event 16, head 16, position 8, recorded 8, 1 if more of an import follows, else 0; CRC-32C
//! commit        attempt 16, id before the first event 16, then each append: its last event 16, length 4, row (`append_row`); CRC-32C
//! request       recorded 8, last event 16, CRC-32C
//! request list  keys 16 each, CRC-32C
//! pair          attempt 16, then each anchor in the order of creation: time 8, rank 4; CRC-32C
//! externals     external ids of an anchor (`externals_row`); CRC-32C
//! conjunction   rank 4, then its report count (`report_count_row`); CRC-32C over version and rank
//! ```
//!
//! The attempt identifies the transaction that wrote the row. A writer whose response was lost
//! recognizes its own write by the attempt.

use idmint_records::conjunction::{Anchor, ExternalId, ReportCount, Tca};
use idmint_records::ledger::{EventId, EventTime, Head, KeyHash, Link};
use idmint_storage::rows::{append_row, externals_row, report_count_row};
use idmint_storage::{DoneRequest, LedgerSummary, StoredAppend};

const VERSION: u8 = 1;
const CRC_LEN: usize = 4;

/// The size in bytes of an anchor in the row of its pair of objects.
pub(super) const ANCHOR_LEN: usize = 12;

/// A number that identifies a transaction. If the transaction is sent several times, all copies
/// have the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attempt(pub(super) u128);

/// The appends of one transaction to one ledger. A commit has at least one append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Commit {
    /// The transaction that wrote the row.
    pub(super) attempt: Attempt,
    /// The id of the event that precedes the first event of the commit.
    pub(super) previous: EventId,
    /// The appends, in the order of the chain.
    pub(super) appends: Vec<StoredAppend>,
}

impl Commit {
    /// Returns the last event of this commit, which becomes the head of the ledger.
    pub(super) fn head(&self) -> Head {
        self.appends.last().expect("a commit has an append").head()
    }

    /// Returns the events with their positions in the chain.
    pub(super) fn links(&self) -> impl Iterator<Item = Link> {
        let ids = self
            .appends
            .iter()
            .flat_map(|append| append.entries.iter().map(|entry| entry.id));
        Link::chain(self.previous, self.appends[0].first_place, ids)
    }
}

/// Returns the value to store under `key` for a ledger.
pub(super) fn ledger_to_bytes(key: &str, ledger: &LedgerSummary) -> Vec<u8> {
    let LedgerSummary { genesis, head } = ledger;
    let ids = [genesis.value().to_be_bytes(), head.id.value().to_be_bytes()];
    let numbers = [
        head.place.to_be_bytes(),
        head.recorded.micros().to_be_bytes(),
    ];
    sealed(
        key,
        [
            ids.as_flattened(),
            numbers.as_flattened(),
            &[u8::from(head.is_importing)],
        ]
        .concat(),
    )
}

/// Decodes a ledger from the value that is stored under `key`. Returns `None` if the value is
/// damaged or of a later version.
pub(super) fn ledger_of_bytes(key: &str, bytes: &[u8]) -> Option<LedgerSummary> {
    let mut content = opened(key, bytes)?;
    let (genesis, id) = (take_id(&mut content)?, take_id(&mut content)?);
    let (place, recorded) = (
        u64::from_be_bytes(take(&mut content)?),
        take_time(&mut content)?,
    );
    let is_importing = match take(&mut content)? {
        [0] => false,
        [1] => true,
        _ => return None,
    };
    let head = Head {
        id,
        place,
        recorded,
        is_importing,
    };
    content
        .is_empty()
        .then_some(LedgerSummary { genesis, head })
}

/// Encodes the events that one transaction appended to a ledger. The checksum covers the content
/// and the id of the last event, but not the rest of the key.
pub(super) fn commit_to_bytes(commit: &Commit) -> Vec<u8> {
    let mut bytes = commit.attempt.0.to_be_bytes().to_vec();
    bytes.extend(commit.previous.value().to_be_bytes());
    for append in &commit.appends {
        let row = append_row::to_bytes(append);
        bytes.extend(append.head().id.value().to_be_bytes());
        bytes.extend(
            u32::try_from(row.len())
                .expect("a request is short")
                .to_be_bytes(),
        );
        bytes.extend(row);
    }
    sealed(&commit.head().id.to_string(), bytes)
}

/// Decodes the events that one transaction appended to a ledger. `last` is the id of the last one.
/// Returns `None` if the value is damaged or of a later version.
pub(super) fn commit_of_bytes(last: EventId, bytes: &[u8]) -> Option<Commit> {
    let mut rest = opened(&last.to_string(), bytes)?;
    let attempt = Attempt(u128::from_be_bytes(take(&mut rest)?));
    let previous = take_id(&mut rest)?;
    let mut appends: Vec<StoredAppend> = Vec::new();
    while !rest.is_empty() {
        let name = append_row::name(take_id(&mut rest)?);
        let len = usize::try_from(u32::from_be_bytes(take(&mut rest)?)).ok()?;
        let (row, behind) = rest.split_at_checked(len)?;
        rest = behind;
        let append = append_row::from_bytes(name, row)?;
        let follows = appends
            .last()
            .is_none_or(|before| before.head().place + 1 == append.first_place);
        (follows && append.ledger() == last.ledger()).then(|| appends.push(append))?;
    }
    let commit = Commit {
        attempt,
        previous,
        appends,
    };
    (!commit.appends.is_empty() && commit.head().id == last).then_some(commit)
}

/// Returns the value to store under `key` for a request.
pub(super) fn request_to_bytes(key: &str, done: &DoneRequest) -> Vec<u8> {
    sealed(
        key,
        [
            done.recorded.micros().to_be_bytes().as_slice(),
            &done.last.value().to_be_bytes(),
        ]
        .concat(),
    )
}

/// Decodes the request with this key hash from the value that is stored under `key`. Returns `None`
/// if the value is damaged or of a later version.
pub(super) fn request_of_bytes(key: &str, hash: KeyHash, bytes: &[u8]) -> Option<DoneRequest> {
    let mut content = opened(key, bytes)?;
    let done = DoneRequest {
        key: hash,
        recorded: take_time(&mut content)?,
        last: take_id(&mut content)?,
    };
    content.is_empty().then_some(done)
}

/// Returns the value to store under `key` for a list of idempotency keys.
pub(super) fn request_list_to_bytes(key: &str, hashes: &[KeyHash]) -> Vec<u8> {
    sealed(
        key,
        hashes
            .iter()
            .flat_map(|hash| hash.0.to_be_bytes())
            .collect(),
    )
}

/// Decodes a list of idempotency keys, which may be empty, from the value that is stored under
/// `key`. Returns `None` if the value is damaged or of a later version.
pub(super) fn request_list_of_bytes(key: &str, bytes: &[u8]) -> Option<Vec<KeyHash>> {
    let (hashes, []) = opened(key, bytes)?.as_chunks::<16>() else {
        return None;
    };
    Some(
        hashes
            .iter()
            .map(|hash| KeyHash(u128::from_be_bytes(*hash)))
            .collect(),
    )
}

/// Returns the value to store under `key` for the anchors of a pair of objects.
pub(super) fn pair_to_bytes(key: &str, attempt: Attempt, anchors: &[Anchor]) -> Vec<u8> {
    let mut content = attempt.0.to_be_bytes().to_vec();
    for Anchor { tca, rank } in anchors {
        content.extend(tca.0.to_be_bytes());
        content.extend(rank.to_be_bytes());
    }
    sealed(key, content)
}

/// Decodes the anchors of a pair of objects from the value that is stored under `key`. Returns
/// `None` if the value is damaged or of a later version.
pub(super) fn pair_of_bytes(key: &str, bytes: &[u8]) -> Option<Vec<Anchor>> {
    let mut content = opened(key, bytes)?;
    let _attempt: [u8; 16] = take(&mut content)?;
    let (anchors, []) = content.as_chunks::<ANCHOR_LEN>() else {
        return None;
    };
    let anchor = |bytes: &[u8; ANCHOR_LEN]| {
        let (tca, rank) = bytes.split_first_chunk()?;
        Some(Anchor {
            tca: Tca(i64::from_be_bytes(*tca)),
            rank: u32::from_be_bytes(rank.try_into().ok()?),
        })
    };
    anchors.iter().map(anchor).collect()
}

/// Returns the value to store under `key` for a conjunction. `rank` is the rank of its anchor among
/// the anchors of the same pair. The report count has its own checksum, because a damaged count may
/// be ignored.
pub(super) fn conjunction_to_bytes(
    key: &str,
    rank: u32,
    report_count: Option<&ReportCount>,
) -> Vec<u8> {
    let mut bytes = sealed(key, rank.to_be_bytes().to_vec());
    bytes.extend(
        report_count
            .map(report_count_row::to_bytes)
            .unwrap_or_default(),
    );
    bytes
}

/// Decodes the rank of a conjunction's anchor, and the report count, from the value that is stored
/// under `key`. Returns `None` if the rank is damaged or of a later version. If only the report
/// count is damaged, returns the rank without a count.
pub(super) fn conjunction_of_bytes(key: &str, bytes: &[u8]) -> Option<(u32, Option<ReportCount>)> {
    let (rank, report_count) = bytes.split_at_checked(1 + 4 + CRC_LEN)?;
    let rank = u32::from_be_bytes(opened(key, rank)?.try_into().ok()?);
    Some((rank, report_count_row::from_bytes(report_count)))
}

/// `true` if the row `bytes` of a conjunction has a valid checksum of its anchor. If such a row
/// cannot be decoded, a later version of this program has written it.
///
/// The anchor and the report count have a checksum each. The length of a later version's anchor is
/// unknown, so the function tries every length.
pub(super) fn is_whole_conjunction(key: &str, bytes: &[u8]) -> bool {
    (1 + CRC_LEN..=bytes.len()).any(|len| is_whole(key, &bytes[..len]))
}

/// Returns the value to store under `key` for the external ids of an anchor.
pub(super) fn externals_to_bytes(key: &str, externals: &[ExternalId]) -> Vec<u8> {
    sealed(key, externals_row::to_bytes(externals))
}

/// Decodes the external ids of an anchor from the value that is stored under `key`. Returns `None`
/// if the value is damaged or of a later version.
pub(super) fn externals_of_bytes(key: &str, bytes: &[u8]) -> Option<Vec<ExternalId>> {
    externals_row::from_bytes(opened(key, bytes)?)
}

/// Returns the bytes of a row: the version, the content, and a checksum that covers both and `key`.
pub(super) fn sealed(key: &str, content: Vec<u8>) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    bytes.extend(content);
    let crc = crc_of(key, &bytes);
    bytes.extend(crc.to_be_bytes());
    bytes
}

/// Returns the content of a row that [`sealed`] made for `key`. Returns `None` if the row is
/// damaged or of a later version. [`is_whole`] distinguishes these two cases.
pub(super) fn opened<'a>(key: &str, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let (content, _) = bytes.split_last_chunk::<CRC_LEN>()?;
    content
        .strip_prefix(&[VERSION])
        .filter(|_| is_whole(key, bytes))
}

/// `true` if the row that is stored under `key` has a valid checksum. If such a row cannot be
/// decoded, a later version of this program has written it.
pub(super) fn is_whole(key: &str, bytes: &[u8]) -> bool {
    // The checksum covers the content and the key. But for events of a ledger, it covers only the
    // last part of the key, which is the last event's id. The kind of the row is unknown here, so
    // accept both.
    let names = [Some(key), key.rsplit('/').next()];
    let Some((content, crc)) = bytes.split_last_chunk::<CRC_LEN>() else {
        return false;
    };
    let is_of = |name: &str| crc_of(name, content) == u32::from_be_bytes(*crc);
    names.into_iter().flatten().any(is_of)
}

fn crc_of(key: &str, content: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(key.as_bytes()), content)
}

pub(super) fn take<const LEN: usize>(bytes: &mut &[u8]) -> Option<[u8; LEN]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}

fn take_id(bytes: &mut &[u8]) -> Option<EventId> {
    EventId::from_value(u128::from_be_bytes(take(bytes)?))
}

pub(super) fn take_time(bytes: &mut &[u8]) -> Option<EventTime> {
    EventTime::from_micros(u64::from_be_bytes(take(bytes)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use idmint_core::time::UnixNanos;
    use idmint_records::conjunction::Seen;
    use idmint_storage::samples::{NOW, append, assert_only_whole, create, plan};

    #[test]
    fn rows_are_read_as_they_were_written_and_only_whole() {
        let genesis = plan(&create("genesis", 1), None, NOW);
        let two = plan(
            &append(genesis.ledger(), &["a", "b"], 2),
            Some(genesis.head()),
            NOW,
        );
        let ledger = LedgerSummary {
            genesis: genesis.head().id,
            head: two.head(),
        };
        let bytes = ledger_to_bytes("k", &ledger);
        assert_eq!(ledger_of_bytes("k", &bytes), Some(ledger));
        assert_eq!(ledger_of_bytes("other", &bytes), None);
        assert_only_whole(&bytes, |bytes| ledger_of_bytes("k", bytes));

        let done = DoneRequest {
            key: KeyHash(9),
            recorded: two.recorded,
            last: two.head().id,
        };
        let bytes = request_to_bytes("k", &done);
        assert_eq!(request_of_bytes("k", KeyHash(9), &bytes), Some(done));
        assert_only_whole(&bytes, |bytes| request_of_bytes("k", KeyHash(9), bytes));

        let bytes = request_list_to_bytes("k", &[KeyHash(1), KeyHash(u128::MAX)]);
        assert_eq!(
            request_list_of_bytes("k", &bytes),
            Some(vec![KeyHash(1), KeyHash(u128::MAX)])
        );
        assert_only_whole(&bytes, |bytes| request_list_of_bytes("k", bytes));

        let anchors = [
            Anchor {
                tca: Tca(-5),
                rank: 0,
            },
            Anchor {
                tca: Tca(5_000_000),
                rank: 7,
            },
        ];
        let bytes = pair_to_bytes("k", Attempt(3), &anchors);
        assert_eq!(pair_of_bytes("k", &bytes), Some(anchors.to_vec()));
        assert_only_whole(&bytes, |bytes| pair_of_bytes("k", bytes));

        let externals = ["A-1", "é"].map(|text| ExternalId::new(text).expect("short"));
        let bytes = externals_to_bytes("k", &externals);
        assert_eq!(externals_of_bytes("k", &bytes), Some(externals.to_vec()));
        assert_only_whole(&bytes, |bytes| externals_of_bytes("k", bytes));
    }

    #[test]
    fn a_commit_is_read_as_it_was_written_and_only_whole() {
        let genesis = plan(&create("genesis", 1), None, NOW);
        let two = plan(
            &append(genesis.ledger(), &["a", "b"], 2),
            Some(genesis.head()),
            NOW,
        );
        let commit = Commit {
            attempt: Attempt(0),
            previous: genesis.previous(),
            appends: [&genesis, &two].map(StoredAppend::of).to_vec(),
        };
        let links: Vec<Link> = genesis.links().chain(two.links()).collect();
        assert_eq!(commit.links().collect::<Vec<_>>(), links);
        let (last, bytes) = (two.head().id, commit_to_bytes(&commit));
        assert_eq!(commit_of_bytes(last, &bytes), Some(commit));
        assert_eq!(
            commit_of_bytes(genesis.head().id, &bytes),
            None,
            "a row under another name"
        );
        assert_only_whole(&bytes, |bytes| commit_of_bytes(last, bytes));
    }

    #[test]
    fn the_hint_of_a_conjunction_may_be_damaged_and_its_rank_may_not() {
        let seen = |at| Seen {
            at: UnixNanos::new(at),
            tca: Tca(7),
        };
        let report_count = ReportCount::of(seen(5)).followed_by(ReportCount::of(seen(6)));
        let bytes = conjunction_to_bytes("k", 3, Some(&report_count));
        assert_eq!(
            conjunction_of_bytes("k", &bytes),
            Some((3, Some(report_count)))
        );
        assert_eq!(conjunction_of_bytes("k", &bytes[..9]), Some((3, None)));
        assert_only_whole(&bytes[..9], |bytes| conjunction_of_bytes("k", bytes));
        let mut flipped = bytes;
        *flipped.last_mut().expect("not empty") ^= 1;
        assert_eq!(conjunction_of_bytes("k", &flipped), Some((3, None)));
    }

    #[test]
    fn a_conjunction_of_a_later_version_is_told_from_a_damaged_one() {
        let seen = Seen {
            at: UnixNanos::new(5),
            tca: Tca(7),
        };
        let count = report_count_row::to_bytes(&ReportCount::of(seen));
        for (content_len, count) in [(5, &count[..]), (5, &[]), (9, &count), (9, &[])] {
            let mut later = vec![VERSION + 1; content_len];
            later.extend(crc_of("k", &later).to_be_bytes());
            later.extend(count);
            assert_eq!(conjunction_of_bytes("k", &later), None);
            assert!(is_whole_conjunction("k", &later));
            assert!(!is_whole_conjunction("other", &later));
            for bit in 0..8 * (content_len + CRC_LEN) {
                let mut flipped = later.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert!(!is_whole_conjunction("k", &flipped), "bit {bit}");
            }
        }
    }
}
