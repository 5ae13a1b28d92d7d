//! A parameter from which no codec can be built.

/// One setting of an encoding lies outside its bounds.
///
/// Shape: the key as written in the configuration, the value found there (or derived from the layout), and the bound.
///
/// ```
/// use idmint::id::encoding::{Positional, Width};
///
/// let error = Positional::new("01", Width::Fixed(3), 255).expect_err("255 has eight binary digits");
/// assert_eq!(error.to_string(), "length = 3, must be 8 to 255");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {value}, {bound}")]
pub struct ParameterError {
    /// The setting's name.
    pub key: &'static str,
    /// What was found.
    pub value: String,
    /// What would be right, as the end of a sentence.
    pub bound: String,
}

impl ParameterError {
    pub(crate) fn new(key: &'static str, value: impl ToString, bound: impl Into<String>) -> Self {
        Self { key, value: value.to_string(), bound: bound.into() }
    }
}
