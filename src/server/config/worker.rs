//! Settings of the worker numbers of this process, which are a part of its ids.
//!
//! Two processes with the same slot would mint the same ids. A slot is therefore used only if
//! something prevents a second process from using it: the lock of the data folder, a lease, or the
//! operator's assurance (`worker.exclusive`).

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU32;

use serde::{Deserialize, Deserializer};

use super::value::{read_number_or_text, whole};

/// The section `worker`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkerConfig {
    /// The slot of this process, which determines its worker numbers. Default: none. A node of a
    /// fleet then leases a slot from etcd, and a process that runs alone has slot 0.
    #[serde(deserialize_with = "some_slot")]
    pub slot: Option<SlotSetting>,
    /// The number of slots, which limits the number of processes: 1 to 2^32 - 1. The number cannot
    /// change after the first mint. If a format has fewer worker numbers, the limit is lower.
    /// Default: 1.
    #[serde(deserialize_with = "whole::<_, _, 1, 4_294_967_295>")]
    pub slots: u32,
    /// The number of worker numbers that a process uses in each format. Default: `None`, written
    /// `auto`. With `auto`, a process uses as many worker numbers as fit, but at most 8. If its
    /// slot is configured or taken from the host name, it uses only one.
    #[serde(deserialize_with = "lanes")]
    pub lanes: Option<NonZeroU32>,
    /// The operator's assurance that no second process ever runs with this slot, not even for a
    /// moment. Default: `false`.
    pub exclusive: bool,
    /// The value of the shard field in ids, for formats that have such a field: 0 to 2^63 - 1. A
    /// narrow field sets a lower limit. Default: 0.
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
            lanes: None,
            exclusive: false,
            shard: 0,
            assignment: Assignment::default(),
        }
    }
}

impl WorkerConfig {
    /// Returns the slot of this process, which was determined when the configuration was loaded.
    #[must_use]
    pub const fn assignment(&self) -> Assignment {
        self.assignment
    }

    /// Returns the settings for a node in a fleet with this number of slots, for tests. Only builds
    /// with etcd can load these settings from a file.
    #[cfg(all(test, feature = "etcd"))]
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

    /// Determines the slot of this process and stores it in `assignment`. `is_fleet` is `true` if
    /// nodes lease their slots from an etcd, which leases each slot to only one node at a time.
    ///
    /// `here` is `None` for a command that runs no node. Such a command mints no ids with the slot,
    /// so another process may have it. If `worker.slot` is `ordinal`, the slot counts as 0.
    pub(super) fn assign(
        &mut self,
        here: Option<&Surroundings>,
        is_fleet: bool,
    ) -> Result<(), SlotRefusal> {
        if self.slot.is_some() && is_fleet {
            return Err(SlotRefusal::Leased);
        }
        if let Some(here) = here
            && !self.exclusive
            && !is_fleet
        {
            if here.kubernetes {
                return Err(SlotRefusal::SharedUnderKubernetes);
            }
            if self.slot.is_some() {
                return Err(SlotRefusal::NotExclusive);
            }
        }
        let (slot, kind) = match self.slot {
            None if is_fleet => (0, AssignmentKind::Leased),
            None => (0, AssignmentKind::Alone),
            Some(SlotSetting::Number(slot)) => (slot, AssignmentKind::Configured),
            Some(SlotSetting::Ordinal) => {
                let slot = here.map_or(Ok(0), Surroundings::ordinal)?;
                (slot, AssignmentKind::Ordinal)
            }
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

/// The way in which the configuration names a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotSetting {
    /// The slot itself, below `slots`.
    Number(u32),
    /// The slot of this process is the number at the end of the host name. See [`ordinal_of`].
    Ordinal,
}

fn some_slot<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SlotSetting>, D::Error> {
    let number = |number| u32::try_from(number).ok().map(SlotSetting::Number);
    let word = |text: &str| (text == "ordinal").then_some(SlotSetting::Ordinal);
    let expected = "a slot number from 0 or \"ordinal\"";
    read_number_or_text(deserializer, expected, number, word).map(Some)
}

fn lanes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NonZeroU32>, D::Error> {
    let number = |number| NonZeroU32::new(u32::try_from(number).ok()?).map(Some);
    let word = |text: &str| (text == "auto").then_some(None);
    let expected = "a number of lanes from 1 or \"auto\"";
    read_number_or_text(deserializer, expected, number, word)
}

/// The slot of this process. `slot < slots` always holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assignment {
    /// The slot, from 0.
    pub slot: u32,
    /// The number of slots, at least 1.
    pub slots: u32,
    /// The way in which the slot was determined.
    pub kind: AssignmentKind,
}

/// The default is slot 0, the only slot (place for a process), for a process that runs alone.
impl Default for Assignment {
    fn default() -> Self {
        Self {
            slot: 0,
            slots: 1,
            kind: AssignmentKind::Alone,
        }
    }
}

/// The way in which a process gets its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssignmentKind {
    /// No slot is configured, so the process has slot 0.
    Alone,
    /// `worker.slot` contains the number of the slot.
    Configured,
    /// The host name ends with the number of the slot.
    Ordinal,
    /// The slot (place in the fleet) is leased from etcd while the process runs. The field `slot`
    /// of `Assignment` has no meaning then.
    Leased,
}

