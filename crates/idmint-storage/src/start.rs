//! The steps of a start. Their order is enforced by types, so code with a wrong order does not
//! compile.
//!
//! ```text
//!   no horizon: a first start                  a stored horizon: a restart
//!
//!   Opened::First(FirstStart)                  Opened::Again(Restart)
//!        |  reserve                                 |  agree_on_formats
//!   FirstReserved                              AgreedRestart
//!        |  agree_on_formats                        |  reserve
//!        +-----------------> Store <----------------+
//!                  raise_horizon, records           (records are available before that, too)
//! ```
//!
//! A first start writes the horizon before everything else. So if a database exists without a
//! horizon, the horizon was lost. A restart compares the formats first, so that a changed format is
//! refused before the horizon is raised.

use super::failure::StoreError;
use super::kept_formats::{FormatsError, KeptFormat};
use super::records::Records;
use idmint_core::minting::{Durable, HorizonPlan};
use idmint_core::time::UnixNanos;

/// A store that was just opened.
///
/// ```
/// use std::error::Error;
///
/// use idmint_core::minting::{Durable, HorizonPlan};
/// use idmint_storage::{KeptFormat, Opened, Store};
///
/// fn start(
///     opened: Opened,
///     plan: HorizonPlan,
///     formats: &[KeptFormat],
/// ) -> Result<(Store, Durable<HorizonPlan>), Box<dyn Error>> {
///     match opened {
///         Opened::First(first) => {
///             let (reserved, horizon) = first.reserve(plan)?;
///             Ok((reserved.agree_on_formats(1, formats)?, horizon))
///         }
///         Opened::Again(restart) => Ok(restart.agree_on_formats(1, formats)?.reserve(plan)?),
///     }
/// }
/// ```
pub enum Opened {
    /// The store has no horizon. So this is the first start, and the store knows of no earlier ids.
    First(FirstStart),
    /// The store has a horizon from an earlier start.
    Again(Restart),
}

impl Opened {
    /// Returns the horizon: certainly no id was issued at or after this instant. Returns `None` if
    /// no horizon is stored.
    pub fn horizon(&self) -> Option<UnixNanos> {
        match self {
            Opened::First(_) => None,
            Opened::Again(restart) => Some(restart.horizon),
        }
    }

    /// Wraps an engine that has no horizon yet.
    pub(super) fn first(engine: impl EmptyEngine + 'static) -> Opened {
        Opened::First(FirstStart(Box::new(engine)))
    }

    /// Wraps an engine with data of an earlier start. `horizon` is the stored horizon. `floor` is
    /// the time from which the node began to mint, if that time is known.
    pub(super) fn again(
        horizon: UnixNanos,
        floor: Option<UnixNanos>,
        engine: impl ReservedEngine + 'static,
    ) -> Opened {
        Opened::Again(Restart {
            horizon,
            floor,
            engine: Box::new(engine),
        })
    }
}

/// A store without a horizon. Only a first horizon can be written to it:
///
/// ```compile_fail
/// fn too_early(first: idmint_storage::FirstStart) {
///     let _ = first.agree_on_formats(1, &[]);
/// }
/// ```
pub struct FirstStart(Box<dyn EmptyEngine>);

impl FirstStart {
    /// Durably writes the first horizon to the store.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the write failed. The horizon may still have reached the disk, so
    /// the process must end instead of trying again.
    pub fn reserve(
        self,
        plan: HorizonPlan,
    ) -> Result<(FirstReserved, Durable<HorizonPlan>), StoreError> {
        let mut reserved = None;
        let durable = Durable::write(plan, |plan| {
            reserved = Some(self.0.create_horizon(plan)?);
            Ok::<_, StoreError>(())
        })?;
        Ok((FirstReserved(reserved.expect("written above")), durable))
    }
}

/// A store that contains only its first horizon, written by this start.
pub struct FirstReserved(Box<dyn ReservedEngine>);

impl FirstReserved {
    /// Compares `slots` and `formats` with the stored ones. Stores new formats.
    ///
    /// # Errors
    /// Returns [`FormatsError`] if a stored format differs, or if the store cannot be written.
    pub fn agree_on_formats(
        self,
        slots: u32,
        formats: &[KeptFormat],
    ) -> Result<Store, FormatsError> {
        Ok(Store(self.0.agree_on_formats(slots, formats)?))
    }
}

