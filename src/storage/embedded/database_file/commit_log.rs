//! The log of a database: what was committed since the engine last synced, so that a commit needs one write and one sync.
//!
//! Commits are numbered. Each stands behind the one before, and behind the last a note says that it was synced: the next
//! commit overwrites the note. The note is not synced, so it tells nothing after a loss of power; while the machine runs, it
//! is how a commit that was acknowledged and has been damaged since differs from one that never came to its end. Once the
//! engine has synced, the log begins anew at its first block, over what stands there.

use std::io;
use std::sync::Arc;

use super::layout::Layout;
use super::log_item::LogItem;
use crate::storage::embedded::block_file::{BLOCK_LEN, Block, BlockFile};

/// So many blocks are filled with zeros ahead of what is written: syncing what makes a file longer takes twice as long.
const FILLED_AHEAD: u64 = 256;

/// The log of an open database.
#[derive(Debug)]
pub(in crate::storage::embedded) struct CommitLog {
    file: Arc<dyn BlockFile>,
    first: u64,
    end: u64,
    /// Where the next commit will stand.
    next: u64,
    /// Up to here the file was written to since it was opened.
    filled: u64,
}

/// A commit as the log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::storage::embedded) struct LogEntry {
    /// Its number.
    pub(in crate::storage::embedded) number: u64,
    /// What [`CommitLog::append`] was given.
    pub(in crate::storage::embedded) content: Vec<u8>,
}

impl CommitLog {
    /// The log of a file that is laid out like this. It begins anew with the next commit.
    pub(super) fn new(file: Arc<dyn BlockFile>, layout: Layout) -> CommitLog {
        let (first, len) = layout.log();
        CommitLog {
            file,
            first,
            end: first + len,
            next: first,
            filled: first,
        }
    }

    /// The commits after that of this number, in their order, durable when this returns. The next one will stand behind them,
    /// or at the beginning if there are none. Nothing is written unless the number of the last one is good enough.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if one is missing that was acknowledged; what `check_last` or the disk says.
    pub(in crate::storage::embedded) fn recover(
        &mut self,
        number: u64,
        check_last: impl FnOnce(u64) -> io::Result<()>,
    ) -> io::Result<Vec<LogEntry>> {
        let (entries, end) = self.read_after(number)?;
        check_last(entries.last().map_or(number, |entry| entry.number))?;
        let Some(last) = entries.last() else {
            return Ok(entries);
        };
        // What is read may be in memory alone: after a sync that failed no later sync brings it to the disk. It takes no room.
        for block in self.first..end {
            self.file
                .write_block(block, &self.file.read_block(block)?)?;
        }
        self.file.sync()?;
        (self.next, self.filled) = (end, end + 1);
        self.note(end, last.number)?;
        Ok(entries)
    }

    /// The commits after that of this number, and the block behind them.
    fn read_after(&self, number: u64) -> io::Result<(Vec<LogEntry>, u64)> {
        let (mut at, mut end, mut last) = (self.first, self.first, None::<u64>);
        let mut entries = Vec::new();
        while let Some(item) = self.read(at)? {
            let follows = last.is_none_or(|last| item.number == last + 1);
            if item.content.is_empty() || !follows {
                break;
            }
            at += LogItem::blocks(item.content.len());
            end = at;
            last = Some(item.number);
            if item.number > number {
                entries.push(LogEntry {
                    number: item.number,
                    content: item.content,
                });
            }
        }
        let next = entries.first().map_or(number + 1, |entry| entry.number);
        if next > number + 1 {
            return Err(missing(number + 1));
        }
        let known = entries.last().map_or(number, |entry| entry.number);
        while at < self.end {
            if let Some(later) = self.read(at)?.filter(|item| item.number > known) {
                return Err(missing(later.number.min(known + 1)));
            }
            at += 1;
        }
        Ok((entries, end))
    }

    /// Whether there is room for a commit of `content_len` bytes. Where there is not, the engine must sync.
    pub(in crate::storage::embedded) fn has_room(&self, content_len: usize) -> bool {
        // And a note.
        self.next + LogItem::blocks(content_len) < self.end
    }

    /// Adds the commit of this number, which will survive a crash when this returns.
    ///
    /// # Errors
    /// What the disk says; whether it is there is then unknown.
    ///
    /// # Panics
    /// Without content, or without [room](Self::has_room).
    pub(in crate::storage::embedded) fn append(
        &mut self,
        number: u64,
        content: &[u8],
    ) -> io::Result<()> {
        assert!(
            !content.is_empty() && self.has_room(content.len()),
            "{} bytes have room",
            content.len()
        );
        let behind = self.next + LogItem::blocks(content.len());
        while self.filled <= behind {
            let filled = (self.filled + FILLED_AHEAD).min(self.end);
            for block in self.filled..filled {
                self.file.write_block(block, &[0; BLOCK_LEN])?;
            }
            self.filled = filled;
        }
        self.write(self.next, number, content)?;
        self.file.sync()?;
        self.next = behind;
        self.note(behind, number)
    }

    /// Begins anew, now that the engine has synced the commit of this number and all before it.
    ///
    /// # Errors
    /// What the disk says.
    pub(in crate::storage::embedded) fn restart(&mut self, number: u64) -> io::Result<()> {
        self.next = self.first;
        // A file that has no log yet needs no note: the disk may be full.
        if self.filled > self.first {
            self.note(self.first, number)
        } else {
            Ok(())
        }
    }

    fn read(&self, block: u64) -> io::Result<Option<LogItem>> {
        LogItem::read(&*self.file, block, self.end)
    }

    /// Notes that the commit of this number was synced.
    fn note(&self, block: u64, number: u64) -> io::Result<()> {
        self.write(block, number, &[])
    }

