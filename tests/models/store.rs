//! The store of the model: one slot, its horizon and its holder, and the requests that change them.

/// Which write of the store: each makes the next one. 0 of what was never written.
pub(crate) type Revision = u8;

/// A point in time, as a process or the store counts it; also the one id that can be minted of it.
pub(crate) type Tick = u8;

/// Which process.
pub(crate) type Place = u8;

/// What there is, as one read shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Snapshot {
    /// The first tick that nobody may use.
    pub(crate) horizon: Tick,
    /// The request that wrote the horizon.
    pub(crate) attempt: u8,
    /// The write of the horizon.
    pub(crate) horizon_revision: Revision,
    /// The write that created the holder; 0 if there is none.
    pub(crate) holder_created: Revision,
}

/// What a request does if what it compares is as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Write {
    /// Creates a holder and raises the horizon: a slot is taken, or taken back.
    Hold,
    /// Raises the horizon.
    Renew,
    /// Deletes the holder.
    Release,
    /// Deletes the holder and lowers the horizon: a mistake.
    ReleaseAndLower,
}

/// A request to the store. The same one, sent again, is equal to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Request {
    pub(crate) from: Place,
    pub(crate) attempt: u8,
    pub(crate) write: Write,
    pub(crate) horizon: Tick,
    /// The revision that the horizon must have; `None`: any, a mistake.
    pub(crate) horizon_revision: Option<Revision>,
    /// The revision that must have created the holder; 0: there must be none. `None`: any, a mistake.
    pub(crate) holder_created: Option<Revision>,
}

/// The store, and everything it ever showed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Store {
    /// Oldest first, never empty.
    pub(crate) history: Vec<Snapshot>,
    revision: Revision,
}

impl Store {
    pub(crate) fn new() -> Store {
        Store {
            history: vec![Snapshot::default()],
            revision: 0,
        }
    }

    pub(crate) fn now(&self) -> Snapshot {
        *self.history.last().expect("it is never empty")
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    /// Whether what a request compares is as it was.
    pub(crate) fn allows(&self, request: &Request) -> bool {
        let now = self.now();
        request
            .horizon_revision
            .is_none_or(|revision| revision == now.horizon_revision)
            && request
                .holder_created
                .is_none_or(|created| created == now.holder_created)
    }

    /// Whether it is, or will be once there is no holder any more. Revisions only grow, so what has passed never comes again.
    pub(crate) fn may_yet_allow(&self, request: &Request) -> bool {
        let without_holder = Snapshot {
            holder_created: 0,
            ..self.now()
        };
        self.allows(request)
            || Store {
                history: vec![without_holder],
                revision: self.revision,
            }
            .allows(request)
    }

    /// Does a request, or finds what is in its way: whether it was done, and what there is then.
    pub(crate) fn commit(&mut self, request: &Request) -> (bool, Snapshot) {
        let now = self.now();
        if !self.allows(request) {
            return (false, now);
        }
        self.revision += 1;
        let revision = self.revision;
        let raised = Snapshot {
            horizon: request.horizon,
            attempt: request.attempt,
            horizon_revision: revision,
            ..now
        };
        let next = match request.write {
            Write::Hold => Snapshot {
                holder_created: revision,
                ..raised
            },
            Write::Renew => raised,
            Write::Release => Snapshot {
                holder_created: 0,
                ..now
            },
            Write::ReleaseAndLower => Snapshot {
                holder_created: 0,
                ..raised
            },
        };
        self.history.push(next);
        (true, next)
    }

    /// The lease of the holder ends, for whatever reason.
    pub(crate) fn end_lease(&mut self) {
        self.revision += 1;
        self.history.push(Snapshot {
            holder_created: 0,
            ..self.now()
        });
    }
}
