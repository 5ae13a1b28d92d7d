//! The log of a database, which contains the commits that the engine has not synced yet. With the
//! log, a commit needs only one write and one sync.
//!
//! Commits are numbered and follow each other in the log. The last commit is followed by a note
//! that this commit was synced. The next commit overwrites that note.
//!
//! The note itself is not synced, so it proves nothing after a power loss. As long as the machine
//! keeps running, the note distinguishes an acknowledged commit that was damaged later from a
//! commit that was never finished. Once the engine has synced, the log starts again at its first
//! block and overwrites the old commits.

use std::io;
use std::sync::Arc;

use super::layout::Layout;
use super::log_item::LogItem;
use crate::embedded::block_file::{BLOCK_LEN, Block, BlockFile};

/// The number of log blocks that are filled with zeros in advance. Then a commit does not extend
/// the file. Extending the file would make the sync of the commit take twice as long.
const FILLED_AHEAD: u64 = 256;

/// The log of an open database.
#[derive(Debug)]
pub(in crate::embedded) struct CommitLog {
    file: Arc<dyn BlockFile>,
    first: u64,
    end: u64,
    /// The index of the block in the file at which the next commit will begin.
    next: u64,
    /// The end of the blocks that were written since the file was opened, as the index of the first
    /// block after them.
    filled: u64,
}

/// A commit in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::embedded) struct LogEntry {
    /// The number of the commit.
    pub(in crate::embedded) number: u64,
    /// The content that was passed to [`CommitLog::append`].
    pub(in crate::embedded) content: Vec<u8>,
}

impl CommitLog {
    /// Returns a log for a file with this layout. The next commit will begin at the first block of
    /// the log.
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

    /// Returns the commits in the log that follow commit `number`, in order. The commits are
    /// durable when this method returns. The next commit will be appended after them, or at the
    /// first block if no commit follows. A commit at the end that was never finished is left out.
    ///
    /// `check_last` is called with the number of the last returned commit, or with `number` if no
    /// commit follows. If `check_last` returns an error, the log is not written.
    ///
    /// # Errors
    /// Returns [`io::ErrorKind::InvalidData`] if an acknowledged commit is missing. Also returns
    /// the error of `check_last`, or any error of the disk.
    pub(in crate::embedded) fn recover(
        &mut self,
        number: u64,
        check_last: impl FnOnce(u64) -> io::Result<()>,
    ) -> io::Result<Vec<LogEntry>> {
        let (entries, end) = self.read_after(number)?;
        check_last(entries.last().map_or(number, |entry| entry.number))?;
        let Some(last) = entries.last() else {
            return Ok(entries);
        };
        // Write the commits again, because they may exist only in the page cache. If an earlier
        // sync failed, no later sync writes them. Writing them again needs no additional space.
        for block in self.first..end {
            self.file
                .write_block(block, &self.file.read_block(block)?)?;
        }
        self.file.sync()?;
        (self.next, self.filled) = (end, end + 1);
        self.note(end, last.number)?;
        Ok(entries)
    }

    /// Returns the commits in the log that follow commit `number`, and the index of the first block
    /// after the last returned commit.
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

    /// Returns `true` if the log has room for a commit of `content_len` bytes. If not, the engine
    /// must sync its pages first, and the log must be restarted.
    pub(in crate::embedded) fn has_room(&self, content_len: usize) -> bool {
        // Keep one more block free, for the note which says that this commit was synced.
        self.next + LogItem::blocks(content_len) < self.end
    }

    /// Appends commit `number` with this content to the log. The commit survives a crash once this
    /// method returns.
    ///
    /// # Errors
    /// Returns any error of the disk. It is then unknown whether the log contains the commit.
    ///
    /// # Panics
    /// Panics if `content` is empty, or if the log has no [room](Self::has_room) for it.
    pub(in crate::embedded) fn append(&mut self, number: u64, content: &[u8]) -> io::Result<()> {
        assert!(
            !content.is_empty() && self.has_room(content.len()),
            "{} bytes have room",
            content.len()
        );
        let behind = self.next + LogItem::blocks(content.len());
        self.fill_to(behind)?;
        self.write(self.next, number, content)?;
        self.file.sync()?;
        self.next = behind;
        self.note(behind, number)
    }

    /// If no zero-filled blocks are left for the next commits, fills more blocks with zeros.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub(in crate::embedded) fn fill_ahead(&mut self) -> io::Result<()> {
        self.fill_to((self.next + 1).min(self.end - 1))
    }

    /// Fills the unwritten blocks of the log up to `block` with zeros. Usually also fills many
    /// blocks after `block`, so that filling is seldom necessary.
    fn fill_to(&mut self, block: u64) -> io::Result<()> {
        while self.filled <= block {
            let filled = (self.filled + FILLED_AHEAD).min(self.end);
            for block in self.filled..filled {
                self.file.write_block(block, &[0; BLOCK_LEN])?;
            }
            self.filled = filled;
        }
        Ok(())
    }

    /// Makes the next commit begin at the first block of the log, where it overwrites old commits.
    /// The engine must have synced all commits up to `number`.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub(in crate::embedded) fn restart(&mut self, number: u64) -> io::Result<()> {
        self.next = self.first;
        // The note is needed only if the log was written since it was opened. Avoid a needless
        // note, because writing it could fail on a full disk.
        if self.filled > self.first {
            self.note(self.first, number)
        } else {
            Ok(())
        }
    }

    fn read(&self, block: u64) -> io::Result<Option<LogItem>> {
        LogItem::read(&*self.file, block, self.end)
    }

    /// Writes to `block` the note that commit `number` was synced.
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
    let what = format!("commit {number} was acknowledged, but its entry in the log is corrupted");
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::embedded::simulation::{Fault, SimulatedDisk};

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
                let flipped = block + u64::try_from(at / BLOCK_LEN).expect("small");
                let byte = at % BLOCK_LEN;
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
                    // Simulates a sync of the engine.
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
