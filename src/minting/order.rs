//! What a caller wants: checked once, and then minted without another look.

use std::num::NonZeroU32;

use crate::id::{DomainHash, Format, Rule};

/// How many ids of which sort: fits its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    count: NonZeroU32,
    variant: usize,
    domain: DomainHash,
}

/// An order that its format cannot fill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
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
    /// The format is only read.
    #[error("`{format}` is decoded and not minted here (rule {})", .rule.name())]
    NotMinted {
        /// The format.
        format: String,
        /// Its rule.
        rule: Rule,
    },
}

impl Order {
    /// `count` ids of `format`, of the type of that name where the format has types.
    ///
    /// # Errors
    /// [`OrderError`] names what was asked for and what there is.
    pub fn new(format: &Format, count: NonZeroU32, of_type: Option<&str>) -> Result<Order, OrderError> {
        if !format.rule.is_counted() {
            return Err(OrderError::NotMinted { format: format.name.clone(), rule: format.rule });
        }
        let variant = match (of_type, format.has_types()) {
            (None, false) => 0,
            (Some(given), false) => {
                return Err(OrderError::NoTypes { format: format.name.clone(), given: given.to_owned() });
            }
            (None, true) => return Err(OrderError::TypeMissing { types: types_of(format) }),
            (Some(given), true) => format
                .type_named(given)
                .map_err(|_| OrderError::TypeUnknown { given: given.to_owned(), types: types_of(format) })?,
        };
        Ok(Order { count, variant, domain: DomainHash::DEVELOPMENT })
    }

    /// The same order for ids of a domain; without effect where the format has no such field.
    #[must_use]
    pub fn for_domain(self, domain: DomainHash) -> Order {
        Order { domain, ..self }
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
    format.variants.iter().filter_map(|variant| variant.name.clone()).collect()
}
