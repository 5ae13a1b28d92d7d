//! Proof that something is on disk.

/// A plan that was made durable: it survives a crash from now on.
///
/// There is no way to make one but to write the plan, so nothing that asks for a `Durable` can act too early.
///
/// ```
/// use idmint::minting::Durable;
/// let mut disk = Vec::new();
/// let written = Durable::write(7_u64, |plan| { disk.push(*plan); Ok::<(), std::io::Error>(()) })?;
/// assert_eq!(*written.plan(), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Durable<P>(P);

impl<P> Durable<P> {
    /// Writes the plan, and holds it once `write` said that it will survive a crash.
    ///
    /// # Errors
    /// What `write` returns: then nothing may be done on the strength of the plan.
    pub fn write<E>(plan: P, write: impl FnOnce(&P) -> Result<(), E>) -> Result<Durable<P>, E> {
        write(&plan)?;
        Ok(Durable(plan))
    }

    /// What is durable.
    pub fn plan(&self) -> &P {
        &self.0
    }
}
