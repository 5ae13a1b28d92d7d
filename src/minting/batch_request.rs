//! How many ids of which sort a caller wants: checked once, and then minted without another look.

use std::num::NonZeroU32;

use crate::id::{DomainHash, Format};

/// How many ids of which sort: fits its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchRequest {
    count: NonZeroU32,
    variant: usize,
    domain: DomainHash,
}

/// What its format cannot fill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The format needs a type and got none.
    #[error("`type` is missing: one of {}", .types.join(", "))]
    TypeMissing {
        /// The types it has.
        types: Vec<String>,
    },
    /// The format has no such type.
    #[error("type `{given}` is not one of {}", .types.join(", "))]
    TypeUnknown {
        /// As asked for.
        given: String,
        /// The types it has.
        types: Vec<String>,
    },
    /// The format has no types at all.
    #[error("`{format}` has no types, `type` = `{given}` means nothing to it")]
    NoTypes {
        /// The format.
        format: String,
        /// As asked for.
        given: String,
    },
}

impl BatchRequest {
    /// `count` ids of `format`, of the type of that name where the format has types.
    ///
    /// # Errors
    /// [`RequestError`] names what was asked for and what there is.
    pub(super) fn new(
        format: &Format,
        count: NonZeroU32,
        of_type: Option<&str>,
    ) -> Result<BatchRequest, RequestError> {
        let variant = match (of_type, format.has_types()) {
            (None, false) => 0,
            (Some(given), false) => {
                return Err(RequestError::NoTypes {
                    format: format.name.clone(),
                    given: given.to_owned(),
                });
            }
            (None, true) => {
                return Err(RequestError::TypeMissing {
                    types: types_of(format),
                });
            }
            (Some(given), true) => {
                format
                    .type_named(given)
                    .map_err(|_| RequestError::TypeUnknown {
                        given: given.to_owned(),
                        types: types_of(format),
                    })?
            }
        };
        Ok(BatchRequest {
            count,
            variant,
            domain: DomainHash::DEVELOPMENT,
        })
    }

    /// The same request for ids of a domain; without effect where the format has no such field.
    #[must_use]
    pub fn for_domain(self, domain: DomainHash) -> BatchRequest {
        BatchRequest { domain, ..self }
    }

    /// How many ids.
    pub fn count(&self) -> u64 {
        u64::from(self.count.get())
    }

    /// The position of the layout in the format's variants.
    pub fn variant(&self) -> usize {
        self.variant
    }

    /// The domain that the ids belong to.
    pub fn domain(&self) -> DomainHash {
        self.domain
    }
}

fn types_of(format: &Format) -> Vec<String> {
    format
        .variants
        .iter()
        .filter_map(|variant| variant.name.clone())
        .collect()
}
