//! Writes the texts of a block of ids. Most texts are copies of the previous text in which only the
//! last two letters change.
//!
//! If consecutive ids differ by the same small step, most neighbours differ only in their last two
//! letters. Only the first text of such neighbours is written digit by digit. The others are
//! written as chunks of constant length, with one or two move instructions each:
//!
//! ```text
//! wanted     1573542478315782,1573542478315783,1573542478315784,
//! written    1573542478315782,                                     digit by digit, with separator
//! beginning                   15735424783157                       copied once
//! chunk                                     83,15735424783157~~~~~~~~~~~~~~~     32 bytes: ending, separator, next beginning
//! chunk                                                      84,15735424783157~~~~~~~~~~~~~~~
//!                                           ^^ looked up     ~~~ covered by the next chunk, or cut off at the end
//! ```

use crate::id::id_block::{IdBlock, Progression};

/// The maximum length in bytes of a text with separator that is copied as one constant-size chunk.
///
/// A chunk can be longer than its text. The buffer therefore needs this number of spare bytes after
/// the last text.
pub(crate) const CHUNK_MAX: usize = 64;

/// All possible last two letters of a text, such as `00` to `99` in decimal. Neighbouring ids
/// mostly differ only in these letters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Endings<'a> {
    /// All pairs of letters that can end a text, in ascending order of their value as two digits.
    letters: &'a [[u8; 2]],
    /// The smallest number whose text may be copied, with other last two letters, to write the next
    /// texts. In decimal without leading zeros, this is 100, because texts of smaller numbers, such
    /// as `7`, may have only one letter.
    from: u128,
}

impl<'a> Endings<'a> {
    /// The length of an ending in letters.
    pub(in crate::id::encoding) const LEN: usize = 2;

    /// Creates the endings of texts of one length, at least 2. `letters` are all pairs, ascending.
    pub(in crate::id::encoding) fn of_fixed(letters: &'a [[u8; 2]]) -> Self {
        Self { letters, from: 0 }
    }

    /// Creates the endings of texts without leading zeros. `letters` are all pairs, ascending.
    /// Texts of fewer than three digits are not copied, because they may have only one letter.
    pub(in crate::id::encoding) fn of_minimal(letters: &'a [[u8; 2]]) -> Self {
        Self {
            letters,
            from: u128::try_from(letters.len()).expect("at most 94 squared"),
        }
    }

    /// Returns the distance between the endings of neighbouring ids, in entries of `letters`.
    ///
    /// Returns `None` if the distance is 0, or exceeds an eighth of the endings. On average, fewer
    /// than eight consecutive ids would then share a beginning, and copying would not be faster
    /// than writing each text.
    fn step(&self, ids: &Progression) -> Option<usize> {
        usize::try_from(ids.step)
            .ok()
            .filter(|step| (1..=self.letters.len() / 8).contains(step))
    }

    /// Returns the last two letters of each id that follows `value`, as long as the rest of the
    /// text stays the same, but at most `most` pairs. From one id to the next, the pair moves
    /// forward by `step` entries in `letters`, which has all pairs in ascending order.
    fn after(&self, value: u128, step: usize, most: u64) -> Later<'a> {
        let (_, own) = split(
            value,
            u64::try_from(self.letters.len()).expect("at most 94 squared"),
        );
        let next = usize::try_from(own).expect("an index into letters") + step;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Later {
            letters: self.letters.get(next..).unwrap_or_default(),
            step,
            most,
        }
    }
}

/// The last two letters of the texts that follow a text: every `step`-th pair of `letters`, but at
/// most `most` pairs.
#[derive(Clone, Copy)]
struct Later<'a> {
    letters: &'a [[u8; 2]],
    step: usize,
    most: usize,
}

/// Writes the text of each id followed by the separator `seam`, and returns the number of bytes
/// written.
///
/// `len` returns the length of the text of one id, and `write` writes that text. Pass `endings` if
/// the texts of neighbouring ids mostly differ only in their last two letters. `out` must be
/// [`CHUNK_MAX`] bytes longer than the texts.
#[inline]
pub(crate) fn write_block<const SEAM: usize>(
    block: IdBlock<'_>,
    len: impl Fn(u128) -> usize,
    write: impl Fn(u128, &mut [u8]),
    endings: Option<Endings<'_>>,
    seam: [u8; SEAM],
    out: &mut [u8],
) -> usize {
    let write_one = |id: u128, out: &mut [u8]| {
        let (text, after) = out.split_at_mut(len(id));
        write(id, text);
        *after
            .first_chunk_mut()
            .expect("room for each text and a seam") = seam;
        text.len() + SEAM
    };
    match block {
        IdBlock::List(ids) => ids.iter().fold(0, |written, id| {
            written + write_one(*id, &mut out[written..])
        }),
        IdBlock::Progression(ids) => write_progression(ids, write_one, endings, SEAM, out),
    }
}

