//! Stores the pages of the engine, and verifies the CRC-32C of each page when it is read.
//!
//! The engine never overwrites a page that its last synced commit uses, except the first page. So
//! the checksum of a page may be written later, together with the next sync. If a crash happens in
//! between, that page is never read.
//!
//! The first page is overwritten in place. Before that, both its current checksum and its new one
//! are stored. After the sync, only the new one is stored.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::StorageBackend;

use super::layout::{FIRST_PAGE_SUMS_BLOCK, GROUP_LEN, Layout};
use crate::embedded::block_file::{BLOCK_LEN, Block, BlockFile, blocks};

/// [`BLOCK_LEN`], the size of a page in bytes, as a `u64` for file lengths.
const PAGE_BYTES: u64 = 4_096;

/// The stored checksum of a page that was never written. The content of such a page is zeros.
const NEVER_WRITTEN: u32 = 0;

/// The pages of the database engine in one file, together with the checksum of each page.
#[derive(Debug)]
pub(super) struct CheckedPages {
    file: Arc<dyn BlockFile>,
    layout: Layout,
    sums: Mutex<Sums>,
}

#[derive(Debug)]
struct Sums {
    /// The number of pages in the file.
    len: u64,
    /// The two checksums of the engine's first page. Index 0 has the checksum of the page as it was
    /// last synced, and index 1 the checksum of its current content.
    first_page: [u32; 2],
    /// The groups of page checksums that were loaded from the file so far, by the index of the
    /// group in the file.
    groups: BTreeMap<u64, Group>,
}

#[derive(Debug)]
struct Group {
    sums: Box<[u32]>,
    /// `true` if the checksums in this group have changed since they were read from the file or
    /// written to it.
    is_changed: bool,
}

impl CheckedPages {
    /// Opens the engine's pages in a database file with this layout.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub(super) fn open(file: Arc<dyn BlockFile>, layout: Layout) -> io::Result<CheckedPages> {
        let blocks = file.len_in_blocks()?;
        let first_page = match blocks > FIRST_PAGE_SUMS_BLOCK {
            true => {
                let block = file.read_block(FIRST_PAGE_SUMS_BLOCK)?;
                [0, 4]
                    .map(|at| u32::from_be_bytes(block[at..at + 4].try_into().expect("four bytes")))
            }
            false => [NEVER_WRITTEN; 2],
        };
        let sums = Sums {
            len: layout.pages_in(blocks),
            first_page,
            groups: BTreeMap::new(),
        };
        Ok(CheckedPages {
            file,
            layout,
            sums: Mutex::new(sums),
        })
    }

    /// `true` if the file has no pages.
    pub(super) fn is_empty(&self) -> bool {
        self.sums().len == 0
    }

    /// Returns `true` if the first page matches one of its two checksums. After a flipped bit, the
    /// page matches neither checksum. The same may be true after a power loss. If neither matches,
    /// the engine's own check decides whether the database is intact.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub(super) fn is_first_page_sound(&self) -> io::Result<bool> {
        let page = self.file.read_block(self.layout.page(0))?;
        Ok(self.sums().first_page.contains(&sum_of(0, &page)))
    }

    fn sums(&self) -> MutexGuard<'_, Sums> {
        // A thread that panics while holding the lock leaves the checksums consistent, so the lock
        // can be used even if it is poisoned.
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_page(&self, page: u64) -> io::Result<Block> {
        let block = self.file.read_block(self.layout.page(page))?;
        if page > 0 {
            let expected = *self.sums().sum(self, page)?;
            let is_sound = match expected {
                NEVER_WRITTEN => block.iter().all(|byte| *byte == 0),
                expected => sum_of(page, &block) == expected,
            };
            if !is_sound {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("page {page} is corrupted"),
                ));
            }
        }
        Ok(block)
    }

    fn write_page(&self, page: u64, block: &Block) -> io::Result<()> {
        let sum = sum_of(page, block);
        if page == 0 {
            let mut sums = self.sums();
            let [_, before] = sums.first_page;
            self.write_first_page_sums(&mut sums, [before, sum])?;
            return self.file.write_block(self.layout.page(0), block);
        }
        self.file.write_block(self.layout.page(page), block)?;
        *self.sums().sum_to_change(self, page)? = sum;
        Ok(())
    }

    fn write_first_page_sums(&self, sums: &mut Sums, both: [u32; 2]) -> io::Result<()> {
        let mut block = [0; BLOCK_LEN];
        block[..4].copy_from_slice(&both[0].to_be_bytes());
        block[4..8].copy_from_slice(&both[1].to_be_bytes());
        self.file.write_block(FIRST_PAGE_SUMS_BLOCK, &block)?;
        sums.first_page = both;
        Ok(())
    }

    fn read_group(&self, group: u64) -> io::Result<Group> {
        let sums = match self.file.read_block(self.layout.sums(group)) {
            Ok(block) => block
                .as_chunks()
                .0
                .iter()
                .map(|sum| u32::from_be_bytes(*sum))
                .collect(),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                vec![NEVER_WRITTEN; BLOCK_LEN / 4].into()
            }
            Err(error) => return Err(error),
        };
        Ok(Group {
            sums,
            is_changed: false,
        })
    }

    fn write_changed_sums(&self) -> io::Result<()> {
        let mut sums = self.sums();
        for (number, group) in sums.groups.iter_mut().filter(|(_, group)| group.is_changed) {
            let mut block = [0; BLOCK_LEN];
            for (bytes, sum) in block.as_chunks_mut().0.iter_mut().zip(&group.sums) {
                *bytes = sum.to_be_bytes();
            }
            self.file.write_block(self.layout.sums(*number), &block)?;
            group.is_changed = false;
        }
        Ok(())
    }
}

