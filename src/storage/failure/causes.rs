//! An error together with what led to it, for logs and for people.

use std::error::Error;
use std::fmt;

/// Displays an error and then its causes, from the last step to the first: errors here keep a cause as their source
/// and do not print it.
///
/// ```
/// use idmint::storage::{FailureKind, StoreError, WithCauses};
///
/// #[derive(Debug, thiserror::Error)]
/// #[error("cannot open /data/horizon")]
/// struct NotOpened(#[source] std::io::Error);
///
/// let cause = std::io::Error::other("no such device");
/// let error = StoreError::new(FailureKind::NotUsable, NotOpened(cause));
/// assert_eq!(WithCauses(&error).to_string(), "cannot open /data/horizon: no such device");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct WithCauses<'a>(pub &'a dyn Error);

impl fmt::Display for WithCauses<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut error = self.0;
        write!(f, "{error}")?;
        while let Some(cause) = error.source() {
            write!(f, ": {cause}")?;
            error = cause;
        }
        Ok(())
    }
}
