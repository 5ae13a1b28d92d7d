//! A disk that loses power, tears writes and fails on demand, for tests.
//!
//! Everything it does follows from its seed, so a failing run is replayed from one number. It keeps three things
//! apart that a real machine keeps apart: what is on the platter, what reads are served from (the page cache), and
//! which writes wait to be carried over.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::storage::embedded::block_file::{BLOCK_LEN, Block, BlockFile};

/// How many bytes the simulated disk is most likely to write at once.
const SECTOR_LEN: usize = 512;

/// The number of the error that a full disk gives.
const ENOSPC: i32 = 28;

/// What happens at the chosen operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The process ends while the operation runs, by a kill or by a loss of power. Nothing works until
    /// [`SimulatedDisk::restart_process`] or [`SimulatedDisk::power_on`] says which it was.
    Halt,
    /// The operation fails with this error number (5 is `EIO`, 28 is `ENOSPC`); a write may have begun.
    ///
    /// As on Linux, a failed sync drops what waited to be written: reads go on showing it, the platter may not have
    /// it, and the next sync reports success.
    Error(i32),
    /// No room is left from here on: a block that was never written cannot be, until [`SimulatedDisk::make_room`].
    Full,
}

/// A file of blocks on a simulated disk.
pub(crate) struct SimulatedDisk {
    state: Mutex<State>,
    gate: Mutex<Gate>,
    gate_moved: Condvar,
    each_sync: Option<Pause>,
}

/// Takes as long as a sync does.
type Pause = Box<dyn Fn() + Send + Sync>;

/// What a sync passes before it begins.
#[derive(Debug, Default)]
struct Gate {
    is_closed: bool,
    is_anyone_there: bool,
}

/// While it lives, no sync begins.
pub(crate) struct HeldSyncs<'a>(&'a SimulatedDisk);

#[derive(Debug)]
struct State {
    random: StdRng,
    /// What a loss of power leaves.
    platter: Image,
    /// What reads show.
    cache: Image,
    /// Changes since the last sync, oldest first.
    waiting: Vec<Change>,
    /// The fault to come, and how many writes and syncs still work before it.
    plan: Option<(u64, Fault)>,
    /// Whether a write that was cut off may leave bytes that are neither old nor new.
    leaves_garbage: bool,
    /// How many writes and syncs there were.
    operations: u64,
    is_full: bool,
    is_halted: bool,
}

/// The content of the file: its length in blocks, and those that were ever written; the others are zeros.
#[derive(Debug, Clone)]
struct Image {
    len: u64,
    blocks: BTreeMap<u64, Block>,
}

#[derive(Debug)]
enum Change {
    Block(u64, Box<Block>),
    Len(u64),
}

impl Image {
    fn block(&self, index: u64) -> Option<Block> {
        let written = self.blocks.get(&index).copied();
        (index < self.len).then(|| written.unwrap_or([0; BLOCK_LEN]))
    }

    fn set_block(&mut self, index: u64, block: Block) {
        self.blocks.insert(index, block);
        self.len = self.len.max(index + 1);
    }

    fn set_len(&mut self, len: u64) {
        self.blocks.split_off(&len);
        self.len = len;
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Block(index, block) => self.set_block(index, *block),
            Change::Len(len) => self.set_len(len),
        }
    }
}

impl SimulatedDisk {
    /// A disk whose platter already holds `blocks`, and whose misfortunes follow from `seed`.
    pub(crate) fn holding(blocks: &[Block], seed: u64) -> SimulatedDisk {
        let blocks: BTreeMap<u64, Block> = (0..).zip(blocks.iter().copied()).collect();
        let platter = Image {
            len: blocks.last_key_value().map_or(0, |(last, _)| last + 1),
            blocks,
        };
        SimulatedDisk::with(platter, seed)
    }

    /// Another disk whose platter holds what that of this one does.
    pub(crate) fn copy(&self, seed: u64) -> SimulatedDisk {
        SimulatedDisk::with(self.state().platter.clone(), seed)
    }