/// Returns the number at the end of a host name. For example, a StatefulSet names its pods
/// `idmint-3` or `idmint-3.idmint.svc`, and the number in both names is 3.
///
/// The part of the host name before the first dot must consist of a name, a hyphen and decimal
/// digits. A number with a leading zero is refused, because `node-3` and `node-03` would get the
/// same slot.
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

/// The facts about this machine and its environment from which the slot is determined.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    pub(super) host: Option<String>,
    pub(super) kubernetes: bool,
}

impl Surroundings {
    pub(super) fn read(env: &BTreeMap<String, String>) -> Self {
        // Ask the kernel if the variable HOSTNAME is missing. A login shell sets it, but does not
        // always export it to other programs.
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

/// The reason why the configuration gives this process no slot.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SlotRefusal {
    #[error(
        "under Kubernetes two pods of one workload can run at once, as in a rolling update, and would mint the same \
         ids from slot 0. Set worker.exclusive = true where that cannot happen (a StatefulSet with worker.slot = \
         \"ordinal\" and worker.slots, or one replica with the strategy Recreate), or share an etcd (storage.engine)"
    )]
    SharedUnderKubernetes,
    #[error(
        "worker.slot needs worker.exclusive = true, the operator's promise that no second process ever runs with that \
         slot: without etcd nothing else prevents it, and both would mint the same ids"
    )]
    NotExclusive,
    #[error(
        "with storage.engine = \"etcd\" a node leases a free slot, and another one when it loses it. Leave \
         worker.slot out"
    )]
    Leased,
    #[error(
        "the host name {host:?} has no ordinal: \"ordinal\" needs a name that ends in - and a number, as idmint-3"
    )]
    NoOrdinal { host: String },
    #[error(
        "slot {slot} is not below worker.slots = {slots}: slots count from 0 to worker.slots - 1"
    )]
    BeyondSlots { slot: u32, slots: u32 },
}

impl SlotRefusal {
    /// Returns the key of the setting that the operator should change.
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
        worker
            .assign(Some(here), false)
            .map(|()| worker.assignment())
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
            slot: Some(SlotSetting::Number(2)),
            ..worker.clone()
        };
        let ordinal = WorkerConfig {
            slot: Some(SlotSetting::Ordinal),
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
            slot: Some(SlotSetting::Number(0)),
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
        assert_eq!(worker.assign(Some(&kubernetes), true), Ok(()));
        assert_eq!(
            worker.assignment(),
            Assignment {
                slot: 0,
                slots: 32,
                kind: AssignmentKind::Leased
            }
        );
        worker.slot = Some(SlotSetting::Ordinal);
        assert_eq!(
            worker.assign(Some(&kubernetes), true),
            Err(SlotRefusal::Leased)
        );
    }
}
