//! Writes the texts of a block of ids, most of them as a copy of the one before with two other letters at the end.
//!
//! In a progression with a small step most neighbours differ in their last two letters only. The first text of such
//! neighbours is written digit by digit, the others in chunks of a constant length, which is one or two moves each:
//!
//! ```text
//! wanted     1573542478315782,1573542478315783,1573542478315784,
//! written    1573542478315782,                                     digit by digit, with its seam `,`
//! beginning                   15735424783157                       copied once
//! chunk                                     83,15735424783157~~~~~~~~~~~~~~~     32 bytes: ending, seam, next beginning
//! chunk                                                      84,15735424783157~~~~~~~~~~~~~~~
//!                                           ^^ looked up     ~~~ covered by the next chunk, or cut off at the end
//! ```

use super::division::split;
use crate::id::id_block::{IdBlock, Progression};

/// The longest text, with its seam, that is copied; and the room that a block takes beyond its texts, so that the chunk of
/// its last text fits.
pub(crate) const CHUNK_MAX: usize = 64;

/// The last two letters of texts that end in digits: all in which a text differs from most of its neighbours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Endings<'a> {
    /// Every ending, in the order of the numbers.
    letters: &'a [[u8; 2]],
    /// From this number on, texts of one beginning have one length, and two letters at least.
    from: u128,
}

impl<'a> Endings<'a> {
    /// The length of an ending.
    pub(in crate::id::encoding) const LEN: usize = 2;

    /// For texts of a fixed length of two letters or more.
    pub(in crate::id::encoding) fn of_fixed(letters: &'a [[u8; 2]]) -> Self {
        Self { letters, from: 0 }
    }

    /// For texts without padding: they grow with the number, so numbers of one digit have no ending.
    pub(in crate::id::encoding) fn of_minimal(letters: &'a [[u8; 2]]) -> Self {
        Self {
            letters,
            from: u128::try_from(letters.len()).expect("at most 94 squared"),
        }
    }

    /// Distance between the endings of neighbouring ids, or `None` if a copy would not pay off: fewer than eight of them
    /// begin alike.
    fn step(&self, ids: &Progression) -> Option<usize> {
        usize::try_from(ids.step)
            .ok()
            .filter(|step| (1..=self.letters.len() / 8).contains(step))
    }

    /// The endings of the ids after `value` whose texts begin like its own, as many as that at most.
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

/// Endings one after another: every `step`-th of these, `most` at most.
#[derive(Clone, Copy)]
struct Later<'a> {
    letters: &'a [[u8; 2]],
    step: usize,
    most: usize,
}

/// Writes the text of each id and a seam after it; returns how much of `out` that took.
///
/// `len` and `write` write one text. `endings` are those of texts that end in digits. `out` is [`CHUNK_MAX`] longer than
/// the texts need.
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

/// Writes one text of each group of neighbours that begin alike, and copies it for the others.
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

/// Writes texts like `sample`, which ends in a seam, with these endings, as far as there is room for a chunk; returns how
/// many.
fn copy_sample(sample: &[u8], seam_len: usize, endings: Later<'_>, out: &mut [u8]) -> usize {
    let (beginning, end) = sample.split_at(sample.len() - seam_len - Endings::LEN);
    match sample.len() {
        0..=16 => copy_chunks::<16>(beginning, end, endings, out),
        17..=32 => copy_chunks::<32>(beginning, end, endings, out),
        33..=CHUNK_MAX => copy_chunks::<CHUNK_MAX>(beginning, end, endings, out),
        _ => 0,
    }
}

/// Writes one chunk for each ending: the ending, the seam, and the beginning of the next text. The ending comes first, as
/// the one thing that changes; what the chunk is too long is covered by the next one.
// Not inlined: three loops in one function share its registers, which costs each text a third more instructions.
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
