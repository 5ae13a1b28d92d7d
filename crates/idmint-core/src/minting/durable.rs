//! A proof that a plan, such as the next horizon, was written to disk.

/// A plan, such as the next horizon, that was written to disk and therefore survives a crash.
///
/// A `Durable` can only be created by writing the plan. A function that takes a `Durable` can
/// therefore not run before the write.
///
/// ```
/// use idmint_core::minting::Durable;
/// let mut disk = Vec::new();
/// let written = Durable::write(7_u64, |plan| { disk.push(*plan); Ok::<(), std::io::Error>(()) })?;
/// assert_eq!(*written.plan(), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Durable<P>(P);

impl<P> Durable<P> {
    /// Writes the plan with `write`. Returns the plan as a `Durable` if `write` succeeds.
    ///
    /// # Errors
    /// Returns the error of `write`. The plan may then be missing on disk, so the caller must not
    /// act on the plan.
    pub fn write<E>(plan: P, write: impl FnOnce(&P) -> Result<(), E>) -> Result<Durable<P>, E> {
        write(&plan)?;
        Ok(Durable(plan))
    }

    /// Returns the plan that was written to disk.
    pub fn plan(&self) -> &P {
        &self.0
    }
}
