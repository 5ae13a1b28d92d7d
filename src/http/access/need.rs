//! What a route asks of whoever calls it.

use super::scope::Scope;

/// What a caller must be permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Need {
    /// Nothing: anybody may.
    Nothing,
    /// This scope.
    Scope(Scope),
    /// To mint the format that the path names: the scope `ledger` where its ids are made of events, else `mint`.
    MintFormat,
    /// This scope, and the format that the path names.
    Format(Scope),
    /// The scope `ledger`, and the ledger that the path names.
    Ledger,
    /// The scope `ledger` for every ledger.
    AnyLedger,
    /// Some token: nobody else learns which routes there are.
    Token,
}
