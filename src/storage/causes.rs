//! An error together with what led to it, for logs and for people.

use std::error::Error;
use std::fmt;

/// Displays an error and then its causes, from the last step to the first: errors here keep a cause as their source
/// and do not print it.
///
/// ```
/// use idmint::storage::{HorizonError, WithCauses};
///
/// let error = HorizonError::NotOpened { path: "/data/horizon".into(), cause: std::io::Error::other("no such device") };
/// assert_eq!(WithCauses(&error).to_string(), format!("{error}: no such device"));
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
