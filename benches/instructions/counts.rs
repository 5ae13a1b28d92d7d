//! Instruction counts for each subject. They are read from a file, and compared with the recorded
//! counts.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The tolerance in percent of the recorded count. Larger differences are reported.
const APART_PERCENT: u64 = 10;

/// The first lines of a file of counts.
const HEADING: &str = "\
# Instructions for each reservation, id or request, by valgrind's callgrind on x86-64 with AVX2.
# Written by: UPDATE_INSTRUCTIONS=1 make instructions
";

/// The number of instructions for one unit of work, by subject name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts(BTreeMap<String, u64>);

/// A difference between the count of a subject and its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Rose { name: String, from: u64, to: u64 },
    Fell { name: String, from: u64, to: u64 },
    NotRecorded { name: String, count: u64 },
    NotCounted { name: String },
}

impl Counts {
    pub(crate) fn insert(&mut self, name: &str, count: u64) {
        let before = self.0.insert(name.to_owned(), count);
        assert_eq!(before, None, "{name} is counted twice");
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the subjects whose counts differ from their records by more than [`APART_PERCENT`],
    /// and the subjects that are missing in either the new or the recorded counts.
    pub(crate) fn changes_since(&self, recorded: &Counts) -> Vec<Change> {
        let counted = self.0.iter().filter_map(|(name, &to)| {
            let name = name.clone();
            match recorded.0.get(&name) {
                None => Some(Change::NotRecorded { name, count: to }),
                Some(&from) if to * 100 > from * (100 + APART_PERCENT) => {
                    Some(Change::Rose { name, from, to })
                }
                Some(&from) if to * 100 < from * (100 - APART_PERCENT) => {
                    Some(Change::Fell { name, from, to })
                }
                Some(_) => None,
            }
        });
        let gone = recorded.0.keys().filter(|name| !self.0.contains_key(*name));
        counted
            .chain(gone.map(|name| Change::NotCounted { name: name.clone() }))
            .collect()
    }
}

impl Change {
    /// Returns `true` if this difference must fail the check. A count that has become smaller does
    /// not.
    pub(crate) fn fails(&self) -> bool {
        !matches!(self, Change::Fell { .. })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Rose { name, from, to } => write!(
                f,
                "{name}: {from} -> {to}, {} % more",
                (to - from) * 100 / from
            ),
            Change::Fell { name, from, to } => write!(
                f,
                "{name}: {from} -> {to}, {} % less",
                (from - to) * 100 / from
            ),
            Change::NotRecorded { name, count } => {
                write!(f, "{name}: {count}, and no count is recorded")
            }
            Change::NotCounted { name } => write!(f, "{name}: recorded, and not counted any more"),
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEADING)?;
        let width = self.0.keys().map(String::len).max().unwrap_or(0);
        self.0
            .iter()
            .try_for_each(|(name, count)| writeln!(f, "{name:<width$} {count:>7}"))
    }
}

impl FromStr for Counts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut counts = Counts::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let pair = line
                .rsplit_once(' ')
                .and_then(|(name, count)| Some((name.trim_end(), count.parse().ok()?)));
            let (name, count) =
                pair.ok_or_else(|| format!("{line:?} is not a name and a count"))?;
            counts.insert(name, count);
        }
        Ok(counts)
    }
}
