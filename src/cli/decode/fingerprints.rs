//! Counts the repeated lines of a file. An external merge sort keeps the needed memory bounded.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;

use crate::cli::exit::Failure;
use idmint_core::id::Fingerprint;

/// The maximum number of fingerprints (digests of lines) in memory, 16 bytes each (16 MiB). Before
/// one more is added, all of them are moved to a temporary file.
const KEPT_MAX: usize = 1024 * 1024;

/// The size of the read buffer for each temporary file during the merge, in bytes.
const BUFFER_LEN: usize = 64 * 1024;

/// The fingerprints (digests) of all lines of a file. The latest fingerprints are in memory, and
/// the others are in sorted temporary files.
pub(super) struct Fingerprints {
    kept: Vec<Fingerprint>,
    kept_max: usize,
    spilled: Vec<File>,
}

impl Fingerprints {
    /// Creates a collection without fingerprints.
    pub(super) fn new() -> Fingerprints {
        Fingerprints::keeping(KEPT_MAX)
    }

    fn keeping(kept_max: usize) -> Fingerprints {
        Fingerprints {
            kept: Vec::new(),
            kept_max,
            spilled: Vec::new(),
        }
    }

    /// Adds the fingerprint of a line.
    ///
    /// # Errors
    /// Returns exit code 74 if a temporary file cannot be written.
    pub(super) fn add(&mut self, fingerprint: Fingerprint) -> Result<(), Failure> {
        if self.kept.len() == self.kept_max {
            self.spill().map_err(in_temporary_folder)?;
        }
        self.kept.push(fingerprint);
        Ok(())
    }

    /// Returns the number of fingerprints that are equal to an earlier fingerprint.
    ///
    /// # Errors
    /// Returns exit code 74 if a temporary file cannot be written or read.
    pub(super) fn count_repeated(self) -> Result<u64, Failure> {
        self.merge().map_err(in_temporary_folder)
    }

    fn merge(mut self) -> io::Result<u64> {
        if self.spilled.is_empty() {
            return Ok(Fingerprint::count_repeated(&mut self.kept));
        }
        self.spill()?;
        drop(std::mem::take(&mut self.kept));
        let mut pieces: Vec<_> = self
            .spilled
            .into_iter()
            .map(|file| BufReader::with_capacity(BUFFER_LEN, file))
            .collect();
        let mut next = BinaryHeap::new();
        for (at, piece) in pieces.iter_mut().enumerate() {
            next.extend(read_one(piece)?.map(|first| Reverse((first, at))));
        }
        let (mut before, mut repeated) = (None, 0);
        while let Some(Reverse((least, at))) = next.pop() {
            repeated += u64::from(before == Some(least));
            before = Some(least);
            next.extend(read_one(&mut pieces[at])?.map(|following| Reverse((following, at))));
        }
        Ok(repeated)
    }

    /// Sorts the fingerprints that are in memory, and moves them to a temporary file.
    fn spill(&mut self) -> io::Result<()> {
        self.kept.sort_unstable();
        let mut out = BufWriter::with_capacity(BUFFER_LEN, temporary_file()?);
        self.kept
            .iter()
            .try_for_each(|fingerprint| out.write_all(&fingerprint.to_bytes()))?;
        let mut file = out.into_inner()?;
        file.seek(SeekFrom::Start(0))?;
        self.spilled.push(file);
        self.kept.clear();
        Ok(())
    }
}

fn in_temporary_folder(error: io::Error) -> Failure {
    let folder = std::env::temp_dir();
    let name = format!(
        "temporary file in {} (TMPDIR selects the folder)",
        folder.display()
    );
    Failure::io(name, error)
}

fn read_one(piece: &mut impl Read) -> io::Result<Option<Fingerprint>> {
    let mut bytes = [0; Fingerprint::LEN];
    match piece.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(Fingerprint::from_bytes(bytes))),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// Creates a temporary file without a name, which only this user can access. The system deletes the
/// file when it is closed, even if the process is killed.
#[expect(
    clippy::disallowed_methods,
    reason = "what does not fit in memory is in a file while the command runs"
)]
fn temporary_file() -> io::Result<File> {
    for attempt in 0_u32.. {
        let path =
            std::env::temp_dir().join(format!("idmint-inspect-{}-{attempt}", std::process::id()));
        match OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
        {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(file) => {
                fs::remove_file(&path)?;
                return Ok(file);
            }
        }
    }
    unreachable!("some name of so many is free")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_in_memory_is_counted_as_what_does() {
        let texts = || (0..1000_u32).map(|at| (at * 7 % 640).to_string());
        for kept_max in [1, 7, 64, 999, 1000, 5000] {
            let mut fingerprints = Fingerprints::keeping(kept_max);
            texts().for_each(|text| fingerprints.add(Fingerprint::of(&text)).expect("room"));
            assert_eq!(
                fingerprints.spilled.is_empty(),
                kept_max >= 1000,
                "{kept_max}"
            );
            assert_eq!(
                fingerprints.count_repeated().expect("what was written"),
                360,
                "{kept_max} in memory"
            );
        }
    }
}
