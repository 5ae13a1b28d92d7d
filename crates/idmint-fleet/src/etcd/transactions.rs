//! Translates transactions into etcd's types, and etcd's responses back.

use etcd_client::{
    Compare as EtcdCompare, CompareOp, Error, GetOptions, KeyValue as EtcdKeyValue, PutOptions,
    SortOrder, SortTarget, Txn, TxnOp, TxnOpResponse, TxnResponse,
};

use crate::coordinator::{
    Compare, KeyValue, Outcome, Range, Revision, Snapshot, Term, Transaction, Write,
};

/// Translates a transaction into etcd's type.
pub(super) fn to_txn(transaction: &Transaction) -> Txn {
    let compare: Vec<EtcdCompare> = transaction.compare.iter().map(to_compare).collect();
    let write = transaction.write.iter().map(to_op);
    let write: Vec<TxnOp> = write
        .chain(
            transaction
                .then_read
                .iter()
                .map(|range| to_get(range, None)),
        )
        .collect();
    let otherwise: Vec<TxnOp> = transaction
        .otherwise
        .iter()
        .map(|range| to_get(range, None))
        .collect();
    Txn::new().when(compare).and_then(write).or_else(otherwise)
}

/// Returns a transaction that reads ranges at the revision `at`, or at the current revision if `at`
/// is `None`.
pub(super) fn to_read(ranges: &[Range], at: Option<Revision>) -> Txn {
    Txn::new().and_then(
        ranges
            .iter()
            .map(|range| to_get(range, at))
            .collect::<Vec<_>>(),
    )
}

/// Converts etcd's response to a transaction into the transaction's outcome.
///
/// # Errors
/// Returns [`Error`] if the response has a form that etcd never sends. The outcome is then unknown.
pub(super) fn outcome_of(response: &TxnResponse) -> Result<Outcome, Error> {
    match response.succeeded() {
        true => Ok(Outcome::Committed(snapshot_of(response)?)),
        false => Ok(Outcome::Refused(snapshot_of(response)?)),
    }
}

/// Returns the entries in etcd's response to a transaction that reads.
///
/// # Errors
/// Returns the errors of [`outcome_of`].
pub(super) fn snapshot_of(response: &TxnResponse) -> Result<Snapshot, Error> {
    let entries = |operation: &TxnOpResponse| match operation {
        TxnOpResponse::Get(found) => Some(
            found
                .kvs()
                .iter()
                .map(to_key_value)
                .collect::<Result<Vec<KeyValue>, Error>>(),
        ),
        TxnOpResponse::Put(_) | TxnOpResponse::Delete(_) => None,
        TxnOpResponse::Txn(_) => Some(Err(strange("a transaction within"))),
    };
    let ranges = response
        .op_responses()
        .iter()
        .filter_map(entries)
        .collect::<Result<_, _>>()?;
    let header = response.header().ok_or_else(|| strange("no header"))?;
    Ok(Snapshot {
        revision: to_revision(header.revision())?,
        ranges,
        term: Term {
            cluster: header.cluster_id(),
            term: header.raft_term(),
        },
    })
}

fn to_compare(compare: &Compare) -> EtcdCompare {
    match compare {
        Compare::Modified(key, revision) => {
            EtcdCompare::mod_revision(key.as_bytes(), CompareOp::Equal, to_etcd(*revision))
        }
        Compare::Created(key, revision) => {
            EtcdCompare::create_revision(key.as_bytes(), CompareOp::Equal, to_etcd(*revision))
        }
    }
}

fn to_op(write: &Write) -> TxnOp {
    match write {
        Write::Put { key, value, lease } => {
            let options = lease.map(|lease| PutOptions::new().with_lease(lease.0));
            TxnOp::put(key.as_bytes(), value.as_slice(), options)
        }
        Write::Delete(key) => TxnOp::delete(key.as_bytes(), None),
    }
}

fn to_get(range: &Range, at: Option<Revision>) -> TxnOp {
    let mut options =
        GetOptions::new().with_limit(i64::try_from(range.count_max).unwrap_or(i64::MAX));
    if let Some(to) = &range.to {
        options = options.with_range(to.as_bytes());
    }
    if range.is_descending {
        options = options.with_sort(SortTarget::Key, SortOrder::Descend);
    }
    if let Some(at) = at {
        options = options.with_revision(to_etcd(at));
    }
    TxnOp::get(range.from.as_bytes(), Some(options))
}

fn to_key_value(found: &EtcdKeyValue) -> Result<KeyValue, Error> {
    Ok(KeyValue {
        key: found.key_str()?.to_owned(),
        value: found.value().to_vec(),
        created: to_revision(found.create_revision())?,
        modified: to_revision(found.mod_revision())?,
    })
}

fn to_revision(revision: i64) -> Result<Revision, Error> {
    u64::try_from(revision)
        .map(Revision)
        .map_err(|_| strange("a negative revision"))
}

fn to_etcd(revision: Revision) -> i64 {
    i64::try_from(revision.0).expect("revisions come from etcd, which counts them in 63 bits")
}

fn strange(what: &str) -> Error {
    Error::Internal(format!("the response of etcd has {what}"))
}
