//! What a route asks of whoever calls it.

use super::scope::Scope;

/// What a caller must be permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Need {
    /// Nothing: anybody may.
    Nothing,
    /// This scope.
    Scope(Scope),
    /// This scope, of a caller who is confined to nothing: the answer tells of everything.
    Everything(Scope),
    /// To mint the format that the path names: the scope `ledger` where its ids are made of events, else `mint`.
    MintFormat,
    /// This scope, and the format that the path names.
    Format(Scope),
    /// The scope `ledger`, and a format whose ids are made of events: ledgers belong to those.
    Ledgers,
    /// The same, and the ledger that the path names.
    Ledger,
    /// The same, for every ledger.
    AnyLedger,
    /// The scope `ledger` of a caller who is not confined to ledgers; the format is looked at where it is read.
    Conjunctions,
    /// The scope `number`, and the series that the path names. The handler learns who asks.
    Series,
    /// Some token: nobody else learns which routes there are.
    Token,
}
