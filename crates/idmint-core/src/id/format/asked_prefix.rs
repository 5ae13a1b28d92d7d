//! Checks the prefix, such as `user_`, or the type that a caller requests for new ids, and returns
//! the prefix to write before each id.

use super::format::Format;
use super::prefixes::{Prefix, Prefixes, TYPE_RULE, is_type};

/// The reason why a requested prefix or type is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// The caller requested no type of id, but the format does not mint ids without a type.
    #[error("the parameter `type` is missing; use one of {}", .types.join(", "))]
    TypeMissing {
        /// The types that the format mints.
        types: Vec<String>,
    },
    /// The requested type is well formed, but the format does not mint ids of that type.
    #[error("type `{given}` is not one of {}", .types.join(", "))]
    TypeNotMinted {
        /// The type that the caller requested.
        given: String,
        /// The types that the format mints.
        types: Vec<String>,
    },
    /// The requested text is not a valid type.
    #[error("type `{given}` must be {TYPE_RULE}")]
    TypeMalformed {
        /// The text that the caller requested as a type.
        given: String,
    },
    /// The caller requested a prefix, but this format has types such as `user` instead.
    #[error(
        "`{format}` has types, not prefixes, so prefix `{given}` is invalid; use `type` instead"
    )]
    HasTypes {
        /// The name of the format.
        format: String,
        /// The prefix that the caller requested.
        given: String,
    },
    /// The caller requested a prefix, but the format has none.
    #[error(
        "`{format}` has no prefixes (formats.{format}.prefixes), so prefix `{given}` is invalid"
    )]
    NoPrefixes {
        /// The name of the format.
        format: String,
        /// The prefix that the caller requested.
        given: String,
    },
    /// The caller requested a prefix and a non-canonical encoding. Only canonical texts can have a
    /// prefix.
    #[error(
        "prefix `{given}` needs the canonical encoding ({canonical}), not {written}; ask for only one of the two"
    )]
    NotCanonical {
        /// The prefix that the caller requested.
        given: String,
        /// The name of the encoding that the caller requested.
        written: String,
        /// The name of the format's canonical encoding.
        canonical: String,
        /// The prefixes that the format has.
        prefixes: Vec<String>,
    },
    /// The format has prefixes, but not the requested one.
    #[error("prefix `{given}` is not one of {}", .prefixes.join(", "))]
    PrefixUnknown {
        /// The prefix that the caller requested.
        given: String,
        /// The prefixes that the format has.
        prefixes: Vec<String>,
    },
}

impl Format {
    /// Returns the prefix that ids of the type `of_type` have in their canonical text. The format
    /// must have types.
    ///
    /// ```
    /// use idmint_core::id::Format;
    ///
    /// let typeid = Format::built_in("typeid").expect("a built-in format");
    /// assert_eq!(typeid.prefix_of_type("user")?.as_str(), "user_");
    /// assert_eq!(typeid.prefix_of_type("")?.as_str(), "");
    /// assert!(typeid.prefix_of_type("User").is_err());
    /// # Ok::<(), idmint_core::id::PrefixError>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`PrefixError`] if `of_type` is malformed, or is not one of the types that the
    /// format mints.
    pub fn prefix_of_type(&self, of_type: &str) -> Result<Prefix, PrefixError> {
        let given = of_type.to_owned();
        let minted = match &self.prefixes {
            Prefixes::Types { minted } => minted.as_slice(),
            Prefixes::Listed(_) => &[],
        };
        match of_type {
            _ if !is_type(of_type) => Err(PrefixError::TypeMalformed { given }),
            _ if minted.is_empty() || minted.contains(&given) => {
                let separator = if of_type.is_empty() { "" } else { "_" };
                Ok(Prefix::new(&format!("{of_type}{separator}")))
            }
            "" => Err(PrefixError::TypeMissing {
                types: minted.to_vec(),
            }),
            _ => Err(PrefixError::TypeNotMinted {
                given,
                types: minted.to_vec(),
            }),
        }
    }

    /// Returns the requested prefix `given` if the format has it.
    ///
    /// `written` is the name of the requested encoding, or `None` if the canonical encoding is
    /// requested.
    ///
    /// # Errors
    /// Returns [`PrefixError`] if the format does not have the prefix `given`, or if `written`
    /// names an encoding, because only canonical texts can have a prefix.
    pub fn prefix(&self, given: &str, written: Option<&str>) -> Result<Prefix, PrefixError> {
        let (format, text) = (self.name.clone(), given.to_owned());
        let listed = match &self.prefixes {
            Prefixes::Types { .. } => {
                return Err(PrefixError::HasTypes {
                    format,
                    given: text,
                });
            }
            Prefixes::Listed(listed) if listed.is_empty() => {
                return Err(PrefixError::NoPrefixes {
                    format,
                    given: text,
                });
            }
            Prefixes::Listed(listed) => listed,
        };
        let prefixes = || {
            listed
                .iter()
                .map(|prefix| prefix.as_str().to_owned())
                .collect()
        };
        let Some(found) = listed.iter().find(|prefix| prefix.as_str() == given) else {
            return Err(PrefixError::PrefixUnknown {
                given: text,
                prefixes: prefixes(),
            });
        };
        if let Some(written) = written {
            let (written, canonical) = (written.to_owned(), self.canonical().name().to_owned());
            return Err(PrefixError::NotCanonical {
                given: text,
                written,
                canonical,
                prefixes: prefixes(),
            });
        }
        Ok(found.clone())
    }
}
