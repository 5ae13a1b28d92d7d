//! The archive of a backup: a tar file in the ustar format, with the database and its SHA-256.
//!
//! ```text
//! idmint.redb   the copy of the database
//! SHA256SUMS    one line for the file before it, as `sha256sum` writes it
//! ```
//!
//! The digest comes last, so that an archive can be written while the copy is read. A reader
//! accepts only these two entries, so a forged archive cannot make it write any other file.

use std::io::{self, ErrorKind, Read, Write};

use sha2::{Digest, Sha256};

use super::data_dir::DATABASE_NAME;

const SUMS_NAME: &str = "SHA256SUMS";

/// The length of a tar block in bytes. Every header is one block, and contents are padded to whole
/// blocks.
const BLOCK: usize = 512;

/// The size of the copy buffer, in bytes.
const PART: usize = 64 * 1024;

/// The byte range of a field within a tar header.
type Field = std::ops::Range<usize>;

const NAME: Field = 0..100;
const MODE: Field = 100..108;
const OWNER: Field = 108..116;
const GROUP: Field = 116..124;
const SIZE: Field = 124..136;
const TIME: Field = 136..148;
const CHECKSUM: Field = 148..156;
const KIND: usize = 156;
const MAGIC: Field = 257..265;

/// The first byte of the size field of a tar header, if the size is written in binary and not in
/// octal digits.
const BINARY: u8 = 0x80;

