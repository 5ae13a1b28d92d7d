//! Every format of this program, by name and in order.

use std::sync::Arc;

use super::served_format::ServedFormat;

/// The formats of a program.
#[derive(Debug)]
pub struct Formats {
    in_order: Vec<Arc<ServedFormat>>,
    /// Sorted. Searching halves takes a third of the instructions of a map of the standard library.
    by_name: Vec<(String, Arc<ServedFormat>)>,
}

/// No format has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("format {name:?} is not one of {known}")]
pub struct UnknownFormat {
    /// As asked for.
    pub name: String,
    /// The names there are.
    pub known: String,
}

impl Formats {
    /// These formats, whose names differ.
    pub fn new(in_order: Vec<Arc<ServedFormat>>) -> Formats {
        let named = |served: &Arc<ServedFormat>| (served.format().name.clone(), Arc::clone(served));
        let mut by_name: Vec<_> = in_order.iter().map(named).collect();
        by_name.sort_by(|(one, _), (other, _)| one.cmp(other));
        Formats { in_order, by_name }
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
        let found = self.by_name.binary_search_by(|(known, _)| known.as_str().cmp(name));
        found.map(|at| &self.by_name[at].1).map_err(|_| {
            let names: Vec<_> = self.iter().map(|served| served.format().name.as_str()).collect();
            UnknownFormat { name: name.to_owned(), known: names.join(", ") }
        })
    }
}