/// A store that has a horizon from an earlier start.
pub struct Restart {
    horizon: UnixNanos,
    floor: Option<UnixNanos>,
    engine: Box<dyn ReservedEngine>,
}

impl Restart {
    /// Returns the horizon: certainly no id was issued at or after this instant.
    pub fn horizon(&self) -> UnixNanos {
        self.horizon
    }

    /// Returns the floor: the time from which the node began to mint. The floor is the clock
    /// reading at the first start, or a time that an operator has set.
    pub fn floor(&self) -> Option<UnixNanos> {
        self.floor
    }

    /// Compares `slots` and `formats` with the stored ones. Stores new formats.
    ///
    /// # Errors
    /// Returns [`FormatsError`] if a stored format differs, or if the store cannot be written. No
    /// data was written if the error is [`Changed`](FormatsError::Changed) or
    /// [`SlotsChanged`](FormatsError::SlotsChanged).
    pub fn agree_on_formats(
        self,
        slots: u32,
        formats: &[KeptFormat],
    ) -> Result<AgreedRestart, FormatsError> {
        Ok(AgreedRestart(Store(
            self.engine.agree_on_formats(slots, formats)?,
        )))
    }
}

/// A store of an earlier start, whose stored formats agree with the configured ones. It contains
/// the horizon of that start.
pub struct AgreedRestart(Store);

impl AgreedRestart {
    /// Returns the records. Records can be used before the horizon is raised. Ledgers, conjunctions
    /// and series continue after their stored data. Only ids that are minted by the clock depend on
    /// the horizon.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the records cannot be opened.
    pub fn records(&self) -> Result<Records, StoreError> {
        self.0.records()
    }

    /// Durably writes this start's first horizon.
    ///
    /// # Errors
    /// Returns the errors of [`Store::raise_horizon`].
    pub fn reserve(self, plan: HorizonPlan) -> Result<(Store, Durable<HorizonPlan>), StoreError> {
        let AgreedRestart(mut store) = self;
        let durable = store.raise_horizon(plan)?;
        Ok((store, durable))
    }
}

/// A store in which this start has raised the horizon, the time up to which ids may be minted. Ids
/// below the horizon may be minted, and records may be written.
pub struct Store(Box<dyn ReadyEngine>);

impl Store {
    /// Writes a new horizon. When this method returns, the horizon is as durable as the engine can
    /// make it.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the horizon cannot be written. All later calls then fail as well,
    /// so the process must end.
    ///
    /// # Panics
    /// Panics if the planned horizon is below the current one.
    pub fn raise_horizon(&mut self, plan: HorizonPlan) -> Result<Durable<HorizonPlan>, StoreError> {
        Durable::write(plan, |plan| self.0.raise_horizon(plan.horizon()))
    }

    /// Returns the records in the store.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the records cannot be opened.
    pub fn records(&self) -> Result<Records, StoreError> {
        self.0.records()
    }
}

/// An engine without any stored data.
pub(super) trait EmptyEngine: Send {
    /// Writes the first horizon and the floor. Both are durable when this method returns.
    fn create_horizon(
        self: Box<Self>,
        plan: &HorizonPlan,
    ) -> Result<Box<dyn ReservedEngine>, StoreError>;
}

/// An engine that has a horizon.
pub(super) trait ReservedEngine: Send {
    /// Compares the formats with the stored ones, and stores new formats, in one transaction.
    fn agree_on_formats(
        self: Box<Self>,
        slots: u32,
        formats: &[KeptFormat],
    ) -> Result<Box<dyn ReadyEngine>, FormatsError>;
}

/// A storage engine that has stored the formats and a horizon.
pub(super) trait ReadyEngine: Send {
    /// Writes a horizon that is not below the current one. The horizon is durable when this method
    /// returns.
    fn raise_horizon(&mut self, horizon: UnixNanos) -> Result<(), StoreError>;

    /// Returns the records in the store.
    fn records(&self) -> Result<Records, StoreError>;
}
