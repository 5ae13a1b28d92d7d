//! What a token can be good for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A kind of routes that a token opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Ids by number, and of reports.
    Mint,
    /// Ledgers: created, appended to and read; conjunctions: read.
    Ledger,
    /// What ids mean, and which formats there are.
    Decode,
    /// The metrics.
    Metrics,
    /// Beside `ledger`: imports into ledgers that others append to, who are refused until the import has ended.
    Import,
    /// Numbers without gaps: given, made void and read.
    Number,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Scope; 6] = [
        Scope::Mint,
        Scope::Ledger,
        Scope::Decode,
        Scope::Metrics,
        Scope::Import,
        Scope::Number,
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Mint => "mint",
            Scope::Ledger => "ledger",
            Scope::Decode => "decode",
            Scope::Metrics => "metrics",
            Scope::Import => "import",
            Scope::Number => "number",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A name that is no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no scope: there are mint, ledger, decode, metrics, import and number")]
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
