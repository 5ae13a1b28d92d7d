//! `idmint status`.

use clap::Args;

use crate::cli::exit::{Exit, Failure};
use crate::cli::print::print;
use crate::cli::running_service::{AccessArgs, ask_once, service_url};
use crate::wire::Readiness;

/// Say whether a running service mints, what is wrong, and what to do about it: exit code 0, 1 or 69.
#[derive(Debug, Args)]
pub(in crate::cli) struct Status {
    /// Where the service listens.
    #[arg(long, default_value_t = service_url())]
    server: String,
    #[command(flatten)]
    access: AccessArgs,
}

/// What helps when a node is not ready for one reason.
struct Advice {
    /// The slug of the problem that callers get.
    reason: &'static str,
    safe_action: &'static str,
    /// Where docs/OPERATIONS.md says more.
    heading: &'static str,
}

const ADVICE: [Advice; 7] = [
    Advice {
        reason: "clock-behind",
        safe_action: "set the clock right; the node mints again by itself once its clock has caught up",
        heading: "Not ready",
    },
    Advice {
        reason: "clock-jumped",
        safe_action: "set the clock right; the node mints again by itself",
        heading: "Not ready",
    },
    Advice {
        reason: "horizon-reached",
        safe_action: "wait for some seconds; if it stays so, see to the disk of storage.data_dir",
        heading: "Not ready",
    },
    Advice {
        reason: "no-worker-slot",
        safe_action: "look at `idmint fleet status`; bring back the quorum of etcd; if etcd was restored, or the fleet begins too late, \
                      start no node and run `idmint fleet fence-restore`",
        heading: "The etcd of a fleet",
    },
    Advice {
        reason: "draining",
        safe_action: "nothing: the process was told to end; its supervisor starts the next one",
        heading: "Start and stop",
    },
    Advice {
        reason: "storage-unavailable",
        safe_action: "make room outside of storage.data_dir, or mend the disk; delete nothing in it",
        heading: "Records unavailable",
    },
    Advice {
        reason: "coordinator-unavailable",
        safe_action: "bring back the quorum of etcd; start no empty one",
        heading: "The etcd of a fleet",
    },
];

impl Status {
    /// Prints what the service says of itself, and what to do.
    ///
    /// # Errors
    /// 1 when it does not mint, or stores nothing; 69 when it cannot be asked.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let client = self.access.client(&self.server)?;
        let readiness = ask_once(client, async |client| client.readiness().await);
        let readiness = readiness.map_err(|failure| {
            failure.and("start it again: it goes on above every id that it minted; see docs/OPERATIONS.md, \"Down\"")
        })?;
        print(format_args!("{}", told(&readiness)))?;
        match (&readiness.reason, readiness.records.as_str()) {
            (None, "ready") => Ok(()),
            (Some(reason), _) => Err(advise(reason, "mints no sequenced ids")),
            (None, reason) => Err(advise(reason, "stores no events")),
        }
    }
}

/// The state of a node, a line each.
fn told(readiness: &Readiness) -> String {
    let slot = readiness
        .slot
        .map_or("none".to_owned(), |slot| slot.to_string());
    let mints = readiness
        .reason
        .as_ref()
        .map_or("yes".to_owned(), |reason| format!("no, {reason}"));
    let mut lines = format!("mints    {mints}\nslot     {slot}\n");
    if let Some(horizon) = &readiness.horizon {
        // While nobody asks for ids it lies in the past, and nothing is wrong.
        lines += &format!("reserved until {horizon}, and further as ids are asked for\n");
    }
    lines += &format!("records  {}\n", readiness.records);
    if let Some(detail) = &readiness.detail {
        lines += &format!("why      {detail}\n");
    }
    lines
}

fn advise(reason: &str, what: &str) -> Failure {
    let message = match ADVICE.iter().find(|advice| advice.reason == reason) {
        Some(Advice {
            safe_action,
            heading,
            ..
        }) => {
            format!("it {what}: {safe_action}; see docs/OPERATIONS.md, \"{heading}\"")
        }
        None => format!("it {what}: see GET /problems/{reason}"),
    };
    Failure::new(Exit::No, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Slug;

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
