//! A sequenced format of this node: its worker numbers, and what mints it in the session.

use std::sync::{Arc, OnceLock};

use super::beginning::Beginning;
use super::lanes::Lanes;
use super::minter::SequencedMinter;
use crate::id::Format;

/// A format with the worker numbers that this node has in it.
#[derive(Debug)]
pub(in crate::minting) struct SequencedFormat {
    format: Arc<Format>,
    lanes: Lanes,
    /// Empty until the session begins.
    in_session: OnceLock<Arc<SequencedMinter>>,
}

impl SequencedFormat {
    pub(in crate::minting) fn new(format: Arc<Format>, lanes: Lanes) -> SequencedFormat {
        SequencedFormat { format, lanes, in_session: OnceLock::new() }
    }

    pub(in crate::minting) fn format(&self) -> &Arc<Format> {
        &self.format
    }

    pub(in crate::minting) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// What would mint it in a session that begins so.
    pub(in crate::minting) fn minter(&self, beginning: &Beginning) -> SequencedMinter {
        SequencedMinter::new(&self.format, &self.lanes, beginning)
    }

    /// From now on this mints it.
    ///
    /// # Panics
    /// When another one does already: worker numbers would be used twice.
    pub(in crate::minting) fn begin(&self, minter: Arc<SequencedMinter>) {
        assert!(self.in_session.set(minter).is_ok(), "a program has one session");
    }

    /// What mints it, once the session has begun.
    #[inline]
    pub(in crate::minting) fn in_session(&self) -> Option<&SequencedMinter> {
        self.in_session.get().map(AsRef::as_ref)
    }
}