    fn write(&self, block: u64, number: u64, content: &[u8]) -> io::Result<()> {
        let bytes = LogItem::to_bytes(number, content);
        let pieces = bytes.as_chunks::<BLOCK_LEN>().0.iter();
        (block..)
            .zip(pieces)
            .try_for_each(|(block, piece): (u64, &Block)| self.file.write_block(block, piece))
    }
}

fn missing(number: u64) -> io::Error {
    let what = format!("commit {number} was acknowledged, and its log is not what was written");
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::storage::embedded::simulation::{Fault, SimulatedDisk};

    const LEN: u32 = 12;

    fn log(disk: &Arc<SimulatedDisk>) -> CommitLog {
        CommitLog::new(
            Arc::clone(disk) as Arc<dyn BlockFile>,
            Layout::with_log_of(LEN),
        )
    }

    fn disk(seed: u64) -> Arc<SimulatedDisk> {
        Arc::new(SimulatedDisk::holding(&[], seed).without_garbage())
    }

    fn content(number: u64, len: usize) -> Vec<u8> {
        number.to_be_bytes().into_iter().cycle().take(len).collect()
    }

    fn numbers(log: &CommitLog, after: u64) -> Vec<u64> {
        log.read_after(after)
            .expect("sound")
            .0
            .iter()
            .map(|entry| entry.number)
            .collect()
    }

    #[test]
    fn commits_are_read_in_their_order_and_anew_after_the_engine_has_synced() {
        let disk = disk(1);
        let mut first = log(&disk);
        assert!(numbers(&first, 0).is_empty());
        for number in 1..=4 {
            first
                .append(number, &content(number, 5_000))
                .expect("the disk works");
        }
        assert_eq!(numbers(&log(&disk), 0), [1, 2, 3, 4]);
        assert_eq!(numbers(&log(&disk), 2), [3, 4]);
        assert_eq!(
            log(&disk).read_after(3).expect("sound").0[0].content,
            content(4, 5_000)
        );
        assert!(!first.has_room(3 * BLOCK_LEN) && first.has_room(3 * BLOCK_LEN - 20));
        first.restart(5).expect("the disk works");
        assert!(
            numbers(&log(&disk), 5).is_empty(),
            "what stands behind is older"
        );
        first.append(6, &content(6, 100)).expect("the disk works");
        assert_eq!(numbers(&log(&disk), 5), [6]);
        let error = log(&disk)
            .read_after(4)
            .expect_err("commit 5 is neither here nor there");
        assert!(
            error.to_string().contains("commit 5 was acknowledged"),
            "{error}"
        );
    }

    #[test]
    fn a_flipped_bit_of_an_acknowledged_commit_is_found_and_never_taken_for_a_torn_write() {
        let disk = disk(1);
        let mut first = log(&disk);
        let lens = [100, 5_000, 40, 9_000, 7];
        for (number, len) in (1..).zip(lens) {
            first
                .append(number, &content(number, len))
                .expect("the disk works");
        }
        let mut block = 2;
        let mut flips = 0;
        for len in lens {
            for at in (0..20 + len).step_by(7) {
                let (flipped, byte) = (
                    block + u64::try_from(at / BLOCK_LEN).expect("small"),
                    at % BLOCK_LEN,
                );
                disk.corrupt(flipped, |content| content[byte] ^= 0x20);
                let error = log(&disk).read_after(0).expect_err("a bit is flipped");
                assert_eq!(error.kind(), io::ErrorKind::InvalidData);
                disk.corrupt(flipped, |content| content[byte] ^= 0x20);
                flips += 1;
            }
            block += LogItem::blocks(len);
        }
        disk.corrupt(block, |content| content[3] ^= 1);
        assert_eq!(
            numbers(&log(&disk), 0),
            [1, 2, 3, 4, 5],
            "without the note nothing is missing"
        );
        assert!(flips > 2_000, "{flips} flips");
    }

    #[test]
    fn whatever_power_leaves_every_acknowledged_commit_is_there_and_at_most_one_more() {
        let (mut kept, mut lost) = (0, 0);
        for seed in 0..2_000 {
            let (disk, random) = (disk(seed), &mut StdRng::seed_from_u64(seed));
            let mut writing = log(&disk);
            let (mut synced, mut done) = (0, 0);
            disk.fail_after(random.random_range(1..90), Fault::Halt);
            loop {
                let (number, len) = (done + 1, random.random_range(1..9_000));
                let committed = match writing.has_room(len) && random.random_bool(0.9) {
                    true => writing.append(number, &content(number, len)),
                    // The engine has synced.
                    false => disk.sync().and_then(|()| {
                        synced = number;
                        writing.restart(number)
                    }),
                };
                match committed {
                    Ok(()) => done = number,
                    Err(_) => break,
                }
            }
            done = done.max(synced);
            if random.random() {
                disk.power_on()
            } else {
                disk.restart_process()
            }
            let found = log(&disk)
                .recover(synced, |_| Ok(()))
                .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            disk.power_on();
            assert_eq!(
                log(&disk).recover(synced, |_| Ok(())).expect("sound"),
                found,
                "seed {seed}: what was read was not durable"
            );
            let last = found.last().map_or(synced, |entry| entry.number);
            assert!(
                last == done || last == done + 1,
                "seed {seed}: {last} of {done}"
            );
            assert!(
                found
                    .iter()
                    .all(|entry| entry.content == content(entry.number, entry.content.len()))
            );
            if last > done { kept += 1 } else { lost += 1 }
        }
        assert!(
            kept > 100 && lost > 100,
            "the disk is too kind: {kept} kept, {lost} lost"
        );
    }
}
