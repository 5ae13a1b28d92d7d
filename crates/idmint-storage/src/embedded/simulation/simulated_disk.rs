//! A simulated disk for tests that loses power, tears writes and fails on demand.
//!
//! The seed determines everything that the disk does, so a failing run can be repeated with the
//! same seed. Like a real machine, the disk has three separate parts: the content of the platter,
//! the page cache that serves reads, and the writes that have not reached the platter yet.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::embedded::block_file::{BLOCK_LEN, Block, BlockFile};

/// The unit in which the simulated disk usually writes, in bytes.
const SECTOR_LEN: usize = 512;

/// The error number of a full disk.
const ENOSPC: i32 = 28;

/// A fault that the disk simulates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process ends during the operation, because of a kill or a power loss. All operations
    /// fail until the test calls [`SimulatedDisk::restart_process`] to simulate a kill, or
    /// [`SimulatedDisk::power_on`] to simulate a power loss.
    Halt,
    /// The operation fails with this error number (5 is `EIO`, 28 is `ENOSPC`). A write may be
    /// partly done.
    ///
    /// As on Linux, a failed sync drops the waiting writes. Reads still return them, but the
    /// platter may not have them, and the next sync reports success.
    Error(i32),
    /// The disk is full from now on. Blocks that were never written cannot be written until
    /// [`SimulatedDisk::make_room`] is called.
    Full,
}

/// A file of blocks on a simulated disk, which can lose power and fail.
pub struct SimulatedDisk {
    state: Mutex<State>,
    gate: Mutex<Gate>,
    gate_moved: Condvar,
    each_sync: Option<Pause>,
}

/// A function that each sync calls. The function determines how long the sync takes.
type Pause = Box<dyn Fn() + Send + Sync>;

/// A gate that each sync has to pass before it begins.
#[derive(Debug, Default)]
struct Gate {
    is_closed: bool,
    is_anyone_there: bool,
}

/// A guard that holds all syncs until it is dropped.
pub struct HeldSyncs<'a>(&'a SimulatedDisk);

#[derive(Debug)]
struct State {
    random: StdRng,
    /// The content that remains after a power loss.
    platter: Image,
    /// The content that reads return.
    cache: Image,
    /// The writes and length changes since the last sync, oldest first.
    waiting: Vec<Change>,
    /// The planned fault. The number says how many writes and syncs succeed before the fault
    /// occurs.
    plan: Option<(u64, Fault)>,
    /// `true` if an interrupted write may leave bytes that are neither old nor new.
    leaves_garbage: bool,
    /// The number of writes and syncs so far.
    operations: u64,
    is_full: bool,
    is_halted: bool,
}

/// The content of a file on the disk: its length in blocks, and the blocks that were written. All
/// other blocks contain zeros.
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
    /// Returns a disk whose platter contains `blocks`. The seed determines its faults.
    pub fn holding(blocks: &[Block], seed: u64) -> SimulatedDisk {
        let blocks: BTreeMap<u64, Block> = (0..).zip(blocks.iter().copied()).collect();
        let platter = Image {
            len: blocks.last_key_value().map_or(0, |(last, _)| last + 1),
            blocks,
        };
        SimulatedDisk::with(platter, seed)
    }

    /// Returns another disk with the same content on its platter.
    pub fn copy(&self, seed: u64) -> SimulatedDisk {
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

    /// Returns this disk with slow syncs. Each sync takes as long as `pause`.
    #[must_use]
    pub fn slowed_by(self, pause: impl Fn() + Send + Sync + 'static) -> SimulatedDisk {
        SimulatedDisk {
            each_sync: Some(Box::new(pause)),
            ..self
        }
    }

    /// Makes interrupted writes leave no garbage, and returns the disk. After an interrupted write,
    /// each byte of the block has either its old value or its new value.
    #[must_use]
    pub fn without_garbage(self) -> SimulatedDisk {
        self.state().leaves_garbage = false;
        self
    }

    /// Returns the number of writes and syncs so far.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Plans a fault. The next `operations` writes and syncs succeed, and the following one fails
    /// with `fault`.
    pub fn fail_after(&self, operations: u64, fault: Fault) {
        self.state().plan = Some((operations, fault));
    }

    /// Simulates a new process on a machine that keeps running. Reads return all written blocks,
    /// synced or not, and unsynced writes still wait for a sync. A planned fault that has not
    /// occurred yet is dropped.
    pub fn restart_process(&self) {
        let mut state = self.state();
        state.plan = None;
        state.is_halted = false;
    }

    /// Cuts the power and restores it.
    ///
    /// Each write that was not synced may be lost, complete, cut off at a byte, complete only in
    /// some sectors, or replaced by garbage in one sector. Synced content does not change. The page
    /// cache starts with the content of the platter.
    pub fn power_on(&self) {
        let mut state = self.state();
        state.carry_over_by_chance();
        state.cache = state.platter.clone();
        state.plan = None;
        state.is_halted = false;
    }

    /// Ends the condition [`Fault::Full`].
    pub fn make_room(&self) {
        self.state().is_full = false;
    }

    /// Changes the stored bytes of block `index` without a write, as a defective disk does.
    pub fn corrupt(&self, index: u64, change: impl FnOnce(&mut Block)) {
        let mut state = self.state();
        if let Some(mut block) = state.platter.block(index) {
            change(&mut block);
            state.platter.set_block(index, block);
            state.cache.set_block(index, block);
        }
    }

    /// Removes block `index` and all later blocks, as if the file was truncated.
    pub fn truncate(&self, index: u64) {
        let mut state = self.state();
        state.platter.set_len(index);
        state.cache.set_len(index);
    }

    /// Holds every sync until the returned guard is dropped.
    pub fn hold_syncs(&self) -> HeldSyncs<'_> {
        *self.gate() = Gate {
            is_closed: true,
            is_anyone_there: false,
        };
        HeldSyncs(self)
    }

    /// Waits until no [`HeldSyncs`] guard holds the syncs of this disk.
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
    /// Waits until at least one sync is being held.
    pub fn wait_for_one(&self) {
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
    /// Counts one write or sync of the disk. Returns the fault with which this operation fails, or
    /// `None` if it succeeds.
    fn next_fault(&mut self) -> Option<Fault> {
        self.operations += 1;
        match &mut self.plan {
            Some((0, Fault::Full)) => {
                // The planned fault has occurred, so remove it. From now on, the disk is full until
                // the test makes room: each write that needs a new block fails.
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
            // The write to the page cache stops with an error, so only the beginning of the block
            // has the new content.
            let old = state.cache.block(index).unwrap_or([0; BLOCK_LEN]);
            let kept_from = state.random.random_range(0..=BLOCK_LEN);
            written[kept_from..].copy_from_slice(&old[kept_from..]);
        }
        // If a failed write has changed no byte of the block in the page cache, no change has to be
        // synced.
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

/// Returns the content of a block after a write of `new` over `old` was interrupted at random.
/// Returns `None` if the block did not change.
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