impl Sums {
    fn group(&mut self, pages: &CheckedPages, group: u64) -> io::Result<&mut Group> {
        use std::collections::btree_map::Entry;
        Ok(match self.groups.entry(group) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(pages.read_group(group)?),
        })
    }

    fn sum(&mut self, pages: &CheckedPages, page: u64) -> io::Result<&u32> {
        Ok(&self.group(pages, page / GROUP_LEN)?.sums[place_in_group(page)])
    }

    fn sum_to_change(&mut self, pages: &CheckedPages, page: u64) -> io::Result<&mut u32> {
        let group = self.group(pages, page / GROUP_LEN)?;
        group.is_changed = true;
        Ok(&mut group.sums[place_in_group(page)])
    }
}

impl StorageBackend for CheckedPages {
    fn len(&self) -> io::Result<u64> {
        Ok(self.sums().len * PAGE_BYTES)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        for (page, bytes) in blocks(offset, out.len()) {
            let len = bytes.len();
            out[done..done + len].copy_from_slice(&self.read_page(page)?[bytes]);
            done += len;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        assert!(
            len.is_multiple_of(PAGE_BYTES),
            "the engine has pages of {PAGE_BYTES} bytes, not {len} in all"
        );
        let pages = len / PAGE_BYTES;
        self.file.set_len_in_blocks(self.layout.blocks_for(pages))?;
        let mut sums = self.sums();
        // If the file grows again, the engine expects zeros in the removed pages. So give them the
        // checksum of pages that were never written, which contain zeros.
        for page in pages..sums.len.min(pages.next_multiple_of(GROUP_LEN)) {
            *sums.sum_to_change(self, page)? = NEVER_WRITTEN;
        }
        sums.groups
            .retain(|group, _| *group < pages.div_ceil(GROUP_LEN));
        sums.len = pages;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.write_changed_sums()?;
        self.file.sync()?;
        let mut sums = self.sums();
        let [before, now] = sums.first_page;
        // Replace the old checksum of the first page. If the old checksum stayed valid, a change of
        // the page back to its old content would not be detected. A single flipped bit can be such
        // a change, because one bit selects which of two commits is current.
        if before == now {
            Ok(())
        } else {
            self.write_first_page_sums(&mut sums, [now, now])
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut done = 0;
        for (page, bytes) in blocks(offset, data.len()) {
            let len = bytes.len();
            // Read the old content only if the new data does not cover the whole page.
            let mut block = if len == BLOCK_LEN {
                [0; BLOCK_LEN]
            } else {
                self.read_page(page)?
            };
            block[bytes].copy_from_slice(&data[done..done + len]);
            self.write_page(page, &block)?;
            done += len;
        }
        Ok(())
    }
}

/// Returns a checksum over the page number and the content. The page number is included, so that a
/// page in the wrong position is detected.
fn sum_of(page: u64, block: &Block) -> u32 {
    let sum = crc32c::crc32c_append(crc32c::crc32c(&page.to_be_bytes()), block);
    if sum == NEVER_WRITTEN {
        !NEVER_WRITTEN
    } else {
        sum
    }
}

fn place_in_group(page: u64) -> usize {
    usize::try_from(page % GROUP_LEN).expect("below 1 024")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::simulation::SimulatedDisk;

    const LAYOUT: fn() -> Layout = || Layout::with_log_of(4);

    fn pages(disk: &Arc<SimulatedDisk>) -> CheckedPages {
        CheckedPages::open(Arc::clone(disk) as Arc<dyn BlockFile>, LAYOUT())
            .expect("the disk works")
    }

    fn page_of(pages: &CheckedPages, page: u64) -> io::Result<Block> {
        let mut block = [0; BLOCK_LEN];
        pages.read(page * PAGE_BYTES, &mut block)?;
        Ok(block)
    }

    #[test]
    fn bytes_are_read_as_they_were_written_across_pages_and_groups() {
        let disk = Arc::new(SimulatedDisk::holding(&[], 1));
        let first = pages(&disk);
        first
            .set_len(PAGE_BYTES * (GROUP_LEN + 3))
            .expect("the disk works");
        let data: Vec<u8> = (0..=250).cycle().take(3 * BLOCK_LEN).collect();
        let at = PAGE_BYTES * (GROUP_LEN - 1) + 77;
        first.write(at, &data).expect("the disk works");
        first.sync_data().expect("the disk works");
        disk.power_on();
        let again = pages(&disk);
        let mut read = vec![9; data.len() + 2];
        again.read(at - 1, &mut read).expect("the disk works");
        assert_eq!(
            (read[0], &read[1..=data.len()], read[data.len() + 1]),
            (0, data.as_slice(), 0)
        );
        assert_eq!(again.len().expect("known"), PAGE_BYTES * (GROUP_LEN + 3));
    }

    #[test]
    fn every_flipped_bit_of_a_page_or_its_sum_is_found_when_the_page_is_read() {
        let disk = Arc::new(SimulatedDisk::holding(&[], 1));
        let first = pages(&disk);
        first.set_len(PAGE_BYTES * 3).expect("the disk works");
        for page in 0..3 {
            first
                .write(page * PAGE_BYTES, &[7; BLOCK_LEN])
                .expect("the disk works");
        }
        first.sync_data().expect("the disk works");
        let flips = (0..BLOCK_LEN).map(|byte| (LAYOUT().page(2), byte));
        for (block, byte) in flips.chain((8..12).map(|byte| (LAYOUT().sums(0), byte))) {
            for bit in 0..8 {
                disk.corrupt(block, |content| content[byte] ^= 1 << bit);
                let damaged = pages(&disk);
                let error = page_of(&damaged, 2).expect_err("a bit is flipped");
                assert!(error.to_string().contains("page 2 is corrupted"), "{error}");
                assert_eq!(
                    page_of(&damaged, 1).expect("the other page is sound"),
                    [7; BLOCK_LEN]
                );
                disk.corrupt(block, |content| content[byte] ^= 1 << bit);
            }
        }
        assert!(pages(&disk).is_first_page_sound().expect("the disk works"));
        disk.corrupt(LAYOUT().page(0), |content| content[9] ^= 1);
        assert!(!pages(&disk).is_first_page_sound().expect("the disk works"));
    }

    #[test]
    fn the_first_page_is_sound_wherever_a_kill_ends_its_overwriting() {
        let disk = Arc::new(SimulatedDisk::holding(&[], 1));
        let first = pages(&disk);
        first.set_len(PAGE_BYTES * 2).expect("the disk works");
        for content in 1..50_u8 {
            let before = disk.operations();
            first.write(0, &[content; 300]).expect("the disk works");
            assert_eq!(disk.operations(), before + 2, "the sums and the page");
            for operations in 0..2 {
                disk.fail_after(operations, crate::embedded::simulation::Fault::Halt);
                let killed = pages(&disk);
                let _ = killed.write(0, &[content + 100; 300]);
                disk.restart_process();
                assert!(
                    pages(&disk).is_first_page_sound().expect("the disk works"),
                    "{content}, {operations}"
                );
            }
            first.write(0, &[content; 300]).expect("the disk works");
        }
    }

    #[test]
    fn what_is_cut_off_is_zeros_when_the_file_grows_again() {
        let disk = Arc::new(SimulatedDisk::holding(&[], 1));
        let pages = pages(&disk);
        let len = PAGE_BYTES * (GROUP_LEN * 2 + 10);
        pages.set_len(len).expect("the disk works");
        for page in [5, 6, GROUP_LEN + 1, 2 * GROUP_LEN + 3] {
            pages
                .write(page * PAGE_BYTES, &[7; BLOCK_LEN])
                .expect("the disk works");
        }
        pages.sync_data().expect("the disk works");
        pages.set_len(PAGE_BYTES * 6).expect("the disk works");
        pages.set_len(len).expect("the disk works");
        pages.sync_data().expect("the disk works");
        assert_eq!(page_of(&pages, 5).expect("sound"), [7; BLOCK_LEN]);
        for page in [6, GROUP_LEN + 1, 2 * GROUP_LEN + 3] {
            assert_eq!(page_of(&pages, page).expect("sound"), [0; BLOCK_LEN]);
        }
    }
}
