//! What an error of etcd means for the request that got it: certainly not done, or perhaps.
//!
//! Only what etcd refuses before it proposes a request to its members, or when it applies it, is certainly not done; every
//! other error leaves the request on its way. Source: `server/etcdserver/api/v3rpc/rpctypes/error.go` of etcd, whose texts
//! have been the same since 3.1.

use std::error::Error as _;

use etcd_client::Error;
use tonic::{Code, ConnectError, Status};

use crate::storage::coordinator::CoordinatorError;

/// Refused without having been proposed, for now: another member, or the same one later, may take it.
const NOT_PROPOSED: [&str; 2] = ["etcdserver: no leader", "etcdserver: too many requests"];

/// Refused when it was applied, because the quota is used up.
const FULL: &str = "etcdserver: mvcc: database space exceeded";

/// What became of a request that got this error.
pub(super) fn outcome_of(error: &Error) -> CoordinatorError {
    match error {
        Error::GRpcStatus(status) => outcome_of_status(status),
        Error::InvalidArgs(_) | Error::InvalidUri(_) | Error::InvalidMetadataValue(_) => {
            CoordinatorError::Refused(error.to_string())
        }
        Error::EndpointError(_) | Error::EndpointsNotManaged => {
            CoordinatorError::NotSent(error.to_string())
        }
        Error::TransportError(_)
        | Error::IoError(_)
        | Error::WatchError(_)
        | Error::Utf8Error(_)
        | Error::LeaseKeepAliveError(_)
        | Error::ElectError(_)
        | Error::Internal(_) => CoordinatorError::NoAnswer(error.to_string()),
    }
}

fn outcome_of_status(status: &Status) -> CoordinatorError {
    let message = status.message().to_owned();
    if has_not_connected(status) || NOT_PROPOSED.contains(&status.message()) {
        return CoordinatorError::NotSent(message);
    }
    match status.code() {
        Code::ResourceExhausted if message == FULL => CoordinatorError::Full(message),
        Code::ResourceExhausted
        | Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Unauthenticated => CoordinatorError::Refused(message),
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => CoordinatorError::NoAnswer(message),
    }
}

/// Whether there was no connection that the request could have gone by.
fn has_not_connected(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_refused_for_certain_is_called_not_done() {
        let of = |code, message: &str| outcome_of(&Error::GRpcStatus(Status::new(code, message)));
        assert!(matches!(
            of(Code::Unavailable, "etcdserver: no leader"),
            CoordinatorError::NotSent(_)
        ));
        assert!(matches!(
            of(Code::ResourceExhausted, "etcdserver: too many requests"),
            CoordinatorError::NotSent(_)
        ));
        assert!(matches!(
            of(Code::ResourceExhausted, FULL),
            CoordinatorError::Full(_)
        ));
        for refused in [
            "etcdserver: request is too large",
            "etcdserver: too many operations in txn request",
        ] {
            assert!(
                matches!(
                    of(Code::InvalidArgument, refused),
                    CoordinatorError::Refused(_)
                ),
                "{refused}"
            );
        }
        assert!(matches!(
            of(Code::NotFound, "etcdserver: requested lease not found"),
            CoordinatorError::Refused(_)
        ));
        for (code, perhaps) in [
            (Code::Unavailable, "etcdserver: leader changed"),
            (Code::Unavailable, "etcdserver: request timed out"),
            (
                Code::Unavailable,
                "etcdserver: request timed out, possibly due to connection lost",
            ),
            (Code::Unavailable, "transport error"),
            (Code::Unknown, "raft proposal dropped"),
            (Code::DeadlineExceeded, "context deadline exceeded"),
            (Code::Cancelled, "operation was canceled"),
        ] {
            assert!(
                matches!(of(code, perhaps), CoordinatorError::NoAnswer(_)),
                "{perhaps}"
            );
        }
    }
}
