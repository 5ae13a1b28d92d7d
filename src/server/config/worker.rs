//! Which worker numbers this process mints with.
//!
//! Two processes with the same slot mint the same ids, so a slot is taken only where something keeps a second process
//! from it: the lock of the data directory, a lease, or the operator's word (`worker.exclusive`).

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU32;

use serde::{Deserialize, Deserializer};

use super::value::{read_number_or_text, whole};

/// The section `worker`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkerConfig {
    /// This process's place among `slots`. Default none: the process is alone and has slot 0.
    #[serde(deserialize_with = "some_slot")]
    pub slot: Option<Slot>,
    /// How many processes there can ever be: 1 to 2^32 - 1; the formats set the true limit. Default 1.
    #[serde(deserialize_with = "whole::<_, _, 1, 4_294_967_295>")]
    pub slots: u32,
    /// How many worker numbers one process has in each format. Default: auto.
    #[serde(deserialize_with = "lanes")]
    pub lanes: Lanes,
    /// The operator's word that no second process ever runs with this slot, not even for a moment. Default false.
    pub exclusive: bool,
    /// The number in fields of kind shard: 0 to 2^63 - 1; the formats set the true limit. Default 0.
    #[serde(deserialize_with = "whole::<_, _, 0, { i64::MAX }>")]
    pub shard: u64,
    #[serde(skip)]
    assignment: Assignment,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self {
            slot: None,
            slots: 1,
            lanes: Lanes::Auto,
            exclusive: false,
            shard: 0,
            assignment: Assignment::default(),
        }
    }
}

impl WorkerConfig {
    /// The slot of this process, settled when the configuration was loaded.
    #[must_use]
    pub const fn assignment(&self) -> Assignment {
        self.assignment
    }

    /// As settled in a fleet of `slots`, which only builds with etcd load, for tests.
    #[cfg(test)]
    pub(crate) fn leased(slots: u32) -> WorkerConfig {
        let assignment = Assignment {
            slot: 0,
            slots,
            kind: AssignmentKind::Leased,
        };
        WorkerConfig {
            slots,
            assignment,
            ..WorkerConfig::default()
        }
    }

    /// `is_fleet`: nodes take their slots from an etcd, which gives each to one of them.
    pub(super) fn assign(
        &mut self,
        here: &Surroundings,
        is_fleet: bool,
    ) -> Result<(), SlotRefusal> {
        if here.kubernetes && !self.exclusive && !is_fleet {
            return Err(SlotRefusal::SharedUnderKubernetes);
        }
        if self.slot.is_some() && is_fleet {
            return Err(SlotRefusal::Leased);
        }
        if self.slot.is_some() && !self.exclusive {
            return Err(SlotRefusal::NotExclusive);
        }
        let (slot, kind) = match self.slot {
            None if is_fleet => (0, AssignmentKind::Leased),
            None => (0, AssignmentKind::Alone),
            Some(Slot::Number(slot)) => (slot, AssignmentKind::Configured),
            Some(Slot::Ordinal) => (here.ordinal()?, AssignmentKind::Ordinal),
        };
        if slot >= self.slots {
            return Err(SlotRefusal::BeyondSlots {
                slot,
                slots: self.slots,
            });
        }
        self.assignment = Assignment {
            slot,
            slots: self.slots,
            kind,
        };
        Ok(())
    }
}

/// How the configuration names a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// The slot itself, below `slots`.
    Number(u32),
    /// The number at the end of the host name, see [`ordinal_of`].
    Ordinal,
}

fn some_slot<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Slot>, D::Error> {
    let number = |number| u32::try_from(number).ok().map(Slot::Number);
    let word = |text: &str| (text == "ordinal").then_some(Slot::Ordinal);
    read_number_or_text(
        deserializer,
        "a slot number from 0 or \"ordinal\"",
        number,
        word,
    )
    .map(Some)
}

/// How many worker numbers one process has in each format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lanes {
    /// As many as fit, at most 8; one where the slot is configured or ordinal without etcd.
    Auto,
    /// This many.
    Count(NonZeroU32),
}

fn lanes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Lanes, D::Error> {
    let number = |number| {
        u32::try_from(number)
            .ok()
            .and_then(NonZeroU32::new)
            .map(Lanes::Count)
    };
    let word = |text: &str| (text == "auto").then_some(Lanes::Auto);
    read_number_or_text(
        deserializer,
        "a number of lanes from 1 or \"auto\"",
        number,
        word,
    )
}

