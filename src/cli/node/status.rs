//! The command `idmint status`, which shows the problems of a running service and how to fix them.

use std::io::{self, ErrorKind};

use clap::Args;
use rustls::CertificateError;

use crate::cli::exit::Failure;
use crate::cli::print::print;
use crate::cli::running_service::{ServiceArgs, block_on, of_one_request};
use idmint_client::ClientError;
use idmint_core::time::{Clock, UnixNanos, UnixTime};
use idmint_wire::Readiness;

/// Show if a running service mints, what is wrong, and how to fix it. The exit code is 0 if all is well.
#[derive(Debug, Args)]
pub(in crate::cli) struct Status {
    #[command(flatten)]
    service: ServiceArgs,
}

/// The advice to an operator for one of the reasons why a node may not be ready.
struct Advice {
    /// The short name (slug) of the problem in the response to a refused caller, such as
    /// `clock-behind`.
    reason: &'static str,
    safe_action: &'static str,
    /// The section of docs/OPERATIONS.md with details.
    heading: &'static str,
}

const ADVICE: [Advice; 7] = [
    Advice {
        reason: "clock-behind",
        safe_action: "correct the clock; the node mints again by itself once its clock has caught up",
        heading: "Not ready",
    },
    Advice {
        reason: "clock-jumped",
        safe_action: "correct the clock; the node mints again by itself",
        heading: "Not ready",
    },
    Advice {
        reason: "horizon-reached",
        safe_action: "wait a few seconds; if it lasts, check the disk of storage.data_dir",
        heading: "Not ready",
    },
    Advice {
        reason: "no-worker-slot",
        safe_action: "run `idmint fleet status`; restore the quorum of etcd; if etcd was restored, or the \
            fleet begins too late, start no node and run `idmint fleet fence-restore`",
        heading: "The etcd of a fleet",
    },
    Advice {
        reason: "draining",
        safe_action: "do nothing: the process was asked to stop, and its supervisor starts the next one",
        heading: "Start and stop",
    },
    Advice {
        reason: "storage-unavailable",
        safe_action: "free space outside storage.data_dir, or repair the disk; delete nothing in it",
        heading: "Records unavailable",
    },
    Advice {
        reason: "coordinator-unavailable",
        safe_action: "restore the quorum of etcd; do not start an empty one",
        heading: "The etcd of a fleet",
    },
];

impl Status {
    /// Prints the state of the service, and how to fix its problems.
    ///
    /// # Errors
    /// Returns exit code 1 if the service does not mint or cannot store events, and 69 if it is
    /// unreachable.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let client = self.service.client()?;
        let readiness = block_on(async {
            client.readiness().await.map_err(|error| {
                let remedy = remedy_of(&error);
                of_one_request(error).and(remedy)
            })
        })?;
        print(format_args!("{}", told(&readiness, Clock::system().now())))?;
        match (&readiness.reason, readiness.records.as_str()) {
            (None, "ready") => Ok(()),
            (Some(reason), _) => Err(advise(reason, "mints no sequenced ids", None)),
            (None, "numbers-held") => Err(Failure::no(
                "the service gives no numbers: find the last number of each series in your own records, and run \
                 `idmint numbers resume`; see docs/NUMBERS.md, \"After a restore\"",
            )),
            (None, reason) => {
                let detail = readiness.records_detail.as_deref();
                Err(advise(reason, "stores no events", detail))
            }
        }
    }
}

/// Returns the advice to an operator if the state of the node could not be requested because of
/// `error`.
fn remedy_of(error: &ClientError) -> String {
    use CertificateError::{
        Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet,
        NotValidYetContext, UnknownIssuer,
    };
    let (safe_action, heading) = match error {
        ClientError::Untrusted {
            cause: rustls::Error::InvalidCertificate(cause),
            ..
        } => match cause {
            Expired | ExpiredContext { .. } => (
                "replace http.tls.certificate and its key, then send SIGHUP to the service",
                "Expiring",
            ),
            NotValidYet | NotValidYetContext { .. } => (
                "correct the clock of this machine, or renew the certificate",
                "TLS",
            ),
            UnknownIssuer => (
                "name the authority of the certificate with --ca, or renew the certificate",
                "TLS",
            ),
            NotValidForName | NotValidForNameContext { .. } => {
                ("use a name that the certificate has in --server", "TLS")
            }
            _ => ("renew the certificate of the service", "TLS"),
        },
        ClientError::Unreachable { .. } => {
            let kind = error.cause().map(io::Error::kind);
            match (error.cause::<rustls::Error>(), kind) {
                (Some(rustls::Error::AlertReceived(_)), _) => (
                    "the service refuses the connection or the certificate of --cert: renew that",
                    "TLS",
                ),
                (Some(_), _) => (
                    "if the service does not use TLS, use http:// in --server",
                    "TLS",
                ),
                (None, Some(ErrorKind::ConnectionRefused)) => (
                    "start it again: it continues above every id that it minted",
                    "Down",
                ),
                (None, Some(_)) => ("check the address in --server and the network", "Down"),
                (None, None) => ("if the service uses TLS, use https:// in --server", "TLS"),
            }
        }
        ClientError::Refused(refusal) | ClientError::Busy(refusal) if refusal.is_explained => {
            return format!("see GET /problems/{}", refusal.slug);
        }
        _ => (
            "another program answers: check the address in --server",
            "Down",
        ),
    };
    format!("{safe_action}; see docs/OPERATIONS.md, \"{heading}\"")
}

