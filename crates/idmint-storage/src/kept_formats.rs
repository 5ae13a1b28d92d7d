//! The properties on which the uniqueness of a format's ids depends. The properties are stored, and
//! compared at each start.
//!
//! Two ids of a format are guaranteed to differ only if both were minted with equal fields, tick,
//! epoch, rule, first worker and number of slots. Their texts are guaranteed to differ only if the
//! encoding was not changed in between. So the store keeps these properties when a format is first
//! used. A start is refused if it would mint or write ids of a stored format differently.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use super::failure::{FailureKind, StoreError};

/// Separates the name of a format from the name of its encoding, as in `<format>/<encoding>`.
/// Neither name can contain this character.
const OF_ENCODING: char = '/';

/// The properties of an id format or of an encoding that must not change between starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFormat {
    /// The name of the format, followed by `/` and the name of the encoding if these are the
    /// properties of an encoding.
    pub name: String,
    /// The properties of the format, each as a name and a text. For example, `tick` is `1ms` and
    /// `epoch` is `2015-01-01T00:00:00Z`.
    pub description: BTreeMap<String, String>,
    /// `true` if ids of the format are minted. Only the properties of minted formats are stored. If
    /// a format is only decoded, its properties are compared with the stored ones, if any.
    pub is_minted: bool,
}

impl KeptFormat {
    /// Returns the properties to store for an encoding of `format`. Their only content is a digest
    /// over the texts that the encoding writes.
    ///
    /// The properties of an encoding have their own row, `<format>/<encoding>`. The row is added
    /// when the encoding is first used. Older programs ignore it, because they only know formats.
    pub fn of_encoding(format: &KeptFormat, encoding: &str, digest: String) -> KeptFormat {
        KeptFormat {
            name: format!("{}{OF_ENCODING}{encoding}", format.name),
            description: BTreeMap::from([("digest of its texts".to_owned(), digest)]),
            is_minted: format.is_minted,
        }
    }

    /// `true` if `name` is the name of a format, and not the name of an encoding of a format.
    pub fn is_name_of_format(name: &str) -> bool {
        !name.contains(OF_ENCODING)
    }

    /// Compares the properties of this format with `kept`, the properties that are stored under its
    /// name.
    ///
    /// # Errors
    /// Returns [`FormatsError::Changed`] if a property differs.
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

/// One property of a format for which the stored text differs from the configured text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The name of the property.
    pub key: String,
    /// The stored text, or `None` if the property is not stored.
    pub kept: Option<String>,
    /// The configured text, or `None` if the property is not configured.
    pub now: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "(nothing)".to_owned());
        write!(
            f,
            "{}: stored {}, configured {}",
            self.key,
            text(&self.kept),
            text(&self.now)
        )
    }
}

/// The reason why the configured formats are refused.
#[derive(Debug, thiserror::Error)]
pub enum FormatsError {
    /// The definition of a format has changed. The new definition could mint ids again that the
    /// stored definition has already minted. No data was written.
    #[error("{}", changed(.name, .differences))]
    Changed {
        /// The name under which the format is stored.
        name: String,
        /// The differences, sorted by property. Never empty.
        differences: Vec<Difference>,
    },
    /// The configured number of slots differs from the stored one, so the nodes would get other
    /// worker numbers. No data was written.
    #[error(
        "worker.slots is {now}, but earlier ids were minted with {kept}; set worker.slots = {kept}; \
         docs/OPERATIONS.md says how to change it"
    )]
    SlotsChanged {
        /// The stored number of slots.
        kept: u32,
        /// The configured number of slots.
        now: u32,
    },
    /// The configured range of slots is not the range that the nodes of this etcd share. No data
    /// was written.
    #[error(
        "cluster.slots is \"{now}\", but the nodes of this etcd share the slots {kept}; set cluster.slots = \
         \"{kept}\", or name the etcd of the other region in etcd.endpoints"
    )]
    ShareChanged {
        /// The range of slots that etcd hands out.
        kept: String,
        /// The range of slots in the configuration.
        now: String,
    },
    /// The store is damaged, or cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl FormatsError {
    /// Returns the kind of failure, which determines the operator's next step.
    pub fn failure_kind(&self) -> FailureKind {
        match self {
            Self::Changed { .. } | Self::SlotsChanged { .. } | Self::ShareChanged { .. } => {
                FailureKind::Disagrees
            }
            Self::Store(error) => error.failure_kind(),
        }
    }
}

/// Returns the differences between two descriptions of a format, sorted by the name of the
/// property.
pub fn differences(
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
            "format \"{name}\" has changed since it minted its first ids:\n{lines}give the changed format a new name, or undo \
             the change"
        ),
        Some((format, encoding)) => format!(
            "encoding \"{encoding}\" of format \"{format}\" has changed since its first ids were written, so one text \
             could mean two ids:\n{lines}give the changed encoding a name of its own, or undo the change of its kind, \
             alphabet, case, salt, prefix or length"
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