/// The slot of this process: `slot < slots`, always.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assignment {
    /// The place of this process, from 0.
    pub slot: u32,
    /// How many places there are, at least 1.
    pub slots: u32,
    /// How the slot was found.
    pub kind: AssignmentKind,
}

/// Slot 0 of 1: the only process there is.
impl Default for Assignment {
    fn default() -> Self {
        Self {
            slot: 0,
            slots: 1,
            kind: AssignmentKind::Alone,
        }
    }
}

/// How the slot of a process was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssignmentKind {
    /// No slot is configured: slot 0.
    Alone,
    /// The number in `worker.slot`.
    Configured,
    /// The number at the end of the host name.
    Ordinal,
    /// By etcd, while the process runs: the slot of the assignment says nothing.
    Leased,
}

/// The number at the end of a host name: 3 of `idmint-3` and of `idmint-3.idmint.svc`, as a StatefulSet names its pods.
///
/// Shape: a name, `-`, decimal digits. A leading zero is no ordinal, or `node-3` and `node-03` would share a slot.
///
/// ```
/// use idmint::server::config::ordinal_of;
///
/// assert_eq!(ordinal_of("idmint-3"), Some(3));
/// assert_eq!(ordinal_of("idmint-7d9f8b6c4-x2x5z"), None);
/// ```
#[must_use]
pub fn ordinal_of(host: &str) -> Option<u32> {
    let (name, digits) = host.split('.').next()?.rsplit_once('-')?;
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    if name.is_empty() || !is_plain {
        None
    } else {
        digits.parse().ok()
    }
}

/// What the environment says about where this process runs.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    pub(super) host: Option<String>,
    pub(super) kubernetes: bool,
}

impl Surroundings {
    pub(super) fn read(env: &BTreeMap<String, String>) -> Self {
        // A login shell knows HOSTNAME and does not always export it; the kernel always knows.
        let of_kernel = || {
            fs::read_to_string("/proc/sys/kernel/hostname")
                .ok()
                .map(|name| name.trim_end().to_owned())
        };
        Self {
            host: env
                .get("HOSTNAME")
                .filter(|name| !name.is_empty())
                .cloned()
                .or_else(of_kernel),
            kubernetes: env.contains_key("KUBERNETES_SERVICE_HOST"),
        }
    }

    fn ordinal(&self) -> Result<u32, SlotRefusal> {
        let host = self.host.as_deref().unwrap_or_default();
        ordinal_of(host).ok_or_else(|| SlotRefusal::NoOrdinal {
            host: host.to_owned(),
        })
    }
}

/// Why this process gets no slot.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SlotRefusal {
    #[error(
        "under Kubernetes two pods of one workload can run at once, a rolling update does it, and would mint the same \
         ids from slot 0. Set worker.exclusive = true where that cannot happen (a StatefulSet with worker.slot = \
         \"ordinal\" and worker.slots, or one replica with the strategy Recreate), or share an etcd (storage.engine)"
    )]
    SharedUnderKubernetes,
    #[error(
        "a slot of one's own choice needs worker.exclusive = true, the operator's word that no second process ever \
         runs with it: without etcd nothing else keeps one from it, and both would mint the same ids"
    )]
    NotExclusive,
    #[error(
        "with storage.engine = \"etcd\" a node has no slot of its own choice: it leases one that is free and goes to another when \
         it loses it. Leave worker.slot out"
    )]
    Leased,
    #[error(
        "the host name {host:?} has no ordinal: \"ordinal\" needs a name that ends in - and a number, as idmint-3"
    )]
    NoOrdinal { host: String },
    #[error(
        "slot {slot} is not below worker.slots = {slots}: slots count from 0, and worker.slots is how many there are"
    )]
    BeyondSlots { slot: u32, slots: u32 },
}

