//! Scopes, and the permission that a route needs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use idmint_core::named;

named! {
    /// A group of routes that a token may use.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Scope {
        /// Minting ids: either a requested number of ids, or one id for each report of a
        /// conjunction.
        Mint = "mint",
        /// Creating, reading and appending to ledgers, and reading conjunctions.
        Ledger = "ledger",
        /// Decoding ids and listing formats.
        Decode = "decode",
        /// Reading the metrics.
        Metrics = "metrics",
        /// Importing events into a ledger in use, for callers that also have the scope `ledger`.
        /// The service refuses appends of other callers to that ledger until the import ends.
        /// Setting the next number of a series, for callers that also have the scope `number`.
        Import = "import",
        /// Taking, voiding and reading the numbers of series, and closing series.
        Number = "number",
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The error of parsing an unknown scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a scope: use mint, ledger, decode, metrics, import or number")]
pub struct UnknownScope(String);

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Scope, UnknownScope> {
        Scope::ALL
            .into_iter()
            .find(|scope| scope.name() == text)
            .ok_or_else(|| UnknownScope(text.to_owned()))
    }
}

/// The permission that a route needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// No permission.
    Nothing,
    /// The caller needs this scope, but may be restricted to some formats, ledgers or series.
    Scope(Scope),
    /// The caller needs this scope, and must not be restricted to some formats, ledgers or series,
    /// because the response covers all of them.
    Everything(Scope),
    /// Permission to mint ids of the format in the path. The scope is `ledger` for a chained
    /// format, whose ids belong to ledger events, and `mint` for any other.
    MintFormat,
    /// The caller needs this scope, and permission for the format that the path names.
    Format(Scope),
    /// The scope `ledger`, and permission for at least one format whose ids belong to events in a
    /// ledger.
    Ledgers,
    /// The permission [`Need::Ledgers`], and permission for the ledger in the path.
    Ledger,
    /// The permission [`Need::Ledgers`], for a caller that is not restricted to some ledgers.
    /// Routes without an existing ledger need this permission, for example to create a ledger.
    AnyLedger,
    /// Permission to read conjunctions. The caller needs the scope `ledger` and must not be
    /// restricted to some ledgers, because conjunctions are not part of a ledger. The handler also
    /// checks that the caller may use the format.
    Conjunctions,
    /// The scope `number`, and permission for the series of numbers that the path names. The
    /// caller's permit is passed to the handler.
    Series,
    /// The scopes `number` and `import`, and permission for the series of numbers that the path
    /// names. If the path has `*`, which stands for all series, the caller must not be restricted
    /// to some formats, ledgers or series.
    ResumedSeries,
    /// Any valid token or certificate. Unknown routes need this, so that strangers do not learn
    /// which routes exist.
    Token,
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn every_scope_is_read_as_it_is_written() {
        for scope in Scope::ALL {
            assert_eq!(scope.name().parse(), Ok(scope));
            assert_eq!(
                serde_json::to_string(&scope).expect("a text"),
                format!("\"{scope}\"")
            );
        }
        assert_eq!(
            "Mint".parse::<Scope>(),
            Err(UnknownScope("Mint".to_owned()))
        );
    }
}