/// Returns the state of a node as text, with one fact per line. `now` is the current time.
fn told(readiness: &Readiness, now: UnixNanos) -> String {
    let slot = readiness
        .slot
        .map_or("none".to_owned(), |slot| slot.to_string());
    let mints = readiness
        .reason
        .as_ref()
        .map_or("yes".to_owned(), |reason| format!("no, {reason}"));
    let mut lines = format!("mints    {mints}\nslot     {slot}\n");
    if let Some(horizon) = &readiness.horizon {
        // While no ids are requested, the node reserves no time. A horizon (end of the reserved
        // time) in the past is therefore not a problem.
        let has_passed = horizon
            .parse()
            .is_ok_and(|horizon: UnixTime| horizon <= now.into());
        let state = if has_passed { " (expired)" } else { "" };
        lines += &format!("reserved until {horizon}{state}, extended as ids are requested\n");
    }
    lines += &format!("records  {}\n", records_of(readiness));
    if let Some(detail) = &readiness.detail {
        lines += &format!("why      {detail}\n");
    }
    for warning in &readiness.warnings {
        lines += &format!("warning  {warning}\n");
    }
    lines
}

/// Returns a text that says if the node can store records (events, conjunctions and numbers). If it
/// cannot, the text includes the reason.
pub(super) fn records_of(readiness: &Readiness) -> String {
    let records = &readiness.records;
    match &readiness.records_detail {
        Some(detail) => format!("{records}: {detail}"),
        None => records.clone(),
    }
}

/// Returns the failure for a node that is not ready for this `reason`. `what` says what the node
/// does not do, such as `stores no events`. The node's own advice (`detail`), if any, replaces the
/// general advice, because the node may know the cause more exactly.
fn advise(reason: &str, what: &str, detail: Option<&str>) -> Failure {
    let message = match ADVICE.iter().find(|advice| advice.reason == reason) {
        Some(Advice {
            safe_action,
            heading,
            ..
        }) => {
            let safe_action = detail.unwrap_or(safe_action);
            format!("the node {what}: {safe_action}; see docs/OPERATIONS.md, \"{heading}\"")
        }
        None => format!("the node {what}: see GET /problems/{reason}"),
    };
    Failure::no(message)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use idmint_http::Slug;

    #[test]
    fn a_reservation_that_has_passed_is_marked() {
        let readiness = Readiness {
            ready: true,
            slot: Some(0),
            horizon: Some("2026-01-31T12:00:00.000000000Z".to_owned()),
            reason: None,
            detail: None,
            records: "ready".to_owned(),
            records_detail: None,
            warnings: Vec::new(),
        };
        let at = |second| {
            let noon = UnixNanos::from_seconds(1_769_860_800);
            told(
                &readiness,
                noon.before(Duration::from_secs(1)).after(second),
            )
        };
        assert!(at(Duration::ZERO).contains("\nreserved until 2026-01-31T12:00:00.000000000Z, "));
        assert!(at(Duration::from_secs(1)).contains("00000Z (expired), extended as"));
    }

    #[test]
    fn each_reason_is_the_slug_of_a_problem_and_each_heading_is_there() {
        let text = include_str!("../../../docs/OPERATIONS.md");
        for Advice {
            reason, heading, ..
        } in &ADVICE
        {
            assert!(Slug::named(reason).is_some(), "{reason}");
            let is_there = text
                .lines()
                .any(|line| line.trim_start_matches('#').strip_prefix(' ') == Some(*heading));
            assert!(is_there, "{heading}");
        }
    }
}