    fn with(platter: Image, seed: u64) -> SimulatedDisk {
        let state = State {
            random: StdRng::seed_from_u64(seed),
            cache: platter.clone(),
            platter,
            waiting: Vec::new(),
            plan: None,
            leaves_garbage: true,
            operations: 0,
            is_full: false,
            is_halted: false,
        };
        SimulatedDisk {
            state: Mutex::new(state),
            gate: Mutex::default(),
            gate_moved: Condvar::new(),
            each_sync: None,
        }
    }

    /// The same disk, each sync of which takes as long as `pause` does.
    #[must_use]
    pub(crate) fn slowed_by(self, pause: impl Fn() + Send + Sync + 'static) -> SimulatedDisk {
        SimulatedDisk {
            each_sync: Some(Box::new(pause)),
            ..self
        }
    }

    /// The same disk, on which each byte of a write that was cut off is the old one or the new one.
    #[must_use]
    pub(crate) fn without_garbage(self) -> SimulatedDisk {
        self.state().leaves_garbage = false;
        self
    }

    /// How many writes and syncs there were so far.
    pub(crate) fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Lets `operations` more writes and syncs succeed; the one after them meets `fault`.
    pub(crate) fn fail_after(&self, operations: u64, fault: Fault) {
        self.state().plan = Some((operations, fault));
    }

    /// A new process starts on the running machine: reads show all that was written, synced or not, and what waits
    /// goes on waiting. A planned fault that has not happened is forgotten.
    pub(crate) fn restart_process(&self) {
        let mut state = self.state();
        state.plan = None;
        state.is_halted = false;
    }

    /// Takes the power away and brings it back.
    ///
    /// Each write that was not synced is by then lost, there, torn at a byte, there in some sectors only, or has left
    /// one sector of garbage; what was synced is untouched. The page cache starts out as the platter.
    pub(crate) fn power_on(&self) {
        let mut state = self.state();
        state.carry_over_by_chance();
        state.cache = state.platter.clone();
        state.plan = None;
        state.is_halted = false;
    }

    /// Ends [`Fault::Full`].
    pub(crate) fn make_room(&self) {
        self.state().is_full = false;
    }

    /// Changes the stored bytes of block `index` behind the file's back, as a failing disk does.
    pub(crate) fn corrupt(&self, index: u64, change: impl FnOnce(&mut Block)) {
        let mut state = self.state();
        if let Some(mut block) = state.platter.block(index) {
            change(&mut block);
            state.platter.set_block(index, block);
            state.cache.set_block(index, block);
        }
    }

    /// Removes block `index` and everything behind it, as a truncation does.
    pub(crate) fn truncate(&self, index: u64) {
        let mut state = self.state();
        state.platter.set_len(index);
        state.cache.set_len(index);
    }

    /// Holds every sync until what this returns is dropped.
    pub(crate) fn hold_syncs(&self) -> HeldSyncs<'_> {
        *self.gate() = Gate {
            is_closed: true,
            is_anyone_there: false,
        };
        HeldSyncs(self)
    }

    /// Waits while syncs are held.
    fn pass_gate(&self) {
        let mut gate = self.gate();
        gate.is_anyone_there = true;
        self.gate_moved.notify_all();
        drop(
            self.gate_moved
                .wait_while(gate, |gate| gate.is_closed)
                .expect("nobody panics with it"),
        );
    }

    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().expect("nobody panics with it")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SimulatedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedDisk")
            .field("state", &*self.state())
            .finish_non_exhaustive()
    }
}

impl HeldSyncs<'_> {
    /// Returns once a sync is held.
    pub(crate) fn wait_for_one(&self) {
        let moved = &self.0.gate_moved;
        drop(
            moved
                .wait_while(self.0.gate(), |gate| !gate.is_anyone_there)
                .expect("nobody panics with it"),
        );
    }
}

impl Drop for HeldSyncs<'_> {
    fn drop(&mut self) {
        self.0.gate().is_closed = false;
        self.0.gate_moved.notify_all();
    }
}

