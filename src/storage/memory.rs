//! The engine that keeps nothing: for trying the program out, and for tests.

use std::sync::Arc;

use super::store::FoundHorizon;
use crate::storage::embedded::{Database, DatabaseError, FormatsError, FormatsTable, KeptFormat};

/// A store that is gone with the process. Ids minted on it are unique within one run only, up to what the clock adds.
pub struct MemoryStore {
    horizon_unix_ns: Option<u64>,
    database: Arc<Database>,
}

impl MemoryStore {
    /// An empty store.
    ///
    /// # Errors
    /// [`DatabaseError::NotUsable`].
    pub fn open() -> Result<MemoryStore, DatabaseError> {
        Ok(MemoryStore { horizon_unix_ns: None, database: Arc::new(Database::in_memory()?) })
    }

    /// Where records are.
    pub(super) fn database(&self) -> Arc<Database> {
        Arc::clone(&self.database)
    }

    /// The horizon so far, as a restart in the same process would find it.
    pub fn found_horizon(&self) -> FoundHorizon {
        self.horizon_unix_ns.map_or(FoundHorizon::None, FoundHorizon::At)
    }

    /// Raises the horizon.
    ///
    /// # Panics
    /// When `horizon_unix_ns` is below the present horizon, as every engine does.
    pub fn raise_horizon(&mut self, horizon_unix_ns: u64) {
        let present = self.horizon_unix_ns.unwrap_or(0);
        assert!(
            horizon_unix_ns >= present,
            "a horizon is never lowered: it is {present}, {horizon_unix_ns} was asked for"
        );
        self.horizon_unix_ns = Some(horizon_unix_ns);
    }

    /// Holds the formats against those kept since the store was opened.
    ///
    /// # Errors
    /// As [`FormatsTable::agree`].
    pub fn agree_on_formats(&self, slots: u32, formats: &[KeptFormat]) -> Result<(), FormatsError> {
        FormatsTable::new(&self.database).agree(slots, formats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_in_the_same_process_finds_the_horizon() {
        let mut store = MemoryStore::open().expect("memory suffices");
        assert_eq!(store.found_horizon(), FoundHorizon::None);
        store.raise_horizon(700);
        assert_eq!(store.found_horizon(), FoundHorizon::At(700));
    }

    #[test]
    #[should_panic(expected = "a horizon is never lowered")]
    fn lowering_the_horizon_panics() {
        let mut store = MemoryStore::open().expect("memory suffices");
        store.raise_horizon(700);
        store.raise_horizon(699);
    }
}
