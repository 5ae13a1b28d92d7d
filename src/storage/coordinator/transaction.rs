//! Keys, values and transactions of a coordinator.

/// A key. Keys are in the order of their bytes.
pub type Key = String;

/// A point in the history of a coordinator: each transaction that writes makes the next one. As the revision of a key, the
/// one that wrote it; 0 of a key that there is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(pub u64);

impl Revision {
    /// The revision of a key that there is not.
    pub const ABSENT: Revision = Revision(0);

    /// The one after it.
    #[must_use]
    pub fn next(self) -> Revision {
        Revision(
            self.0
                .checked_add(1)
                .expect("a coordinator counts its revisions in 63 bits"),
        )
    }
}

/// The time for which keys are kept unless it is begun anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lease(pub i64);

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyValue {
    /// Where it is.
    pub key: Key,
    /// What is there.
    pub value: Vec<u8>,
    /// The revision that created it.
    pub created: Revision,
    /// The revision that wrote it last.
    pub modified: Revision,
}

/// What has to hold for a transaction to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compare {
    /// The key was written last by this revision; [`Revision::ABSENT`]: there is none.
    Modified(Key, Revision),
    /// The key was created by this revision; [`Revision::ABSENT`]: there is none.
    Created(Key, Revision),
}

impl Compare {
    /// What is compared.
    pub fn key(&self) -> &Key {
        match self {
            Compare::Modified(key, _) | Compare::Created(key, _) => key,
        }
    }
}

/// One write of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Puts a value, under a lease if one is given.
    Put {
        /// Where.
        key: Key,
        /// What.
        value: Vec<u8>,
        /// Deleted when this ends.
        lease: Option<Lease>,
    },
    /// Deletes a key, if there is one.
    Delete(Key),
}

impl Write {
    /// A value that no lease takes away.
    pub fn put(key: impl Into<Key>, value: Vec<u8>) -> Write {
        Write::Put {
            key: key.into(),
            value,
            lease: None,
        }
    }
}

/// Keys to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The first key that counts.
    pub from: Key,
    /// The first key after them; `None`: `from` alone.
    pub to: Option<Key>,
    /// How many at most; 0: all.
    pub count_max: usize,
    /// The greatest keys first.
    pub is_descending: bool,
}

impl Range {
    /// One key.
    pub fn one(key: impl Into<Key>) -> Range {
        Range {
            from: key.into(),
            to: None,
            count_max: 1,
            is_descending: false,
        }
    }

    /// Every key that begins so. The prefix ends with an ASCII character.
    ///
    /// # Panics
    /// When the prefix is empty, or ends with another character.
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

/// What is to be compared, written and read. Sent again it is the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Transaction {
    /// All of them have to hold.
    pub compare: Vec<Compare>,
    /// Done if they do.
    pub write: Vec<Write>,
    /// Read after that.
    pub then_read: Vec<Range>,
    /// Read if they do not.
    pub otherwise: Vec<Range>,
}

impl Transaction {
    /// What it writes under a key.
    pub fn value_of(&self, key: &str) -> Option<&[u8]> {
        self.write.iter().find_map(|write| match write {
            Write::Put { key: at, value, .. } if at == key => Some(value.as_slice()),
            Write::Put { .. } | Write::Delete(_) => None,
        })
    }
}

/// What became of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was written, by the revision of this snapshot, which is of what was to be read then.
    Committed(Snapshot),
    /// A comparison failed and nothing was written; this is what there is instead.
    Refused(Snapshot),
}

/// What there was at one revision: the entries of each range that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The revision of the store.
    pub revision: Revision,
    /// One list a range, in their order.
    pub ranges: Vec<Vec<KeyValue>>,
}
