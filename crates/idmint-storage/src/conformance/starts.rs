//! Checks how every engine behaves when a store is opened again.

use std::collections::BTreeMap;

use std::time::Duration;

use tempfile::TempDir;

use crate::engine::OwnEngine;
use crate::failure::FailureKind;
use crate::kept_formats::{FormatsError, KeptFormat};
use crate::memory_engine::MemoryEngine;
use crate::samples::ready;
use crate::start::{Opened, Restart};
use idmint_core::minting::HorizonPlan;
use idmint_core::time::UnixNanos;

/// A storage engine under test, with its own store. The store can be opened again, after a clean
/// close or after a simulated kill of the process.
pub(super) enum EngineUnderTest {
    Memory(MemoryEngine),
    Embedded(TempDir),
}

impl EngineUnderTest {
    fn every() -> [EngineUnderTest; 2] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        [
            EngineUnderTest::Memory(MemoryEngine::new().expect("memory suffices")),
            EngineUnderTest::Embedded(folder),
        ]
    }

    pub(super) fn open(&self) -> Opened {
        match self {
            EngineUnderTest::Memory(engine) => engine.open(),
            EngineUnderTest::Embedded(folder) => {
                let choice = OwnEngine::Embedded {
                    data_dir: folder.path().to_owned(),
                };
                // Retry while the folder is locked. Other tests start programs, and a forked child
                // holds the locks of this process until it calls exec.
                for _ in 0..10_000 {
                    match choice.open(0, None) {
                        Err(error) if error.failure_kind() == FailureKind::Locked => {
                            std::thread::sleep(Duration::from_millis(1));
                        }
                        opened => return opened.expect("the folder is usable"),
                    }
                }
                panic!("{folder:?} stays locked")
            }
        }
    }
}

/// Runs a check on each engine, starting with an empty store.
pub(super) fn on_every_engine(check: impl Fn(&EngineUnderTest)) {
    EngineUnderTest::every().iter().for_each(check);
}

fn at(nanos: u64) -> UnixNanos {
    UnixNanos::new(nanos)
}

fn format(name: &str, tick: &str) -> KeptFormat {
    let description = BTreeMap::from([("tick".to_owned(), tick.to_owned())]);
    KeptFormat {
        name: name.to_owned(),
        description,
        is_minted: true,
    }
}

fn restart(opened: Opened) -> Restart {
    match opened {
        Opened::Again(restart) => restart,
        Opened::First(_) => panic!("a horizon is there"),
    }
}

#[test]
fn every_engine_raises_the_horizon_and_keeps_the_slots() {
    on_every_engine(|engine| {
        let mut store = ready(engine.open(), at(500), &[]);
        store
            .raise_horizon(HorizonPlan::at(at(500)))
            .expect("the same horizon again is no lowering");
        drop(store);
        let error = restart(engine.open())
            .agree_on_formats(5, &[])
            .err()
            .expect("1 is kept");
        assert!(matches!(
            error,
            FormatsError::SlotsChanged { kept: 1, now: 5 }
        ));
        assert_eq!(error.failure_kind(), FailureKind::Disagrees);
    });
}

#[test]
fn a_start_finds_the_last_horizon_that_was_durable() {
    on_every_engine(|engine| {
        assert_eq!(engine.open().horizon(), None);
        let Opened::First(first) = engine.open() else {
            panic!("nothing was reserved")
        };
        let (reserved, durable) = first
            .reserve(HorizonPlan::at(at(500)))
            .expect("the store is writable");
        assert_eq!(durable.plan().horizon(), at(500));
        drop(reserved);
        assert_eq!(
            engine.open().horizon(),
            Some(at(500)),
            "a first start that ended before the formats"
        );

        let mut store = ready(engine.open(), at(600), &[]);
        assert_eq!(
            store
                .raise_horizon(HorizonPlan::at(at(700)))
                .expect("writable")
                .plan()
                .horizon(),
            at(700)
        );
        drop(store);
        assert_eq!(engine.open().horizon(), Some(at(700)));

        drop(
            restart(engine.open())
                .agree_on_formats(1, &[])
                .expect("they are the same"),
        );
        assert_eq!(
            engine.open().horizon(),
            Some(at(700)),
            "agreeing raises nothing"
        );
    });
}

#[test]
fn a_changed_format_is_refused_and_a_new_one_joins() {
    on_every_engine(|engine| {
        drop(ready(engine.open(), at(500), &[format("a", "1ms")]));
        drop(ready(engine.open(), at(500), &[format("b", "1s")]));
        let agree = |formats: &[KeptFormat]| {
            restart(engine.open())
                .agree_on_formats(1, formats)
                .map(drop)
        };
        agree(&[format("b", "1s"), format("a", "1ms")]).expect("both are kept");

        let error =
            agree(&[format("c", "1s"), format("a", "2ms")]).expect_err("a is not what it was");
        let FormatsError::Changed { name, differences } = error else {
            panic!("{error}")
        };
        assert_eq!(
            (name.as_str(), differences[0].to_string().as_str()),
            ("a", "tick: stored 1ms, configured 2ms")
        );
        agree(&[format("c", "7s")]).expect("a refusal keeps nothing");
    });
}

#[test]
fn a_name_that_was_kept_is_compared_whatever_its_rule_is_now() {
    on_every_engine(|engine| {
        let only_read = |name: &str| KeptFormat {
            is_minted: false,
            ..format(name, "2ms")
        };
        drop(ready(
            engine.open(),
            at(500),
            &[format("a", "1ms"), only_read("b")],
        ));
        let agree = |formats: &[KeptFormat]| {
            restart(engine.open())
                .agree_on_formats(1, formats)
                .map(drop)
        };
        let error = agree(&[only_read("a")]).expect_err("a was minted with other ticks");
        assert!(matches!(error, FormatsError::Changed { name, .. } if name == "a"));
        agree(&[format("b", "1ms")]).expect("b was only read, so nothing was kept");
    });
}

#[test]
fn the_floor_of_a_first_start_is_found_by_every_later_one() {
    on_every_engine(|engine| {
        let Opened::First(first) = engine.open() else {
            panic!("nothing was reserved")
        };
        let plan = HorizonPlan::above_floor(at(500), at(400));
        let (reserved, _) = first.reserve(plan).expect("the store is writable");
        drop(
            reserved
                .agree_on_formats(1, &[])
                .expect("the formats are new"),
        );
        assert_eq!(restart(engine.open()).floor(), Some(at(400)));
        drop(ready(engine.open(), at(700), &[]));
        assert_eq!(
            restart(engine.open()).floor(),
            Some(at(400)),
            "a raise keeps it"
        );
    });
}

#[test]
fn lowering_the_horizon_panics() {
    on_every_engine(|engine| {
        let mut store = ready(engine.open(), at(700), &[]);
        let lower = std::panic::AssertUnwindSafe(|| {
            store.raise_horizon(HorizonPlan::at(at(699))).map(drop)
        });
        let panic = std::panic::catch_unwind(lower).expect_err("a horizon is never lowered");
        let message = panic.downcast_ref::<String>().expect("a text");
        assert!(message.contains("a horizon is never lowered"), "{message}");
    });
}