impl State {
    /// Counts one write or sync, and says which fault it meets.
    fn next_fault(&mut self) -> Option<Fault> {
        self.operations += 1;
        match &mut self.plan {
            Some((0, Fault::Full)) => {
                // From now on it is the block that decides.
                self.plan = None;
                self.is_full = true;
                None
            }
            Some((0, fault)) => {
                let fault = *fault;
                self.plan = None;
                Some(fault)
            }
            Some((operations, _)) => {
                *operations -= 1;
                None
            }
            None => None,
        }
    }

    fn refuse_when_halted(&self) -> io::Result<()> {
        if self.is_halted {
            Err(io::Error::other("the process was stopped"))
        } else {
            Ok(())
        }
    }

    fn carry_over(&mut self) {
        self.waiting
            .drain(..)
            .for_each(|change| self.platter.apply(change));
    }

    fn carry_over_by_chance(&mut self) {
        for change in std::mem::take(&mut self.waiting) {
            let landed = match change {
                Change::Len(_) => self.random.random_bool(0.5).then_some(change),
                Change::Block(index, new) => {
                    let landed = mixture(
                        &mut self.random,
                        self.platter.block(index),
                        &new,
                        self.leaves_garbage,
                    );
                    landed.map(|landed| Change::Block(index, Box::new(landed)))
                }
            };
            landed
                .into_iter()
                .for_each(|change| self.platter.apply(change));
        }
    }
}

impl BlockFile for SimulatedDisk {
    fn len_in_blocks(&self) -> io::Result<u64> {
        let state = self.state();
        state.refuse_when_halted()?;
        Ok(state.cache.len)
    }

    fn set_len_in_blocks(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        state.refuse_when_halted()?;
        let fault = state.next_fault();
        if fault.is_none() {
            state.cache.set_len(len);
            state.waiting.push(Change::Len(len));
        }
        state.meet(fault)
    }