/// The reason why an archive cannot be restored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveError {
    /// The archive ends before its last entry does.
    #[error("the archive is truncated; copy it again")]
    Truncated,
    /// The content does not match a checksum.
    #[error("the archive is damaged: {0}; copy it again, or restore another backup")]
    Damaged(&'static str),
    /// The archive is not a backup, because it has `found` instead of the file `wanted`.
    #[error(
        "the archive is not a backup: it has {found} instead of the file {wanted}; restore the output of `idmint backup -`"
    )]
    NotABackup {
        /// A description of what the archive has instead.
        found: String,
        /// The name of the expected file.
        wanted: &'static str,
    },
    /// The archive cannot be read.
    #[error("cannot read the archive")]
    NotRead(#[source] io::Error),
    /// The database cannot be written.
    #[error("cannot write the database")]
    NotWritten(#[source] io::Error),
}

/// Writes an archive with a database of `len` bytes.
///
/// # Errors
/// Returns [`ErrorKind::UnexpectedEof`] if the database is shorter, or any other error of reading
/// the database or writing the archive. The archive is then incomplete.
pub fn write_archive(
    database: &mut impl Read,
    len: u64,
    archive: &mut impl Write,
) -> io::Result<()> {
    archive.write_all(&header(DATABASE_NAME, len))?;
    let mut digest = Sha256::new();
    let (mut part, mut left) = (vec![0; PART], len);
    while left > 0 {
        let wanted = usize::try_from(left).map_or(PART, |left| left.min(PART));
        database.read_exact(&mut part[..wanted])?;
        digest.update(&part[..wanted]);
        archive.write_all(&part[..wanted])?;
        left -= wanted as u64;
    }
    archive.write_all(&vec![0; padding(len)])?;
    let sums = sums(digest);
    archive.write_all(&header(SUMS_NAME, sums.len() as u64))?;
    archive.write_all(sums.as_bytes())?;
    // Two empty blocks end an archive.
    archive.write_all(&vec![0; padding(sums.len() as u64) + 2 * BLOCK])?;
    archive.flush()
}

/// Copies the database in an archive to `database`, and checks it against the SHA-256 in the
/// archive. Only zeros may follow in the archive.
///
/// # Errors
/// Returns [`ArchiveError`] if the archive is incomplete, damaged or not a backup. A part of the
/// database may have been written.
pub(super) fn read_archive(
    archive: &mut impl Read,
    database: &mut impl Write,
) -> Result<(), ArchiveError> {
    let len = read_header(archive, DATABASE_NAME)?;
    let mut digest = Sha256::new();
    let (mut part, mut left) = (vec![0; PART], len);
    while left > 0 {
        let wanted = usize::try_from(left).map_or(PART, |left| left.min(PART));
        read_exact(archive, &mut part[..wanted])?;
        digest.update(&part[..wanted]);
        database
            .write_all(&part[..wanted])
            .map_err(ArchiveError::NotWritten)?;
        left -= wanted as u64;
    }
    read_zeros(archive, padding(len))?;
    let wanted = sums(digest);
    if read_header(archive, SUMS_NAME)? != wanted.len() as u64 {
        return Err(ArchiveError::Damaged(
            "the file SHA256SUMS has a wrong length",
        ));
    }
    let mut found = vec![0; wanted.len()];
    read_exact(archive, &mut found)?;
    if found != wanted.as_bytes() {
        return Err(ArchiveError::Damaged(
            "the SHA-256 of the database does not match SHA256SUMS",
        ));
    }
    read_zeros(archive, padding(wanted.len() as u64) + 2 * BLOCK)?;
    // A program such as tar may pad the archive with zeros to a multiple of 10 KiB.
    let mut rest = [0; BLOCK];
    loop {
        match archive.read(&mut rest) {
            Ok(0) => return Ok(()),
            Ok(len) if rest[..len].iter().all(|byte| *byte == 0) => {}
            Ok(_) => {
                return Err(ArchiveError::Damaged(
                    "other bytes follow the end of the archive",
                ));
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(ArchiveError::NotRead(error)),
        }
    }
}

fn sums(digest: Sha256) -> String {
    let hex: String = digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{hex}  {DATABASE_NAME}\n")
}

/// Returns the number of padding bytes that follow the `len` bytes of a file in a tar archive.
fn padding(len: u64) -> usize {
    let block = BLOCK as u64;
    usize::try_from(len.next_multiple_of(block) - len).expect("less than a block")
}

fn header(name: &str, len: u64) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let mut set = |field: Field, text: &str| {
        header[field.start..field.start + text.len()].copy_from_slice(text.as_bytes());
    };
    set(NAME, name);
    set(MODE, "0000600");
    set(OWNER, "0000000");
    set(GROUP, "0000000");
    set(TIME, "00000000000");
    set(CHECKSUM, "        ");
    set(KIND..KIND + 1, "0");
    set(MAGIC, "ustar\x0000");
    let octal = format!("{len:011o}");
    if octal.len() < SIZE.len() {
        set(SIZE, &octal);
    } else {
        header[SIZE.start] = BINARY;
        header[SIZE.end - 8..SIZE.end].copy_from_slice(&len.to_be_bytes());
    }
    let sum = checksum(&header);
    header[CHECKSUM][..7].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    header
}

/// Returns the checksum of a tar header: the sum of all its bytes, with blanks in place of the
/// checksum field.
fn checksum(header: &[u8; BLOCK]) -> u32 {
    let bytes = header.iter().enumerate();
    bytes
        .map(|(at, byte)| match CHECKSUM.contains(&at) {
            true => u32::from(b' '),
            false => u32::from(*byte),
        })
        .sum()
}

/// Reads the tar header of the file `wanted`, which must be a regular file, and returns its length
/// in bytes.
fn read_header(archive: &mut impl Read, wanted: &'static str) -> Result<u64, ArchiveError> {
    let mut header = [0; BLOCK];
    read_exact(archive, &mut header)?;
    let no_header = ArchiveError::NotABackup {
        found: "bytes that are no tar header".to_owned(),
        wanted,
    };
    if !header[MAGIC].starts_with(b"ustar") {
        return Err(no_header);
    }
    if octal(&header[CHECKSUM]) != Some(u64::from(checksum(&header))) {
        return Err(ArchiveError::Damaged(
            "the checksum of a tar header does not match",
        ));
    }
    let name = String::from_utf8_lossy(until_zero(&header[NAME])).into_owned();
    if name != wanted || ![b'0', 0].contains(&header[KIND]) {
        let kind = match header[KIND] {
            b'0' | 0 => "the file",
            b'1' | b'2' => "the link",
            b'5' => "the folder",
            _ => "the special entry",
        };
        return Err(ArchiveError::NotABackup {
            found: format!("{kind} {name:?}"),
            wanted,
        });
    }
    let size = &header[SIZE];
    let len = match size[0] {
        BINARY => size[1..SIZE.len() - 8]
            .iter()
            .all(|byte| *byte == 0)
            .then(|| u64::from_be_bytes(std::array::from_fn(|at| size[SIZE.len() - 8 + at]))),
        _ => octal(size),
    };
    len.ok_or(ArchiveError::Damaged(
        "the size in a tar header is not a number",
    ))
}

fn until_zero(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn octal(field: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(until_zero(field)).ok()?;
    u64::from_str_radix(digits.trim(), 8).ok()
}

fn read_zeros(archive: &mut impl Read, len: usize) -> Result<(), ArchiveError> {
    let mut bytes = vec![0; len];
    read_exact(archive, &mut bytes)?;
    match bytes.iter().all(|byte| *byte == 0) {
        true => Ok(()),
        false => Err(ArchiveError::Damaged(
            "the padding after a file is not zero",
        )),
    }
}

fn read_exact(archive: &mut impl Read, bytes: &mut [u8]) -> Result<(), ArchiveError> {
    archive
        .read_exact(bytes)
        .map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => ArchiveError::Truncated,
            _ => ArchiveError::NotRead(error),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive_of(database: &[u8]) -> Vec<u8> {
        let mut archive = Vec::new();
        write_archive(&mut &database[..], database.len() as u64, &mut archive)
            .expect("memory suffices");
        archive
    }

    fn database_in(mut archive: &[u8]) -> Result<Vec<u8>, ArchiveError> {
        let mut database = Vec::new();
        read_archive(&mut archive, &mut database).map(|()| database)
    }

    /// Returns an archive whose first header was changed and has a correct checksum again.
    fn with_header(change: impl FnOnce(&mut [u8])) -> Vec<u8> {
        let mut archive = archive_of(b"database");
        change(&mut archive[..BLOCK]);
        let header: [u8; BLOCK] = archive[..BLOCK].try_into().expect("a block");
        let sum = format!("{:06o}\0", checksum(&header));
        archive[CHECKSUM][..7].copy_from_slice(sum.as_bytes());
        archive
    }

    #[test]
    fn an_archive_has_the_database_that_was_written_to_it() {
        for len in [0, 1, 511, 512, 513, 200_000] {
            let database: Vec<u8> = (0..=255).cycle().take(len).collect();
            let mut archive = archive_of(&database);
            assert_eq!(archive.len() % BLOCK, 0);
            assert_eq!(database_in(&archive).expect("as it was written"), database);
            archive.extend([0; 3 * BLOCK]);
            assert_eq!(database_in(&archive).expect("padded"), database);
        }
    }

    #[test]
    fn every_flipped_bit_and_every_missing_byte_is_noticed() {
        let archive = archive_of(b"database");
        let is_unused = |at: usize| {
            // Only a flipped bit in the checksum field of a tar header may go unnoticed. The
            // checksum covers all other fields, even owners and dates, which a restore ignores.
            let at = at % BLOCK;
            CHECKSUM.contains(&at)
        };
        for at in 0..archive.len() {
            for bit in 0..8 {
                let mut flipped = archive.clone();
                flipped[at] ^= 1 << bit;
                let found = database_in(&flipped);
                assert!(
                    found.is_err()
                        || is_unused(at) && found.is_ok_and(|found| found == b"database"),
                    "bit {bit} of byte {at}"
                );
            }
            assert!(
                matches!(database_in(&archive[..at]), Err(ArchiveError::Truncated)),
                "{at} bytes"
            );
        }
    }

    #[test]
    fn an_entry_that_no_backup_has_is_refused() {
        let named = |name: &str| {
            with_header(|header| {
                header[NAME].fill(0);
                header[..name.len()].copy_from_slice(name.as_bytes());
            })
        };
        for name in [
            "../idmint.redb",
            "/etc/passwd",
            "horizon",
            "",
            "./idmint.redb",
        ] {
            let error = database_in(&named(name)).expect_err(name);
            let said = error.to_string();
            assert!(
                said.contains(&format!("{name:?}")) && said.contains("idmint backup -"),
                "{said}"
            );
        }
        for kind in b"1256xgLS" {
            let error = database_in(&with_header(|header| header[KIND] = *kind));
            assert!(
                matches!(error, Err(ArchiveError::NotABackup { .. })),
                "{kind}"
            );
        }
        let mut more = archive_of(b"database");
        more.extend(header("horizon", 0));
        assert!(database_in(&more).is_err());
        assert!(database_in(&[b'x'; 4_096]).is_err());
    }

    #[test]
    fn a_size_beyond_eight_gibibytes_is_binary() {
        for len in [0, 8, (8 << 30) - 1, 8 << 30, u64::MAX] {
            let header = header(DATABASE_NAME, len);
            assert_eq!(header[SIZE.start] == BINARY, len >= 8 << 30, "{len}");
            assert_eq!(
                read_header(&mut &header[..], DATABASE_NAME).expect("a header"),
                len
            );
        }
    }

    #[test]
    fn a_database_that_ends_early_makes_no_archive() {
        let written = write_archive(&mut &b"short"[..], 6, &mut Vec::new());
        assert_eq!(
            written.expect_err("a byte is missing").kind(),
            ErrorKind::UnexpectedEof
        );
    }
}
