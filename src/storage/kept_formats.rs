//! What makes the ids of a format comparable, remembered from start to start.
//!
//! An id is unique among those minted with the same fields, tick, epoch, rule and first worker, by the same number
//! of slots; and its text among those that the same encoding wrote in the same way. So these are kept at first sight, and a start
//! that would mint or write by others under the same name is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use super::failure::{FailureKind, StoreError};

/// Between the names of a format and of one of its encodings, neither of which has one.
const OF_ENCODING: char = '/';

/// What is kept of one format, or of one of its encodings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFormat {
    /// The format's name; for an encoding `/` and its name follow.
    pub name: String,
    /// What makes its ids comparable, as texts that people can compare: `tick` is `1ms`, `epoch` is
    /// `2015-01-01T00:00:00Z`.
    pub description: BTreeMap<String, String>,
    /// Whether ids of it are minted. One that is only read is compared if it was kept, and is not kept itself.
    pub is_minted: bool,
}

impl KeptFormat {
    /// What is kept of an encoding of `format`: the digest of how it writes numbers.
    ///
    /// It has a name of its own beside that of its format, so that programs which know formats alone pass it over, and an
    /// encoding of which nothing is kept yet joins.
    pub fn of_encoding(format: &KeptFormat, encoding: &str, digest: String) -> KeptFormat {
        KeptFormat {
            name: format!("{}{OF_ENCODING}{encoding}", format.name),
            description: BTreeMap::from([("digest of its texts".to_owned(), digest)]),
            is_minted: format.is_minted,
        }
    }

    /// Whether what is kept under this name is of a format as a whole.
    pub fn is_name_of_format(name: &str) -> bool {
        !name.contains(OF_ENCODING)
    }

    /// Compares it with what was kept of its name.
    ///
    /// # Errors
    /// [`FormatsError::Changed`].
    pub fn compare(&self, kept: &BTreeMap<String, String>) -> Result<(), FormatsError> {
        let differences = differences(kept, &self.description);
        if differences.is_empty() {
            return Ok(());
        }
        Err(FormatsError::Changed {
            name: self.name.clone(),
            differences,
        })
    }
}

/// One thing that was kept as one text and is configured as another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The key of the description.
    pub key: String,
    /// The text kept, if there was one.
    pub kept: Option<String>,
    /// The text now, if there is one.
    pub now: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "(nothing)".to_owned());
        write!(
            f,
            "{}: kept {}, now {}",
            self.key,
            text(&self.kept),
            text(&self.now)
        )
    }
}

/// Why the configured formats are refused.
#[derive(Debug, thiserror::Error)]
pub enum FormatsError {
    /// A format of this name minted ids that its new definition could repeat. Nothing was written.
    #[error("{}", changed(.name, .differences))]
    Changed {
        /// The name under which it is kept.
        name: String,
        /// What differs, sorted by key; at least one.
        differences: Vec<Difference>,
    },
    /// Worker numbers are dealt out by the number of slots, so another number deals them anew. Nothing was written.
    #[error(
        "worker.slots was {kept} and is {now}; set worker.slots = {kept}; docs/OPERATIONS.md says how to change it"
    )]
    SlotsChanged {
        /// The number kept.
        kept: u32,
        /// The number configured.
        now: u32,
    },
    /// This etcd hands out other slots of its namespace than this node takes. Nothing was written.
    #[error(
        "cluster.slots: this etcd hands out the slots {kept} of worker.slots, and this node would lease one of {now}; set \
         cluster.slots = \"{kept}\", or name the etcd of the other region in etcd.endpoints"
    )]
    ShareChanged {
        /// The slots kept.
        kept: String,
        /// The slots configured.
        now: String,
    },
    /// The store is damaged or refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl FormatsError {
    /// What kind of failure this is.
    pub fn failure_kind(&self) -> FailureKind {
        match self {
            Self::Changed { .. } | Self::SlotsChanged { .. } | Self::ShareChanged { .. } => {
                FailureKind::Disagrees
            }
            Self::Store(error) => error.failure_kind(),
        }
    }
}

/// Where two descriptions differ, sorted by key.
pub(super) fn differences(
    kept: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> Vec<Difference> {
    let keys: BTreeSet<&String> = kept.keys().chain(now.keys()).collect();
    keys.into_iter()
        .filter(|key| kept.get(*key) != now.get(*key))
        .map(|key| Difference {
            key: key.clone(),
            kept: kept.get(key).cloned(),
            now: now.get(key).cloned(),
        })
        .collect()
}

fn changed(name: &str, differences: &[Difference]) -> String {
    let lines = lines(differences);
    match name.split_once(OF_ENCODING) {
        None => format!(
            "format \"{name}\" is not what it was when it minted its first ids:\n{lines}give the changed format a new name, or undo \
             the change"
        ),
        Some((format, encoding)) => format!(
            "encoding \"{encoding}\" of format \"{format}\" does not write numbers as it did when it wrote its first ids, so one text \
             could be two ids:\n{lines}give the changed encoding a name of its own, or undo the change of its kind, alphabet, case, \
             salt, prefix or length"
        ),
    }
}

fn lines(differences: &[Difference]) -> String {
    differences
        .iter()
        .fold(String::new(), |mut lines, difference| {
            writeln!(lines, "  {difference}").expect("a text can be written to");
            lines
        })
}