    fn read_block(&self, index: u64) -> io::Result<Block> {
        let state = self.state();
        state.refuse_when_halted()?;
        state
            .cache
            .block(index)
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn write_block(&self, index: u64, block: &Block) -> io::Result<()> {
        let mut state = self.state();
        state.refuse_when_halted()?;
        let fault = state.next_fault();
        if state.is_full && !state.cache.blocks.contains_key(&index) {
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        let mut written = *block;
        if let Some(Fault::Error(_)) = fault {
            // Only the beginning reached the cache before the error.
            let old = state.cache.block(index).unwrap_or([0; BLOCK_LEN]);
            let kept_from = state.random.random_range(0..=BLOCK_LEN);
            written[kept_from..].copy_from_slice(&old[kept_from..]);
        }
        // A write that fails before its first byte dirties nothing.
        if state.cache.block(index) != Some(written) || fault.is_none() {
            state.cache.set_block(index, written);
            state.waiting.push(Change::Block(index, Box::new(written)));
        }
        state.meet(fault)
    }

    fn sync(&self) -> io::Result<()> {
        self.pass_gate();
        if let Some(pause) = &self.each_sync {
            pause();
        }
        let mut state = self.state();
        state.refuse_when_halted()?;
        let fault = state.next_fault();
        match fault {
            None => state.carry_over(),
            Some(Fault::Error(_)) => state.carry_over_by_chance(),
            Some(Fault::Halt | Fault::Full) => {}
        }
        state.meet(fault)
    }
}

impl State {
    fn meet(&mut self, fault: Option<Fault>) -> io::Result<()> {
        match fault {
            None | Some(Fault::Full) => Ok(()),
            Some(Fault::Error(number)) => Err(io::Error::from_raw_os_error(number)),
            Some(Fault::Halt) => {
                self.is_halted = true;
                self.refuse_when_halted()
            }
        }
    }
}

/// What a block holds after a write of `new` over `old` was cut off; `None` when nothing changed.
fn mixture(
    random: &mut StdRng,
    old: Option<Block>,
    new: &Block,
    leaves_garbage: bool,
) -> Option<Block> {
    let mut block = old.unwrap_or([0; BLOCK_LEN]);
    match random.random_range(0..if leaves_garbage { 5 } else { 4 }) {
        0 => return None,
        1 => block = *new,
        2 => {
            let torn_at = random.random_range(0..=BLOCK_LEN);
            block[..torn_at].copy_from_slice(&new[..torn_at]);
        }
        3 => {
            let sectors = block.chunks_mut(SECTOR_LEN).zip(new.chunks(SECTOR_LEN));
            for (there, coming) in sectors {
                if random.random() {
                    there.copy_from_slice(coming);
                }
            }
        }
        _ => {
            block = *new;
            let sector = random.random_range(0..BLOCK_LEN / SECTOR_LEN) * SECTOR_LEN;
            random.fill(&mut block[sector..sector + SECTOR_LEN]);
        }
    }
    Some(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Block = [1; BLOCK_LEN];
    const NEW: Block = [2; BLOCK_LEN];

    #[test]
    fn a_synced_write_outlasts_every_loss_of_power() {
        for seed in 0..200 {
            let disk = SimulatedDisk::holding(&[OLD], seed);
            disk.write_block(0, &NEW).expect("the write works");
            disk.sync().expect("the sync works");
            disk.power_on();
            assert_eq!(disk.read_block(0).expect("the block is there"), NEW);
        }
    }

    #[test]
    fn an_unsynced_write_may_be_lost_there_or_torn() {
        let after = |seed| {
            let disk = SimulatedDisk::holding(&[OLD], seed);
            disk.write_block(0, &NEW).expect("the write works");
            disk.power_on();
            disk.read_block(0).expect("the block is there")
        };
        let outcomes: Vec<Block> = (0..200).map(after).collect();

        assert!(outcomes.contains(&OLD));
        assert!(outcomes.contains(&NEW));
        assert!(outcomes.iter().any(|block| *block != OLD && *block != NEW));
    }

    #[test]
    fn without_garbage_every_byte_is_old_or_new() {
        for seed in 0..200 {
            let disk = SimulatedDisk::holding(&[OLD], seed).without_garbage();
            disk.write_block(0, &NEW).expect("the write works");
            disk.power_on();
            let after = disk.read_block(0).expect("the block is there");
            assert!(
                after.iter().all(|byte| [OLD[0], NEW[0]].contains(byte)),
                "seed {seed}"
            );
        }
    }

    #[test]
    fn a_full_disk_overwrites_what_it_has_and_takes_no_more() {
        let disk = SimulatedDisk::holding(&[OLD], 1);
        disk.fail_after(0, Fault::Full);
        disk.set_len_in_blocks(3).expect("a hole needs no room");
        disk.write_block(0, &NEW).expect("the block is there");
        let error = disk.write_block(1, &NEW).expect_err("no room");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        disk.sync().expect("what was written has its room");
        disk.make_room();
        disk.write_block(1, &NEW).expect("there is room");
        assert_eq!(disk.read_block(2).expect("a hole"), [0; BLOCK_LEN]);
    }

    #[test]
    fn a_length_that_was_not_synced_may_be_lost() {
        let len_after = |seed| {
            let disk = SimulatedDisk::holding(&[OLD, OLD], seed);
            disk.set_len_in_blocks(1).expect("the cut works");
            disk.power_on();
            disk.len_in_blocks().expect("the disk works")
        };
        let lens: Vec<u64> = (0..50).map(len_after).collect();
        assert!(lens.contains(&1) && lens.contains(&2));
    }

    #[test]
    fn a_failed_sync_goes_on_showing_what_the_platter_may_not_have() {
        let lies = (0..200).filter(|seed| {
            let disk = SimulatedDisk::holding(&[OLD], *seed);
            disk.write_block(0, &NEW).expect("the write works");
            disk.fail_after(0, Fault::Error(5));
            disk.sync().expect_err("the sync fails");
            disk.sync().expect("the second sync claims success");
            assert_eq!(disk.read_block(0).expect("the block is there"), NEW);
            disk.power_on();
            disk.read_block(0).expect("the block is there") != NEW
        });
        assert!(lies.count() > 50);
    }
}
