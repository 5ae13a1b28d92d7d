//! Keys, values and transactions of a coordinator.

/// The default maximum size of an etcd request in bytes (`--max-request-bytes`).
pub(crate) const REQUEST_BYTES_MAX: usize = 1_572_864;

/// A key in the coordinator. Keys are ordered bytewise.
pub type Key = String;

/// A version of the whole store. Each transaction that writes creates the next revision. The
/// revision of a key is the last revision that wrote the key, or 0 if the key does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(pub u64);

impl Revision {
    /// The revision of a key that does not exist.
    pub const ABSENT: Revision = Revision(0);

    /// Returns the revision after this one.
    #[must_use]
    pub fn next(self) -> Revision {
        Revision(
            self.0
                .checked_add(1)
                .expect("a coordinator counts its revisions in 63 bits"),
        )
    }
}

/// The id of a lease. When the lease expires, all keys that were stored under it are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lease(pub i64);

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: Key,
    /// The value.
    pub value: Vec<u8>,
    /// The revision that created the key.
    pub created: Revision,
    /// The revision that last wrote the key.
    pub modified: Revision,
}

/// A condition of a transaction. The transaction writes only if all of its conditions hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compare {
    /// Holds if the key was last written at this revision. With [`Revision::ABSENT`], holds if the
    /// key does not exist.
    Modified(Key, Revision),
    /// Holds if the key was created at this revision. With [`Revision::ABSENT`], holds if the key
    /// does not exist.
    Created(Key, Revision),
}

impl Compare {
    /// Returns the compared key.
    pub fn key(&self) -> &Key {
        match self {
            Compare::Modified(key, _) | Compare::Created(key, _) => key,
        }
    }
}

/// One write of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Stores a value, under a lease if one is given.
    Put {
        /// The key.
        key: Key,
        /// The value.
        value: Vec<u8>,
        /// The lease under which the key is stored. The store deletes the key when that lease ends.
        /// With `None`, the key stays until a transaction deletes it.
        lease: Option<Lease>,
    },
    /// Deletes a key if it exists.
    Delete(Key),
}

impl Write {
    /// Returns the key that is written or deleted.
    pub fn key(&self) -> &Key {
        match self {
            Write::Put { key, .. } | Write::Delete(key) => key,
        }
    }

    /// Creates a write that stores a value without a lease.
    pub fn put(key: impl Into<Key>, value: Vec<u8>) -> Write {
        Write::Put {
            key: key.into(),
            value,
            lease: None,
        }
    }
}

/// A range of keys to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The first key.
    pub from: Key,
    /// The end of the range, exclusive. If `None`, the range is the single key `from`.
    pub to: Option<Key>,
    /// The maximum number of keys to read, or 0 to read all.
    pub count_max: usize,
    /// `true` to read in descending order of keys.
    pub is_descending: bool,
}

impl Range {
    /// Creates a range that contains a single key.
    pub fn one(key: impl Into<Key>) -> Range {
        Range {
            from: key.into(),
            to: None,
            count_max: 1,
            is_descending: false,
        }
    }

    /// Creates a range that contains all keys with a prefix.
    ///
    /// # Panics
    /// Panics if the prefix is empty or does not end with an ASCII character.
    pub fn prefix(prefix: impl Into<Key>) -> Range {
        let from = prefix.into();
        let mut to = from.clone();
        let last = to
            .pop()
            .filter(char::is_ascii)
            .expect("a prefix ends with an ASCII character");
        to.push(char::from_u32(u32::from(last) + 1).expect("ASCII has a next character"));
        Range {
            from,
            to: Some(to),
            count_max: 0,
            is_descending: false,
        }
    }
}

/// One transaction: conditions, writes and reads. To retry it after a lost response, the caller
/// sends it again unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Transaction {
    /// The conditions. The transaction writes only if all of them hold.
    pub compare: Vec<Compare>,
    /// The writes that are done if all conditions hold.
    pub write: Vec<Write>,
    /// The ranges to read after the writes, if all conditions hold.
    pub then_read: Vec<Range>,
    /// The ranges to read if a condition does not hold. In that case, no write is done.
    pub otherwise: Vec<Range>,
}

impl Transaction {
    /// Returns an upper bound on the size of the etcd request for this transaction, in bytes.
    pub(crate) fn size(&self) -> usize {
        let compared = self.compare.iter().map(|compare| compare.key().len());
        let written = self.write.iter().map(|write| match write {
            Write::Put { key, value, .. } => key.len() + value.len(),
            Write::Delete(key) => key.len(),
        });
        let read = self.then_read.iter().chain(&self.otherwise);
        let read = read.map(|range| range.from.len() + range.to.as_ref().map_or(0, String::len));
        // Each operation needs at most 48 bytes for lengths, tags, revisions, leases and limits.
        compared
            .chain(written)
            .chain(read)
            .map(|len| len + 48)
            .sum()
    }

    /// Returns the value that the transaction stores under a key, or `None` if it does not store
    /// that key.
    pub fn value_of(&self, key: &str) -> Option<&[u8]> {
        self.write.iter().find_map(|write| match write {
            Write::Put { key: at, value, .. } if at == key => Some(value.as_slice()),
            Write::Put { .. } | Write::Delete(_) => None,
        })
    }
}

/// The outcome of a transaction whose response arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All conditions held, and the writes were done. The snapshot has the new revision, and the
    /// entries in the ranges `then_read`.
    Committed(Snapshot),
    /// A condition did not hold, so nothing was written. The snapshot has the entries in the ranges
    /// `otherwise`.
    Refused(Snapshot),
}

/// The content of the requested ranges at a single revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The revision of the store at the time of the read.
    pub revision: Revision,
    /// The entries of each range, in the order in which the ranges were requested.
    pub ranges: Vec<Vec<KeyValue>>,
    /// The cluster that answered, and its election term at that time.
    pub term: Term,
}

/// The cluster that sent a response, and its election term at that time. The term of a cluster
/// never decreases, unless the cluster was restored from a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Term {
    /// The identity of the cluster, or 0 if the coordinator has none.
    pub cluster: u64,
    /// The number of the election term, which grows with each election.
    pub term: u64,
}

impl Term {
    /// `true` if a response with this term may follow a response with the term `earlier`. Both must
    /// come from the same cluster, and the term number must not have decreased. Always `true` if
    /// the cluster of `earlier` is unknown, which means 0.
    pub fn follows(self, earlier: Term) -> bool {
        earlier.cluster == 0 || self.cluster == earlier.cluster && self.term >= earlier.term
    }
}
