//! What bounds the settings of a codec, and how a setting outside its bounds is reported.

/// The most characters that any codec writes or reads: a longer text is refused without looking at it.
pub const TEXT_LEN_MAX: usize = 255;

/// A setting of an encoding that lies outside its bounds.
///
/// Shape: the key as written in the configuration, the value found there (or derived from the layout), and the bound.
///
/// ```
/// use idmint::id::encoding::{Padding, Positional};
///
/// let error = Positional::new("01", Padding::Fixed(3), 255).expect_err("255 has eight binary digits");
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
        Self {
            key,
            value: value.to_string(),
            bound: bound.into(),
        }
    }
}
