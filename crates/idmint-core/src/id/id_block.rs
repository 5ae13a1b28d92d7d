//! Blocks of ids that are encoded in one call.

/// Ids that are encoded in one call. A block is either a list, or a progression that is described
/// by its first id, step and count.
///
/// ```
/// use idmint_core::id::{IdBlock, Progression};
///
/// assert_eq!(IdBlock::List(&[7, 1, 7]).len(), 3);
/// assert_eq!(IdBlock::Progression(Progression { first: 7, step: 2, count: 5 }).len(), 5);
/// ```
#[derive(Debug, Clone, Copy)]
pub enum IdBlock<'a> {
    /// A list of any ids, in any order.
    List(&'a [u128]),
    /// Ids with a constant distance from each id to the next, such as the ids that one worker mints
    /// within one tick.
    Progression(Progression),
}

/// Ids with a constant distance: `first`, `first + step`, and so on, `count` ids in total.
///
/// Every id must be below 2^128, including the last one.
///
/// ```
/// use idmint_core::id::Progression;
///
/// let ids = Progression { first: 98, step: 1, count: 4 };
/// assert_eq!(ids.values().collect::<Vec<_>>(), [98, 99, 100, 101]);
/// assert_eq!(ids.last(), 101);
/// assert_eq!(ids.total_len(|id| id.to_string().len()), 2 + 2 + 3 + 3);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progression {
    /// The first id.
    pub first: u128,
    /// The distance from one id to the next.
    pub step: u128,
    /// The number of ids.
    pub count: u64,
}

impl IdBlock<'_> {
    /// Returns the number of ids in the block.
    pub fn len(&self) -> usize {
        match self {
            IdBlock::List(ids) => ids.len(),
            IdBlock::Progression(ids) => {
                usize::try_from(ids.count).expect("as many as are written at once")
            }
        }
    }

    /// `true` if the block contains no ids.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends each id to `out` as `width` big-endian bytes. `width` is 1 to 16, and every id must
    /// fit into `width` bytes.
    ///
    /// ```
    /// use idmint_core::id::{IdBlock, Progression};
    ///
    /// let mut bytes = Vec::new();
    /// IdBlock::Progression(Progression { first: 0x1fe, step: 1, count: 3 }).write_bytes(2, &mut bytes);
    /// assert_eq!(bytes, [0x01, 0xfe, 0x01, 0xff, 0x02, 0x00]);
    /// ```
    pub fn write_bytes(&self, width: usize, out: &mut Vec<u8>) {
        match self {
            IdBlock::List(ids) => write_bytes(ids.iter().copied(), width, out),
            IdBlock::Progression(ids) => write_bytes(ids.values(), width, out),
        }
    }

    /// Returns the maximum number of bytes by which [`IdBlock::write_bytes`] extends `out` while it
    /// writes `count` ids. This is 16 bytes more than the ids need, because each id is written as 8
    /// or 16 bytes, and the excess of the last one is cut off only afterwards.
    pub fn bytes_len_max(count: usize, width: usize) -> usize {
        count
            .saturating_mul(width)
            .saturating_add(size_of::<u128>())
    }
}

fn write_bytes(ids: impl ExactSizeIterator<Item = u128>, width: usize, out: &mut Vec<u8>) {
    let bits = 8 * u32::try_from(width).expect("at most 16");
    match width {
        0..=8 => {
            let short = |id| u64::try_from(id).expect("an id of at most eight bytes");
            write_overlapping(ids, width, out, |id| {
                (short(id) << (u64::BITS - bits)).to_be_bytes()
            });
        }
        _ => write_overlapping(ids, width, out, |id| {
            (id << (u128::BITS - bits)).to_be_bytes()
        }),
    }
}

/// Writes each id as `LEN` bytes, of which only the first `width` bytes are the id. The next id
/// overwrites the other bytes. Every write therefore has a length that is known at compile time:
///
/// ```text
/// width 3, LEN 8    |a a a|0 0 0 0 0|
///                         |b b b|0 0 0 0 0|
///                               |c c c|0 0 0 0 0|     the last five are cut off
/// ```
fn write_overlapping<const LEN: usize>(
    ids: impl ExactSizeIterator<Item = u128>,
    width: usize,
    out: &mut Vec<u8>,
    bytes_of: impl Fn(u128) -> [u8; LEN],
) {
    let start = out.len();
    let len = ids.len() * width;
    out.resize(start + IdBlock::bytes_len_max(ids.len(), width), 0);
    let mut rest = &mut out[start..];
    for id in ids {
        *rest.first_chunk_mut().expect("room for a whole number") = bytes_of(id);
        rest = &mut rest[width..];
    }
    out.truncate(start + len);
}

