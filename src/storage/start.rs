//! The order of a start, kept by types: what must not be done yet cannot be written down.
//!
//! ```text
//!   no horizon: a first start                  a horizon is there
//!
//!   Opened::First(FirstStart)                  Opened::Again(Restart)
//!        |  reserve                                 |  agree_on_formats
//!   FirstReserved                              AgreedRestart
//!        |  agree_on_formats                        |  reserve
//!        +-----------------> Store <----------------+
//!                  raise_horizon, records           (records before that, too)
//! ```
//!
//! At a first start the horizon comes before everything else: a database without a horizon beside it means that the
//! horizon was lost. At a restart the formats come first, so that a changed one is refused before anything is raised.

use super::failure::StoreError;
use super::kept_formats::{FormatsError, KeptFormat};
use super::records::Records;
use crate::minting::{Durable, HorizonPlan};
use crate::time::UnixNanos;

/// A store that was opened.
///
/// ```
/// use std::error::Error;
///
/// use idmint::minting::{Durable, HorizonPlan};
/// use idmint::storage::{KeptFormat, Opened, Store};
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
    /// Nothing is known of ids that were minted before.
    First(FirstStart),
    /// A horizon is there.
    Again(Restart),
}

impl Opened {
    /// The first instant at which no id can have been issued yet; `None` if nothing is known of that.
    pub fn horizon(&self) -> Option<UnixNanos> {
        match self {
            Opened::First(_) => None,
            Opened::Again(restart) => Some(restart.horizon),
        }
    }

    /// An engine that has no horizon yet.
    pub(super) fn first(engine: impl EmptyEngine + 'static) -> Opened {
        Opened::First(FirstStart(Box::new(engine)))
    }

    /// An engine that has this horizon, and was begun at this floor.
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

/// A store without a horizon. Nothing but a first horizon can be written to it:
///
/// ```compile_fail
/// fn too_early(first: idmint::storage::FirstStart) {
///     let _ = first.agree_on_formats(1, &[]);
/// }
/// ```
pub struct FirstStart(Box<dyn EmptyEngine>);

impl FirstStart {
    /// Makes the first horizon durable.
    ///
    /// # Errors
    /// [`StoreError`]. Whether the horizon is there is then unknown, so it cannot be tried again: end the process.
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

/// A store with a first horizon, and nothing else yet.
pub struct FirstReserved(Box<dyn ReservedEngine>);

impl FirstReserved {
    /// Compares `slots` and `formats` with what is kept, and keeps what is new.
    ///
    /// # Errors
    /// [`FormatsError`].
    pub fn agree_on_formats(
        self,
        slots: u32,
        formats: &[KeptFormat],
    ) -> Result<Store, FormatsError> {
        Ok(Store(self.0.agree_on_formats(slots, formats)?))
    }
}

/// A store with the horizon of an earlier start.
pub struct Restart {
    horizon: UnixNanos,
    floor: Option<UnixNanos>,
    engine: Box<dyn ReservedEngine>,
}

impl Restart {
    /// The first instant at which no id can have been issued yet.
    pub fn horizon(&self) -> UnixNanos {
        self.horizon
    }

    /// The floor at which the store was begun: the clock of a first start, or an operator's word.
    pub fn floor(&self) -> Option<UnixNanos> {
        self.floor
    }

    /// Compares `slots` and `formats` with what is kept, and keeps what is new.
    ///
    /// # Errors
    /// [`FormatsError`]; with [`Changed`](FormatsError::Changed) and [`SlotsChanged`](FormatsError::SlotsChanged)
    /// nothing was written.
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

/// A store with the horizon of an earlier start, in which ids of the configured formats can be minted.
pub struct AgreedRestart(Store);

impl AgreedRestart {
    /// The records of ids with memory. They need no horizon: where a chain or an anchor goes on stands in themselves.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn records(&self) -> Result<Records, StoreError> {
        self.0.records()
    }

    /// Makes the first horizon of this start durable.
    ///
    /// # Errors
    /// As [`Store::raise_horizon`].
    pub fn reserve(self, plan: HorizonPlan) -> Result<(Store, Durable<HorizonPlan>), StoreError> {
        let AgreedRestart(mut store) = self;
        let durable = store.raise_horizon(plan)?;
        Ok((store, durable))
    }
}

/// A store with a horizon of this start: ids can be minted below it, and records kept.
pub struct Store(Box<dyn ReadyEngine>);

impl Store {
    /// Makes a new horizon durable, as far as the engine is.
    ///
    /// # Errors
    /// [`StoreError`], now and ever after: stop the process.
    ///
    /// # Panics
    /// When the plan is below the present horizon.
    pub fn raise_horizon(&mut self, plan: HorizonPlan) -> Result<Durable<HorizonPlan>, StoreError> {
        Durable::write(plan, |plan| self.0.raise_horizon(plan.horizon()))
    }

    /// The records of ids with memory.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn records(&self) -> Result<Records, StoreError> {
        self.0.records()
    }
}

/// An engine in which nothing is stored.
pub(super) trait EmptyEngine: Send {
    /// Makes the first horizon durable, and the floor that the store begins at.
    fn create_horizon(
        self: Box<Self>,
        plan: &HorizonPlan,
    ) -> Result<Box<dyn ReservedEngine>, StoreError>;
}

/// An engine that has a horizon.
pub(super) trait ReservedEngine: Send {
    /// Compares the formats with those kept, in one transaction, and keeps what is new.
    fn agree_on_formats(
        self: Box<Self>,
        slots: u32,
        formats: &[KeptFormat],
    ) -> Result<Box<dyn ReadyEngine>, FormatsError>;
}

/// An engine that has a horizon, and keeps the formats that are minted.
pub(super) trait ReadyEngine: Send {
    /// Makes a horizon durable that is not below the present one.
    fn raise_horizon(&mut self, horizon: UnixNanos) -> Result<(), StoreError>;

    /// The records.
    fn records(&self) -> Result<Records, StoreError>;
}
