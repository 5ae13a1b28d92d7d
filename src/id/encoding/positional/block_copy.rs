//! Many texts one after the other.

use super::division::split;
use crate::id::row::{Progression, Row};

/// The longest text, with its seam, that is copied as a block; and what a row takes beyond its texts to copy the last ones
/// so, too.
pub(crate) const BLOCK_MAX: usize = 64;

/// The last two letters of texts that end in digits: all in which a text differs from most of its neighbours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Endings<'a> {
    letters: &'a [[u8; 2]],
    /// From this value on a text has two digits or more, and as many as others of the same beginning.
    from: u128,
}

impl<'a> Endings<'a> {
    /// How many letters that is.
    pub(in crate::id::encoding) const LEN: usize = 2;

    /// Of texts of a fixed length, two letters or more.
    pub(in crate::id::encoding) fn of_fixed(letters: &'a [[u8; 2]]) -> Self {
        Self { letters, from: 0 }
    }

    /// Of texts as long as their numbers.
    pub(in crate::id::encoding) fn of_minimal(letters: &'a [[u8; 2]]) -> Self {
        Self { letters, from: u128::try_from(letters.len()).expect("at most 94 squared") }
    }

    /// How far it is from one of its endings to the next one of a row, where so many begin alike that they are worth a
    /// block.
    fn step(&self, row: &Progression) -> Option<usize> {
        usize::try_from(row.step).ok().filter(|step| (1..=self.letters.len() / 8).contains(step))
    }

    /// The endings of the texts that begin like that of `value`, but for its own: each a step after the one before.
    fn after(&self, value: u128, step: usize) -> impl Iterator<Item = [u8; 2]> {
        let (_, own) = split(value, u64::try_from(self.letters.len()).expect("at most 94 squared"));
        let next = usize::try_from(own).expect("an index into letters") + step;
        self.letters.get(next..).unwrap_or_default().chunks(step).map(|alike| alike[0])
    }
}

/// Writes the text of each id, of the length that `len` tells, and a seam after it; says how much of `out` that took.
///
/// `endings`: for texts that end in digits. `out` is [`BLOCK_MAX`] longer than the texts need.
#[inline]
pub(crate) fn write_row<const SEAM: usize>(
    row: Row<'_>,
    len: impl Fn(u128) -> usize,
    write: impl Fn(u128, &mut [u8]),
    endings: Option<Endings<'_>>,
    seam: [u8; SEAM],
    out: &mut [u8],
) -> usize {
    let write_one = |id: u128, out: &mut [u8]| {
        let (text, after) = out.split_at_mut(len(id));
        write(id, text);
        *after.first_chunk_mut().expect("room for each text and a seam") = seam;
        text.len() + SEAM
    };
    match row {
        Row::Ids(ids) => ids.iter().fold(0, |written, id| written + write_one(*id, &mut out[written..])),
        Row::Progression(row) => write_progression(row, write_one, endings, SEAM, out),
    }
}

/// The same for ids at equal distances: a text is a copy of the one before but for its end, where that is enough.
#[inline]
fn write_progression(
    row: Progression,
    write_one: impl Fn(u128, &mut [u8]) -> usize,
    endings: Option<Endings<'_>>,
    seam_len: usize,
    out: &mut [u8],
) -> usize {
    let endings = endings.and_then(|endings| Some((endings, endings.step(&row)?)));
    let mut written = 0;
    let mut left = row;
    while left.count > 0 {
        let value = left.first;
        let rest = &mut out[written..];
        let sample_len = write_one(value, rest);
        let (sample, room) = rest.split_at_mut(sample_len);
        written += sample_len;
        left.skip(1);
        if let Some((endings, step)) = endings
            && value >= endings.from
            && left.count > 0
        {
            let later = endings.after(value, step).take(usize::try_from(left.count).unwrap_or(usize::MAX));
            let count = write_alike(sample, seam_len, later, room);
            written += count * sample_len;
            left.skip(u64::try_from(count).expect("no more than are left"));
        }
    }
    written
}

/// Writes texts like `sample`, which ends in a seam, with these endings, as far as there is room for a block; says how
/// many.
fn write_alike(sample: &[u8], seam_len: usize, endings: impl Iterator<Item = [u8; 2]>, out: &mut [u8]) -> usize {
    let (beginning, end) = sample.split_at(sample.len() - seam_len - Endings::LEN);
    match sample.len() {
        0..=16 => write_blocks::<16>(beginning, end, endings, out),
        17..=32 => write_blocks::<32>(beginning, end, endings, out),
        33..=BLOCK_MAX => write_blocks::<BLOCK_MAX>(beginning, end, endings, out),
        _ => 0,
    }
}

/// A block is an ending, a seam, and the beginning of the next text: so the one thing that changes comes first. It may
/// be longer than that, which what is written next covers.
fn write_blocks<const BLOCK: usize>(
    beginning: &[u8],
    end: &[u8],
    endings: impl Iterator<Item = [u8; 2]>,
    out: &mut [u8],
) -> usize {
    let stride = end.len() + beginning.len();
    let mut block = [0; BLOCK];
    block[..end.len()].copy_from_slice(end);
    block[end.len()..stride].copy_from_slice(beginning);
    let Some((first, mut rest)) = out.split_at_mut_checked(beginning.len()) else { return 0 };
    first.copy_from_slice(beginning);
    let mut count = 0;
    for ending in endings {
        let Some(room) = rest.first_chunk_mut() else { break };
        *room = block;
        room[..Endings::LEN].copy_from_slice(&ending);
        rest = &mut rest[stride..];
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_with_no_room_beyond_its_texts_is_the_same() {
        let letters: Vec<[u8; 2]> = (b'0'..=b'9').flat_map(|a| (b'0'..=b'9').map(move |b| [a, b])).collect();
        let row = Progression { first: 9_990, step: 1, count: 320 };
        let write = |value: u128, out: &mut [u8]| out.copy_from_slice(value.to_string().as_bytes());
        let expected: String = row.values().map(|value| format!("{value}, ")).collect();
        for beyond in [0, 1, 15, 16, BLOCK_MAX] {
            let mut out = vec![0; expected.len() + beyond];
            let endings = Some(Endings::of_minimal(&letters));
            let len = |value: u128| value.to_string().len();
            let written = write_row(Row::Progression(row), len, write, endings, *b", ", &mut out);
            assert_eq!(written, expected.len());
            assert_eq!(str::from_utf8(&out[..written]), Ok(expected.as_str()));
        }
    }
}
