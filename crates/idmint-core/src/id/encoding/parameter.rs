//! The bounds of codec settings, and the error for a setting that is out of bounds.

/// The maximum number of characters in a text. Longer texts are refused without being read.
pub(crate) const TEXT_LEN_MAX: usize = 255;

/// A setting of an encoding that is out of bounds.
///
/// The message has the form `key is value, but bound`, with the key as in the configuration. The
/// value comes from the configuration or is derived from the layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} is {value}, but {bound}")]
pub struct ParameterError {
    /// The name of the setting, as in the configuration.
    pub key: &'static str,
    /// The value that is out of bounds.
    pub value: String,
    /// The bound that the value violates, phrased as the end of a sentence.
    pub bound: String,
}

impl ParameterError {
    /// Returns an error for the setting `key`, whose value `value` violates the bound `bound`.
    pub(crate) fn refuse<T>(
        key: &'static str,
        value: impl ToString,
        bound: impl Into<String>,
    ) -> Result<T, Self> {
        Err(Self {
            key,
            value: value.to_string(),
            bound: bound.into(),
        })
    }

    /// Checks that the minimum length of texts is at most [`TEXT_LEN_MAX`].
    pub(super) fn check_min_length(min_length: usize) -> Result<(), Self> {
        if min_length <= TEXT_LEN_MAX {
            return Ok(());
        }
        let bound = format!("must be at most {TEXT_LEN_MAX}");
        Self::refuse("min_length", min_length, bound)
    }
}
