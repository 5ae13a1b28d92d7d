//! The lives of a node (from a start to an end), drawn from a seed. Each kind of fault and change
//! occurs equally often.

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::failing_disk::Broken;
use super::formats::FORMATS;

/// One life of the node, from a start to its end.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    pub(crate) beginning: Beginning,
    pub(crate) middle: Middle,
    pub(crate) end: End,
    pub(crate) configuration: Configuration,
    /// The seed that determines the choices of the callers.
    pub(crate) seed: u64,
}

/// The fault or change at the beginning of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    Plain,
    /// The wall clock is set ahead by this many seconds before the start, and stays ahead.
    ClockAhead(i64),
    /// The wall clock is set back by hours. It is set right while the start waits for it.
    ClockBehind,
    /// The folder is removed, and the operator starts the node with a floor, as documented.
    Restored,
    /// The folder is removed without the knowledge of the operator, so the node starts without a
    /// floor.
    FolderLost,
    /// Before the real start, the node is started with a changed format of the same name. That
    /// start must be refused.
    FormatChanged,
}

/// The fault in the middle of a life, while ids are minted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Middle {
    Nothing,
    /// The wall clock is set back by this many seconds, and then set right again.
    ClockBack(i64),
    /// The wall clock is set ahead by this many seconds. It is set right again, unless `stays` is
    /// `true`.
    ClockAhead {
        by_s: i64,
        stays: bool,
    },
}

/// The way in which a life ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Killed,
    DiskFails(Broken),
}

/// The settings that can change from one life to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Configuration {
    pub(crate) lanes: u32,
    window_ms: u32,
    lead_max_ms: u32,
    /// The formats in the order of their tables, as indexes.
    pub(crate) formats: Vec<usize>,
}

impl Configuration {
    /// Returns the text of the configuration file.
    pub(crate) fn to_toml(&self) -> String {
        let Configuration {
            lanes,
            window_ms,
            lead_max_ms,
            formats,
        } = self;
        let names: Vec<_> = formats
            .iter()
            .map(|format| format!("\"{}\"", FORMATS[*format].name))
            .collect();
        let tables: Vec<_> = formats
            .iter()
            .filter_map(|format| FORMATS[*format].table())
            .collect();
        format!(
            "worker.lanes = {lanes}\nstorage.window = \"{window_ms}ms\"\nmint.lead_max = \"{lead_max_ms}ms\"\n\
             mint.batch_max = 10_000_000\nmint.wait_max = \"10s\"\nclock.max_ahead = \"1h\"\n\
             formats.enabled = [{}]\n{}",
            names.join(", "),
            tables.concat()
        )
    }

    /// Returns `true` if the configuration has this format.
    pub(crate) fn has(&self, format: usize) -> bool {
        self.formats.contains(&format)
    }
}

/// A deck of kinds. It deals each kind once before it deals any kind again.
pub(crate) struct Deck<T> {
    kinds: Vec<T>,
    left: Vec<T>,
}

impl<T: Copy> Deck<T> {
    pub(crate) fn of(kinds: impl Into<Vec<T>>) -> Deck<T> {
        Deck {
            kinds: kinds.into(),
            left: Vec::new(),
        }
    }

    pub(crate) fn deal(&mut self, random: &mut StdRng) -> T {
        if self.left.is_empty() {
            self.left.clone_from(&self.kinds);
            self.left.shuffle(random);
        }
        self.left.pop().expect("a deck has cards")
    }
}

/// An endless source of lives. A life of the node lasts from a start to an end.
pub(crate) struct Schedule {
    random: StdRng,
    lives: u64,
    beginnings: Deck<Beginning>,
    middles: Deck<Middle>,
    ends: Deck<End>,
}

impl Schedule {
    pub(crate) fn of_seed(seed: u64) -> Schedule {
        let back = [2, 60, 7_200].map(Middle::ClockBack);
        let ahead = [(2, false), (90, false), (3_700, true)]
            .map(|(by_s, stays)| Middle::ClockAhead { by_s, stays });
        Schedule {
            random: StdRng::seed_from_u64(seed),
            lives: 0,
            beginnings: Deck::of([
                Beginning::Plain,
                Beginning::ClockAhead(70),
                Beginning::ClockAhead(3_700),
                Beginning::ClockBehind,
                Beginning::Restored,
                Beginning::Restored,
                Beginning::FolderLost,
                Beginning::FolderLost,
                Beginning::FormatChanged,
            ]),
            middles: Deck::of([&back[..], &ahead[..], &[Middle::Nothing; 2]].concat()),
            ends: Deck::of([
                End::Killed,
                End::Killed,
                End::DiskFails(Broken::Sync),
                End::DiskFails(Broken::Write),
            ]),
        }
    }

    /// Returns the next life. The first life has only the built-in formats. In every second life
    /// after that, a custom format is added. Later, some formats are missing for one life.
    pub(crate) fn next(&mut self) -> Life {
        let random = &mut self.random;
        let number = self.lives;
        self.lives += 1;
        let customs_before = usize::try_from(number / 2).unwrap_or(usize::MAX);
        let mut customs = 0;
        let mut formats: Vec<usize> = (0..FORMATS.len())
            .filter(|format| {
                if FORMATS[*format].custom.is_none() {
                    return true;
                }
                customs += 1;
                let has_joined = customs <= customs_before;
                has_joined && (number < 16 || random.random_bool(0.9))
            })
            .collect();
        formats.shuffle(random);
        let configuration = Configuration {
            lanes: random.random_range(1..=8),
            window_ms: [200, 1_000, 3_000][random.random_range(0..3)],
            lead_max_ms: [0, 5, 50][random.random_range(0..3)],
            formats,
        };
        let beginning = if number == 0 {
            Beginning::Plain
        } else {
            self.beginnings.deal(random)
        };
        let (middle, end) = (self.middles.deal(random), self.ends.deal(random));
        Life {
            beginning,
            middle,
            end,
            configuration,
            seed: random.random_range(0..1 << 40),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_lives_and_every_kind_is_among_them() {
        let lives = |seed| {
            let mut schedule = Schedule::of_seed(seed);
            (0..40).map(|_| schedule.next()).collect::<Vec<_>>()
        };
        let first = lives(7);
        assert_eq!(format!("{first:?}"), format!("{:?}", lives(7)));
        assert_ne!(format!("{first:?}"), format!("{:?}", lives(8)));
        for beginning in [
            Beginning::Restored,
            Beginning::FolderLost,
            Beginning::ClockBehind,
        ] {
            assert!(
                first
                    .iter()
                    .filter(|life| life.beginning == beginning)
                    .count()
                    >= 4,
                "{beginning:?}"
            );
        }
        for end in [
            End::Killed,
            End::DiskFails(Broken::Sync),
            End::DiskFails(Broken::Write),
        ] {
            assert!(
                first.iter().filter(|life| life.end == end).count() >= 10,
                "{end:?}"
            );
        }
        assert!(
            (0..FORMATS.len())
                .all(|format| first.iter().any(|life| life.configuration.has(format)))
        );
    }
}
