//! The schedule of failures, which is drawn from a seed. Each kind of failure occurs equally often.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::fleet::etcd_link::Weather;
use crate::torture::schedule::Deck;

pub(super) const NODES: usize = 4;

/// A failure of one node or of one etcd member. The rest of the fleet continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mishap {
    /// The node is killed and started again.
    Kill,
    /// The process of the node is stopped for a while, and then continued.
    Pause,
    /// The node's links to etcd are in a bad condition for a while.
    Weather(Weather),
    /// The node's wall clock is changed by this many seconds while the node runs, and then set
    /// right again.
    Clock(i64),
    /// The node's wall clock is changed by this many seconds, and the node is restarted with this
    /// clock. After the clock is right again, the node is restarted once more.
    StartByClock(i64),
    /// The leader of etcd is killed and started again.
    Leader,
}

/// A failure after which the operator must fence the fleet or create a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disaster {
    /// Etcd is restored from a backup. It is down for `away_ms` milliseconds in between.
    Restore {
        backup: Backup,
        away_ms: u64,
        meanwhile: Meanwhile,
        is_fenced_at_once: bool,
    },
    /// Etcd loses all of its data.
    Wipe {
        meanwhile: Meanwhile,
        is_fenced_at_once: bool,
    },
    /// All nodes are killed, and etcd loses all of its data. A node without state then creates a
    /// fleet, with a clock that is `ahead_s` seconds ahead. This node is ended, and its keys are
    /// removed.
    Stranger { ahead_s: i64 },
}

/// The moment at which the backup was saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backup {
    /// The backup is recent. Since it was saved, each node has only renewed its slot twice.
    New,
    /// The backup was saved before all mishaps since the last disaster.
    Older,
}

/// The state of one node while etcd is restored and the fleet is fenced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meanwhile {
    Runs,
    /// The node is killed before the disaster, and started after the fence.
    Dead,
    /// The process of the node is stopped before the disaster, and continued after the fence.
    Stopped,
}

/// A mistake that the operator makes before the proper fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slip {
    None,
    /// The clock of the operator's machine is this many seconds behind, so the fence is refused.
    Behind(i64),
    /// The clock of the operator's machine is this many seconds ahead, and the operator says that
    /// it is right.
    Ahead(i64),
    /// The operator first fences the fleet without the journals (the nodes' copies of their
    /// commits), so events are lost.
    WithoutJournals,
}

/// A disaster, and the mishaps before it. Each mishap comes with its node and its duration.
pub(super) struct Round {
    pub(super) mishaps: Vec<(Mishap, usize, u64)>,
    pub(super) disaster: Disaster,
    /// The node that may be down or stopped during the disaster.
    pub(super) node: usize,
    pub(super) slip: Slip,
}

/// An endless source of rounds. A round is a disaster and the mishaps before it.
pub(super) struct Schedule {
    random: StdRng,
    mishaps: Deck<Mishap>,
    nodes: Deck<usize>,
    disasters: Deck<u8>,
    backups: Deck<Backup>,
    meanwhile: Deck<Meanwhile>,
    slips: Deck<Slip>,
}

impl Mishap {
    pub(super) const ALL: [Mishap; 14] = [
        Mishap::Kill,
        Mishap::Pause,
        Mishap::Weather(Weather::Slow),
        Mishap::Weather(Weather::Silent),
        Mishap::Weather(Weather::SilentFromAnAppend),
        Mishap::Weather(Weather::Stalled),
        Mishap::Weather(Weather::Cut),
        Mishap::Weather(Weather::CutAfterAppends),
        Mishap::Weather(Weather::CutBeforeAppends),
        Mishap::Clock(3),
        Mishap::Clock(-40),
        Mishap::StartByClock(40),
        Mishap::StartByClock(-3),
        Mishap::Leader,
    ];
}

impl Slip {
    pub(super) const ALL: [Slip; 5] = [
        Slip::None,
        Slip::Behind(600),
        Slip::Behind(3_600),
        // Use more than an hour, because a fence corrects a floor only if it is more than an hour
        // ahead.
        Slip::Ahead(7_200),
        Slip::WithoutJournals,
    ];
}

impl Schedule {
    pub(super) fn of_seed(seed: u64) -> Schedule {
        Schedule {
            random: StdRng::seed_from_u64(seed),
            mishaps: Deck::of(Mishap::ALL),
            nodes: Deck::of(std::array::from_fn::<usize, NODES, _>(|node| node)),
            disasters: Deck::of([0, 1, 2]),
            backups: Deck::of([Backup::New, Backup::Older]),
            meanwhile: Deck::of([Meanwhile::Runs, Meanwhile::Dead, Meanwhile::Stopped]),
            slips: Deck::of(Slip::ALL),
        }
    }

    /// Returns the next round, which has `mishaps` mishaps.
    pub(super) fn next(&mut self, mishaps: usize) -> Round {
        let Schedule { random, nodes, .. } = self;
        let mishaps = (0..mishaps)
            .map(|_| {
                (
                    self.mishaps.deal(random),
                    nodes.deal(random),
                    random.random_range(1_500..5_000),
                )
            })
            .collect();
        let (meanwhile, is_fenced_at_once) =
            (self.meanwhile.deal(random), random.random_ratio(1, 2));
        let disaster = match self.disasters.deal(random) {
            0 => Disaster::Restore {
                backup: self.backups.deal(random),
                away_ms: random.random_range(0..4_000),
                meanwhile,
                is_fenced_at_once,
            },
            1 => Disaster::Wipe {
                meanwhile,
                is_fenced_at_once,
            },
            _ => Disaster::Stranger {
                ahead_s: [86_400, 40, -40, -86_400][random.random_range(0..4)],
            },
        };
        Round {
            mishaps,
            disaster,
            node: nodes.deal(random),
            slip: self.slips.deal(random),
        }
    }
}

#[test]
fn a_seed_gives_the_same_rounds_and_every_kind_is_among_them() {
    let rounds = |seed| {
        let mut schedule = Schedule::of_seed(seed);
        (0..6)
            .map(|_| schedule.next(5))
            .map(|round| (round.mishaps, round.disaster))
            .collect::<Vec<_>>()
    };
    let first = rounds(7);
    assert_eq!(first, rounds(7));
    assert_ne!(first, rounds(8));
    let mishaps: Vec<Mishap> = first
        .iter()
        .flat_map(|(mishaps, _)| mishaps)
        .map(|(mishap, ..)| *mishap)
        .collect();
    assert!(
        Mishap::ALL.iter().all(|mishap| mishaps.contains(mishap)),
        "{mishaps:?}"
    );
    let are = |is: fn(&Disaster) -> bool| first.iter().filter(|(_, disaster)| is(disaster)).count();
    assert_eq!(
        are(|disaster| matches!(disaster, Disaster::Restore { .. })),
        2
    );
    assert_eq!(are(|disaster| matches!(disaster, Disaster::Wipe { .. })), 2);
}
