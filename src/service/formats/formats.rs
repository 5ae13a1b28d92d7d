//! Every format of this program, by name and in order.

use std::cmp::Ordering;
use std::sync::Arc;

use super::served_format::ServedFormat;

/// The formats of a program.
#[derive(Debug)]
pub struct Formats {
    in_order: Vec<Arc<ServedFormat>>,
    /// Sorted by [`shortlex`]. Searching halves takes a third of the instructions of a map of the standard library.
    by_name: Vec<(String, Arc<ServedFormat>)>,
    /// The names of those that are off.
    off: Vec<String>,
}

/// No format that is on has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownFormat {
    /// There is none of this name.
    #[error("format {name:?} is not one of {known}")]
    NotThere {
        /// As asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The format of this name is off.
    #[error(
        "format {name:?} is off: formats.{name}.enabled = true turns it on, or its name in formats.enabled where that is set"
    )]
    Off {
        /// As asked for.
        name: String,
    },
}

impl UnknownFormat {
    /// That none of these has this name.
    pub fn among<'a>(names: impl Iterator<Item = &'a str>, name: &str) -> UnknownFormat {
        UnknownFormat::NotThere {
            name: name.to_owned(),
            known: names.collect::<Vec<_>>().join(", "),
        }
    }
}

/// The order of texts by length, and of those of one length by letters: most comparisons read no letter.
fn shortlex(one: &str, other: &str) -> Ordering {
    one.len().cmp(&other.len()).then_with(|| one.cmp(other))
}

impl Formats {
    /// These formats, whose names differ, and the names of those that are off.
    pub fn new(in_order: Vec<Arc<ServedFormat>>, off: Vec<String>) -> Formats {
        let named = |served: &Arc<ServedFormat>| (served.format().name.clone(), Arc::clone(served));
        let mut by_name: Vec<_> = in_order.iter().map(named).collect();
        by_name.sort_by(|(one, _), (other, _)| shortlex(one, other));
        Formats {
            in_order,
            by_name,
            off,
        }
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ServedFormat>> {
        self.in_order.iter()
    }

    /// The format of that name.
    ///
    /// # Errors
    /// [`UnknownFormat`] says which there are.
    pub fn named(&self, name: &str) -> Result<&Arc<ServedFormat>, UnknownFormat> {
        let found = self
            .by_name
            .binary_search_by(|(known, _)| shortlex(known, name));
        found.map(|at| &self.by_name[at].1).map_err(|_| {
            if self.off.iter().any(|off| off == name) {
                return UnknownFormat::Off {
                    name: name.to_owned(),
                };
            }
            UnknownFormat::among(
                self.iter().map(|served| served.format().name.as_str()),
                name,
            )
        })
    }
}
