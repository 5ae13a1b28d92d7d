//! Many texts one after the other.

use crate::id::codec::digits::split;

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
    pub(super) const LEN: usize = 2;

    /// Of texts of a fixed length, two letters or more.
    pub(super) fn of_fixed(letters: &'a [[u8; 2]]) -> Self {
        Self { letters, from: 0 }
    }

    /// Of texts as long as their numbers.
    pub(super) fn of_minimal(letters: &'a [[u8; 2]]) -> Self {
        Self { letters, from: u128::try_from(letters.len()).expect("at most 94 squared") }
    }

    /// How many values in a row have the same beginning.
    fn count(&self) -> u64 {
        u64::try_from(self.letters.len()).expect("at most 94 squared")
    }

    /// Writes texts like `sample`, which is that of `value` with its seam, for values that begin alike, as far as there
    /// is room for a block; says how many.
    fn write(&self, value: u128, sample: &[u8], seam_len: usize, values: &[u128], out: &mut [u8]) -> usize {
        let base = value - u128::from(split(value, self.count()).1);
        let (beginning, end) = sample.split_at(sample.len() - seam_len - Self::LEN);
        match sample.len() {
            0..=16 => self.write_blocks::<16>(base, beginning, end, values, out),
            17..=32 => self.write_blocks::<32>(base, beginning, end, values, out),
            33..=BLOCK_MAX => self.write_blocks::<BLOCK_MAX>(base, beginning, end, values, out),
            _ => 0,
        }
    }

    /// A block is an ending, a seam, and the beginning of the next text: so the one thing that changes comes first. It may
    /// be longer than that, which what is written next covers.
    fn write_blocks<const BLOCK: usize>(
        &self,
        base: u128,
        beginning: &[u8],
        end: &[u8],
        values: &[u128],
        out: &mut [u8],
    ) -> usize {
        let stride = end.len() + beginning.len();
        let mut block = [0; BLOCK];
        block[..end.len()].copy_from_slice(end);
        block[end.len()..stride].copy_from_slice(beginning);
        let (first, mut rest) = out.split_at_mut(beginning.len());
        first.copy_from_slice(beginning);
        for (written, value) in values.iter().enumerate() {
            let above = value.checked_sub(base).and_then(|above| usize::try_from(above).ok());
            let Some(ending) = above.and_then(|above| self.letters.get(above)) else { return written };
            let Some(room) = rest.first_chunk_mut() else { return written };
            *room = block;
            room[..Self::LEN].copy_from_slice(ending);
            rest = &mut rest[stride..];
        }
        values.len()
    }
}

/// Writes the text of each value, of the length that `len` tells, and a seam after it; says how much of `out` that took.
///
/// `endings`: for texts that end in digits. The values may be any; they are written faster where each is a little more
/// than the one before, and `out` is [`BLOCK_MAX`] longer than they need.
#[inline]
pub(crate) fn write_row<const SEAM: usize>(
    values: &[u128],
    len: impl Fn(u128) -> usize,
    write: impl Fn(u128, &mut [u8]),
    endings: Option<Endings<'_>>,
    seam: [u8; SEAM],
    out: &mut [u8],
) -> usize {
    // With longer steps too few texts begin alike to be worth a block.
    let step_max = endings.map_or(0, |endings| u128::from(endings.count() / 8));
    let room = out.len();
    let mut rest = out;
    let mut left = values;
    while let Some((value, later)) = left.split_first() {
        let text_len = len(*value);
        let (text, after) = rest.split_at_mut(text_len);
        write(*value, text);
        *after.first_chunk_mut().expect("room for each text and a seam") = seam;
        let (sample, after) = rest.split_at_mut(text_len + SEAM);
        (left, rest) = (later, after);
        // A step down wraps and is a long one: no branch, which would go either way where values are random.
        if later.first().is_some_and(|next| next.wrapping_sub(*value) <= step_max)
            && let Some(endings) = &endings
            && *value >= endings.from
        {
            let written = endings.write(*value, sample, SEAM, later, rest);
            left = &later[written..];
            rest = &mut rest[written * sample.len()..];
        }
    }
    room - rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_with_no_room_beyond_its_texts_is_the_same() {
        let letters: Vec<[u8; 2]> = (b'0'..=b'9').flat_map(|a| (b'0'..=b'9').map(move |b| [a, b])).collect();
        let values: Vec<u128> = (9_990..10_310).collect();
        let write = |value: u128, out: &mut [u8]| out.copy_from_slice(value.to_string().as_bytes());
        let expected: String = values.iter().map(|value| format!("{value}, ")).collect();
        for beyond in [0, 1, 15, 16, BLOCK_MAX] {
            let mut out = vec![0; expected.len() + beyond];
            let endings = Some(Endings::of_minimal(&letters));
            let len = |value: u128| value.to_string().len();
            assert_eq!(write_row(&values, len, write, endings, *b", ", &mut out), expected.len());
            assert_eq!(str::from_utf8(&out[..expected.len()]), Ok(expected.as_str()));
        }
    }
}
