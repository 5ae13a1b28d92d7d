//! The store that the rest of the program holds, whichever engine it is.

use super::memory::MemoryStore;
use crate::storage::embedded::{DatabaseError, EmbeddedStore, FormatsError, HorizonError, KeptFormat, Records};

/// What a start finds of its slot's horizon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundHorizon {
    /// No record: a first start.
    None,
    /// Nothing at or above this instant (nanoseconds since 1970-01-01T00:00:00Z) has been issued.
    At(u64),
}

/// What lasts, in one of the engines of a single node.
pub enum Store {
    /// Gone with the process.
    Memory(MemoryStore),
    /// A folder.
    Embedded(EmbeddedStore),
}

impl Store {
    /// Makes a new horizon (nanoseconds since 1970-01-01T00:00:00Z) durable, as far as the engine is.
    ///
    /// # Errors
    /// [`HorizonError::NotWritten`], and [`HorizonError::Poisoned`] ever after: stop the process.
    ///
    /// # Panics
    /// When `horizon_unix_ns` is below the present horizon.
    pub fn raise_horizon(&mut self, horizon_unix_ns: u64) -> Result<(), HorizonError> {
        match self {
            Self::Memory(store) => {
                store.raise_horizon(horizon_unix_ns);
                Ok(())
            }
            Self::Embedded(store) => store.raise_horizon(horizon_unix_ns),
        }
    }

    /// Holds `slots` and `formats` against what is kept, and keeps what is new.
    ///
    /// # Errors
    /// [`FormatsError::Changed`] and [`FormatsError::SlotsChanged`] with nothing written; [`FormatsError::Database`].
    ///
    /// # Panics
    /// At a first start of [`EmbeddedStore`] before [`raise_horizon`](Self::raise_horizon).
    pub fn agree_on_formats(&mut self, slots: u32, formats: &[KeptFormat]) -> Result<(), FormatsError> {
        match self {
            Self::Memory(store) => store.agree_on_formats(slots, formats),
            Self::Embedded(store) => store.agree_on_formats(slots, formats),
        }
    }

    /// The records of ids with memory.
    ///
    /// # Errors
    /// [`DatabaseError`].
    ///
    /// # Panics
    /// At a first start of [`EmbeddedStore`] before [`agree_on_formats`](Self::agree_on_formats).
    pub fn records(&self) -> Result<Records, DatabaseError> {
        Records::open(match self {
            Self::Memory(store) => store.database(),
            Self::Embedded(store) => store.database(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What every engine does, one after the other.
    fn raise_and_agree(mut store: Store) {
        store.raise_horizon(500).expect("the horizon is raised");
        store.raise_horizon(500).expect("the same horizon again is no lowering");
        store.agree_on_formats(4, &[]).expect("the slots are new");
        let error = store.agree_on_formats(5, &[]).expect_err("4 is kept");
        assert!(matches!(error, FormatsError::SlotsChanged { kept: 4, now: 5 }));
    }

    #[test]
    fn every_engine_raises_the_horizon_and_keeps_the_slots() {
        raise_and_agree(Store::Memory(MemoryStore::open().expect("memory suffices")));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (store, _) = EmbeddedStore::open(folder.path(), 0, None).expect("the folder is usable");
        raise_and_agree(Store::Embedded(store));
    }
}
