//! What a caller asks to stand before ids.

use super::format::Format;
use super::prefixes::{Prefix, Prefixes, TYPE_RULE, is_type};

/// What was asked to stand before ids cannot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// The empty type is not minted.
    #[error("`type` is missing: one of {}", .types.join(", "))]
    TypeMissing {
        /// Those that are minted.
        types: Vec<String>,
    },
    /// This type is not minted.
    #[error("type `{given}` is not one of {}", .types.join(", "))]
    TypeNotMinted {
        /// As asked for.
        given: String,
        /// Those that are minted.
        types: Vec<String>,
    },
    /// This is no type.
    #[error("type `{given}` is not {TYPE_RULE}")]
    TypeMalformed {
        /// As asked for.
        given: String,
    },
    /// The format has types instead.
    #[error(
        "`{format}` has types and no prefixes, prefix `{given}` means nothing to it: `type` says what stands before its ids"
    )]
    HasTypes {
        /// The format.
        format: String,
        /// As asked for.
        given: String,
    },
    /// The format has no prefixes at all.
    #[error(
        "`{format}` has no prefixes (formats.{format}.prefixes), prefix `{given}` means nothing to it"
    )]
    NoPrefixes {
        /// The format.
        format: String,
        /// As asked for.
        given: String,
    },
    /// The ids are to be written otherwise than in the canonical text.
    #[error(
        "prefix `{given}` stands before the canonical text alone ({canonical}), and not in {written}: ask for one of them"
    )]
    NotCanonical {
        /// As asked for.
        given: String,
        /// How the ids are to be written.
        written: String,
        /// The canonical encoding.
        canonical: String,
        /// The prefixes of the format.
        prefixes: Vec<String>,
    },
    /// The format does not have this one.
    #[error("prefix `{given}` is not one of {}", .prefixes.join(", "))]
    PrefixUnknown {
        /// As asked for.
        given: String,
        /// Those it has.
        prefixes: Vec<String>,
    },
}

impl Format {
    /// What stands before the canonical text of ids of this type, in a format of types.
    ///
    /// ```
    /// use idmint::id::Format;
    ///
    /// let typeid = Format::built_in("typeid").expect("a built-in format");
    /// assert_eq!(typeid.prefix_of_type("user")?.as_str(), "user_");
    /// assert_eq!(typeid.prefix_of_type("")?.as_str(), "");
    /// assert!(typeid.prefix_of_type("User").is_err());
    /// # Ok::<(), idmint::id::PrefixError>(())
    /// ```
    ///
    /// # Errors
    /// [`PrefixError`] names what was asked for and what there is.
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

    /// One of its prefixes, by itself. `written`: how the ids are to be written, where that is not the canonical text.
    ///
    /// # Errors
    /// [`PrefixError`] names what was asked for and what there is.
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