impl SlotRefusal {
    /// The setting to change.
    pub(super) const fn key(&self) -> &'static str {
        match self {
            Self::SharedUnderKubernetes => "worker.exclusive",
            Self::NotExclusive
            | Self::Leased
            | Self::NoOrdinal { .. }
            | Self::BeyondSlots { .. } => "worker.slot",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> Surroundings {
        Surroundings {
            host: Some(name.to_owned()),
            kubernetes: false,
        }
    }

    fn assign(mut worker: WorkerConfig, here: &Surroundings) -> Result<Assignment, SlotRefusal> {
        worker.assign(here, false).map(|()| worker.assignment())
    }

    #[test]
    fn the_ordinal_is_the_number_after_the_last_dash_of_the_first_label() {
        assert_eq!(ordinal_of("idmint-0"), Some(0));
        assert_eq!(ordinal_of("id-mint-12"), Some(12));
        assert_eq!(ordinal_of("idmint-3.idmint.default.svc"), Some(3));
        assert_eq!(ordinal_of("idmint-4294967295"), Some(u32::MAX));
        for name in [
            "",
            "idmint",
            "idmint-",
            "-3",
            "idmint-03",
            "idmint-x3",
            "idmint-3x",
            "idmint-4294967296",
            "a-+3",
        ] {
            assert_eq!(ordinal_of(name), None, "{name:?}");
        }
    }

    #[test]
    fn without_a_slot_the_process_is_alone_and_has_the_first() {
        let alone = assign(
            WorkerConfig {
                slots: 8,
                ..WorkerConfig::default()
            },
            &host("x"),
        );
        assert_eq!(
            alone,
            Ok(Assignment {
                slot: 0,
                slots: 8,
                kind: AssignmentKind::Alone
            })
        );
    }

    #[test]
    fn a_slot_is_the_configured_number_or_the_host_s_ordinal() {
        let worker = WorkerConfig {
            slots: 4,
            exclusive: true,
            ..WorkerConfig::default()
        };
        let configured = WorkerConfig {
            slot: Some(Slot::Number(2)),
            ..worker.clone()
        };
        let ordinal = WorkerConfig {
            slot: Some(Slot::Ordinal),
            ..worker
        };
        assert_eq!(
            assign(configured, &host("idmint-3")),
            Ok(Assignment {
                slot: 2,
                slots: 4,
                kind: AssignmentKind::Configured
            })
        );
        assert_eq!(
            assign(ordinal.clone(), &host("idmint-3")),
            Ok(Assignment {
                slot: 3,
                slots: 4,
                kind: AssignmentKind::Ordinal
            })
        );
        assert_eq!(
            assign(ordinal.clone(), &host("idmint-4")),
            Err(SlotRefusal::BeyondSlots { slot: 4, slots: 4 })
        );
        assert_eq!(
            assign(ordinal.clone(), &host("idmint")),
            Err(SlotRefusal::NoOrdinal {
                host: "idmint".into()
            })
        );
        assert_eq!(
            assign(ordinal, &Surroundings::default()),
            Err(SlotRefusal::NoOrdinal {
                host: String::new()
            })
        );
    }

    #[test]
    fn the_operator_s_word_is_needed_for_a_slot_and_under_kubernetes() {
        let plain = WorkerConfig::default();
        let slot = WorkerConfig {
            slot: Some(Slot::Number(0)),
            ..plain.clone()
        };
        let vouched = WorkerConfig {
            exclusive: true,
            ..slot.clone()
        };
        let kubernetes = Surroundings {
            host: None,
            kubernetes: true,
        };
        let here = Surroundings::default();

        assert_eq!(assign(slot, &here), Err(SlotRefusal::NotExclusive));
        assert!(assign(vouched.clone(), &here).is_ok());

        assert_eq!(
            assign(plain, &kubernetes),
            Err(SlotRefusal::SharedUnderKubernetes)
        );
        assert!(assign(vouched, &kubernetes).is_ok());
    }

    #[test]
    fn in_a_fleet_nobody_vouches_and_nobody_chooses() {
        let kubernetes = Surroundings {
            host: Some("idmint-3".to_owned()),
            kubernetes: true,
        };
        let mut worker = WorkerConfig {
            slots: 32,
            ..WorkerConfig::default()
        };
        assert_eq!(worker.assign(&kubernetes, true), Ok(()));
        assert_eq!(
            worker.assignment(),
            Assignment {
                slot: 0,
                slots: 32,
                kind: AssignmentKind::Leased
            }
        );
        worker.slot = Some(Slot::Ordinal);
        assert_eq!(worker.assign(&kubernetes, true), Err(SlotRefusal::Leased));
    }
}
