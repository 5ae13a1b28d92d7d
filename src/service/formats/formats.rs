//! Every format of this program, by name and in order.

use std::sync::Arc;

use super::served_format::ServedFormat;

/// The formats of a program.
#[derive(Debug)]
pub struct Formats {
    in_order: Vec<Arc<ServedFormat>>,
    // A list: there are a few dozen at most, and most names differ by their lengths. To find one in a tree took a mint more
    // than all that the edge does to know a host.
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
        let by_name = in_order.iter().map(|served| (served.format().name.clone(), Arc::clone(served))).collect();
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
        let found = self.by_name.iter().find(|(known, _)| known == name);
        found.map(|(_, served)| served).ok_or_else(|| {
            let names: Vec<_> = self.iter().map(|served| served.format().name.as_str()).collect();
            UnknownFormat { name: name.to_owned(), known: names.join(", ") }
        })
    }
}