/// Writes the texts of equidistant ids. If possible, a text is copied from an earlier one that
/// differs only in the last two letters. Other texts are written digit by digit.
#[inline]
fn write_progression(
    ids: Progression,
    write_one: impl Fn(u128, &mut [u8]) -> usize,
    endings: Option<Endings<'_>>,
    seam_len: usize,
    out: &mut [u8],
) -> usize {
    let endings = endings.and_then(|endings| Some((endings, endings.step(&ids)?)));
    let mut written = 0;
    let mut left = ids;
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
            let count = copy_sample(
                sample,
                seam_len,
                endings.after(value, step, left.count),
                room,
            );
            written += count * sample_len;
            left.skip(u64::try_from(count).expect("no more than are left"));
        }
    }
    written
}

/// Copies `sample`, a text with its separator, once for each pair in `endings`. The pair replaces
/// the last two letters of the text. Stops when the next chunk, which can be longer than its text,
/// does not fit into `out`. Does not copy a `sample` longer than [`CHUNK_MAX`].
///
/// Returns the number of texts written.
fn copy_sample(sample: &[u8], seam_len: usize, endings: Later<'_>, out: &mut [u8]) -> usize {
    let (beginning, end) = sample.split_at(sample.len() - seam_len - Endings::LEN);
    match sample.len() {
        0..=16 => copy_chunks::<16>(beginning, end, endings, out),
        17..=32 => copy_chunks::<32>(beginning, end, endings, out),
        33..=CHUNK_MAX => copy_chunks::<CHUNK_MAX>(beginning, end, endings, out),
        _ => 0,
    }
}

/// Writes one chunk for each ending. A chunk consists of the ending, the separator, and the
/// beginning of the next text.
///
/// The ending comes first because it is the only part that changes. The next chunk overwrites the
/// unused bytes of a chunk.
// Not inlined, because the loops for the three chunk sizes would compete for registers within one
// function, and each text would take a third more instructions.
#[inline(never)]
fn copy_chunks<const CHUNK: usize>(
    beginning: &[u8],
    end: &[u8],
    endings: Later<'_>,
    out: &mut [u8],
) -> usize {
    let stride = end.len() + beginning.len();
    let mut chunk = [0; CHUNK];
    chunk[..end.len()].copy_from_slice(end);
    chunk[end.len()..stride].copy_from_slice(beginning);
    let Some((first, mut rest)) = out.split_at_mut_checked(beginning.len()) else {
        return 0;
    };
    first.copy_from_slice(beginning);
    let mut count = 0;
    for ending in endings
        .letters
        .iter()
        .step_by(endings.step)
        .take(endings.most)
    {
        let Some(room) = rest.first_chunk_mut() else {
            break;
        };
        *room = chunk;
        room[..Endings::LEN].copy_from_slice(ending);
        rest = &mut rest[stride..];
        count += 1;
    }
    count
}

/// Divides `value` and returns the quotient and the remainder. Values below `divisor` need no
/// division, and values below 2^64 need only a 64-bit division.
#[inline]
pub(in crate::id::encoding) fn split(value: u128, divisor: u64) -> (u128, u64) {
    if let Ok(short) = u64::try_from(value) {
        if short < divisor {
            return (0, short);
        }
        return (u128::from(short / divisor), short % divisor);
    }
    // Compute the remainder with a multiplication, because a second 128-bit division would be
    // slower.
    let quotient = value / u128::from(divisor);
    (
        quotient,
        lowest_64_bits(value - quotient * u128::from(divisor)),
    )
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the higher bits are left for the next part"
)]
pub(super) fn lowest_64_bits(value: u128) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_with_no_room_beyond_its_texts_is_the_same() {
        let letters: Vec<[u8; 2]> = (b'0'..=b'9')
            .flat_map(|a| (b'0'..=b'9').map(move |b| [a, b]))
            .collect();
        let ids = Progression {
            first: 9_990,
            step: 1,
            count: 320,
        };
        let write = |value: u128, out: &mut [u8]| out.copy_from_slice(value.to_string().as_bytes());
        let expected: String = ids.values().map(|value| format!("{value}, ")).collect();
        for beyond in [0, 1, 15, 16, CHUNK_MAX] {
            let mut out = vec![0; expected.len() + beyond];
            let endings = Some(Endings::of_minimal(&letters));
            let len = |value: u128| value.to_string().len();
            let written = write_block(
                IdBlock::Progression(ids),
                len,
                write,
                endings,
                *b", ",
                &mut out,
            );
            assert_eq!(written, expected.len());
            assert_eq!(str::from_utf8(&out[..written]), Ok(expected.as_str()));
        }
    }
}
