//! Decides from an etcd error whether the request was certainly not done, or may have been done.
//!
//! A request was certainly not done only if etcd refused it before proposing it to the members, or
//! while applying it. After any other error the request may still be in progress. The error texts
//! below come from `server/etcdserver/api/v3rpc/rpctypes/error.go` of etcd, and have not changed
//! since version 3.1.

use std::error::Error as _;

use etcd_client::Error;
use tonic::{Code, ConnectError, Status};

use crate::coordinator::CoordinatorError;

/// The errors with which a member refuses a request temporarily, before it proposes the request to
/// the other members. The request may succeed at another member, or at the same member later.
const NOT_PROPOSED: [&str; 2] = ["etcdserver: no leader", "etcdserver: too many requests"];

/// The error of a request that etcd accepted but did not apply, because its space quota is used up.
const FULL: &str = "etcdserver: mvcc: database space exceeded";

/// The messages of errors about wrong or missing credentials. They are compared as text, because
/// their gRPC codes do not identify this cause.
const DENIED: [&str; 4] = [
    "etcdserver: authentication failed, invalid user ID or password",
    "etcdserver: authentication is not enabled",
    "etcdserver: user name is empty",
    "etcdserver: revision of auth store is old",
];

/// Translates an etcd error into an error that says whether the request may have been done.
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
        | Error::Internal(_) => {
            CoordinatorError::NoAnswer(with_root_cause(&error.to_string(), error))
        }
    }
}

fn outcome_of_status(status: &Status) -> CoordinatorError {
    let message = status.message().to_owned();
    if has_not_connected(status) || NOT_PROPOSED.contains(&status.message()) {
        return CoordinatorError::NotSent(with_root_cause(&message, status));
    }
    match status.code() {
        Code::ResourceExhausted if message == FULL => CoordinatorError::Full(message),
        Code::PermissionDenied | Code::Unauthenticated => CoordinatorError::Denied(message),
        _ if DENIED.contains(&status.message()) => CoordinatorError::Denied(message),
        Code::ResourceExhausted
        | Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented => CoordinatorError::Refused(message),
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => CoordinatorError::NoAnswer(with_root_cause(&message, status)),
    }
}

/// Returns `message` followed by the root cause of its error, for example an expired certificate.
/// The causes in between are left out because they repeat each other.
fn with_root_cause(message: &str, error: &(dyn std::error::Error + 'static)) -> String {
    let mut root = error;
    while let Some(cause) = root.source() {
        root = cause;
    }
    let root = root.to_string();
    if root.contains(message) {
        root
    } else {
        format!("{message}: {root}")
    }
}

/// `true` if the request failed because no connection was established.
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
        for (code, denied) in [
            (Code::PermissionDenied, "etcdserver: permission denied"),
            (Code::Unauthenticated, "etcdserver: invalid auth token"),
            (Code::InvalidArgument, DENIED[0]),
            (Code::FailedPrecondition, DENIED[1]),
        ] {
            assert!(
                matches!(of(code, denied), CoordinatorError::Denied(_)),
                "{denied}"
            );
        }
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
