//! The store in the model: one slot with its horizon and holder, and the requests that change them.

/// The number of a write to the store. Each write increases it by one. 0 means that the value was
/// never written.
pub(crate) type Revision = u8;

/// A point in time, for a process or the store. The slot has one id per tick, so the tick is also
/// the id.
pub(crate) type Tick = u8;

/// The index of a process.
pub(crate) type Place = u8;

/// One state of the store, as a read returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Snapshot {
    /// The first tick that no process may use.
    pub(crate) horizon: Tick,
    /// The number of the request that wrote the horizon.
    pub(crate) attempt: u8,
    /// The write that last changed the horizon.
    pub(crate) horizon_revision: Revision,
    /// The write that created the holder, or 0 if there is no holder.
    pub(crate) holder_created: Revision,
}

/// The effect of a request whose comparisons succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Write {
    /// Creates a holder and raises the horizon. A process does this to take a slot, or to reclaim
    /// one.
    Hold,
    /// Raises the horizon.
    Renew,
    /// Deletes the holder.
    Release,
    /// Deletes the holder and lowers the horizon, which is a mistake.
    ReleaseAndLower,
}

/// A request to the store. A request that is sent again is identical to the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Request {
    pub(crate) from: Place,
    pub(crate) attempt: u8,
    pub(crate) write: Write,
    pub(crate) horizon: Tick,
    /// The revision that the horizon must have, or `None` to accept any revision, which is a
    /// mistake.
    pub(crate) horizon_revision: Option<Revision>,
    /// The revision that must have created the holder, where 0 requires that there is no holder.
    /// `None` accepts any holder, which is a mistake.
    pub(crate) holder_created: Option<Revision>,
}

/// The store with its complete history.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Store {
    /// All states so far, oldest first. There is always at least one.
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

    /// Returns `true` if the comparisons of a request succeed.
    pub(crate) fn allows(&self, request: &Request) -> bool {
        let now = self.now();
        request
            .horizon_revision
            .is_none_or(|revision| revision == now.horizon_revision)
            && request
                .holder_created
                .is_none_or(|created| created == now.holder_created)
    }

    /// Returns `true` if the comparisons of a request succeed now, or would succeed if there were
    /// no holder. Revisions only grow, so an outdated comparison never succeeds again.
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

    /// Executes a request if its comparisons succeed. Returns `true` if it was executed, and the
    /// state of the store afterwards.
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

    /// Ends the holder's lease, for any reason.
    pub(crate) fn end_lease(&mut self) {
        self.revision += 1;
        self.history.push(Snapshot {
            holder_created: 0,
            ..self.now()
        });
    }
}