impl Progression {
    /// Returns the last id of the progression.
    ///
    /// # Panics
    /// Panics if the progression has no ids.
    pub fn last(&self) -> u128 {
        self.first + u128::from(self.count - 1) * self.step
    }

    /// Returns an iterator over all ids of the progression.
    ///
    /// # Panics
    /// Panics if the last id is not below 2^128.
    pub fn values(&self) -> impl ExactSizeIterator<Item = u128> {
        let Progression { first, step, count } = *self;
        // Check only the last id, because all other ids are between the first and the last one.
        assert!(
            count == 0 || first <= self.last(),
            "the last of {self:?} is a number of 128 bits"
        );
        let mut next = first;
        (0..IdBlock::Progression(*self).len()).map(move |_| {
            let id = next;
            next = id.wrapping_add(step);
            id
        })
    }

    /// Drops the first `count` ids of the progression. `count` must not exceed the number of ids.
    pub(crate) fn skip(&mut self, count: u64) {
        self.count -= count;
        // If no ids remain, `first` would become the id after the last one, which could be 2^128.
        // Leave `first` unchanged in that case.
        if self.count > 0 {
            self.first += u128::from(count) * self.step;
        }
    }

    /// Returns the total length of all ids. `len` returns the length of one, such as its number of
    /// digits. A greater id must not be shorter, because ids of one length are found by bisection.
    pub fn total_len(&self, len: impl Fn(u128) -> usize) -> u64 {
        let mut total = 0;
        let mut left = *self;
        while left.count > 0 {
            let first_len = len(left.first);
            let same = left.count_while(|id| len(id) == first_len);
            total += same * u64::try_from(first_len).expect("a text is short");
            left.skip(same);
        }
        total
    }

    /// Returns the number of leading ids that satisfy `alike`. The search is a bisection, so the
    /// first id must satisfy `alike`, and all ids after the first failing id must fail.
    fn count_while(&self, alike: impl Fn(u128) -> bool) -> u64 {
        if alike(self.last()) {
            return self.count;
        }
        let (mut holds, mut fails) = (0, self.count - 1);
        while fails - holds > 1 {
            let middle = holds + (fails - holds) / 2;
            if alike(self.first + u128::from(middle) * self.step) {
                holds = middle
            } else {
                fails = middle
            }
        }
        fails
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_total_length_is_the_sum_of_all_lengths() {
        let len = |id: u128| id.to_string().len();
        for (first, step, count) in [
            (0, 1, 1),
            (0, 1, 12_345),
            (7, 13, 1000),
            (99, 1, 2),
            (999_999_999_999, 3, 100),
        ] {
            let ids = Progression { first, step, count };
            assert_eq!(
                ids.total_len(len),
                ids.values().map(|id| len(id) as u64).sum::<u64>()
            );
        }
    }

    proptest! {
        #[test]
        fn bytes_are_the_lowest_of_each_id(width in 1_usize..=16, seed: u128, step in 0_u128..1000, count in 0_u64..50) {
            let greatest = u128::MAX >> (128 - 8 * width);
            let first = (seed & greatest).min(greatest - (step * 50).min(greatest));
            let step = if greatest < 50_000 { 0 } else { step };
            let progression = Progression { first, step, count };
            let ids: Vec<u128> = progression.values().collect();
            let expected: Vec<u8> = ids.iter().flat_map(|id| id.to_be_bytes()[16 - width..].to_vec()).collect();
            for block in [IdBlock::Progression(progression), IdBlock::List(&ids)] {
                let mut written = b"before".to_vec();
                block.write_bytes(width, &mut written);
                prop_assert_eq!(&written[..6], b"before");
                prop_assert_eq!(&written[6..], &expected);
            }
        }
    }
}
