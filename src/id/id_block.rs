//! Ids that are written in one go.

/// Ids that are written in one go: any list, or a progression, whose ids need not be computed one by one.
///
/// ```
/// use idmint::id::{IdBlock, Progression};
///
/// assert_eq!(IdBlock::List(&[7, 1, 7]).len(), 3);
/// assert_eq!(IdBlock::Progression(Progression { first: 7, step: 2, count: 5 }).len(), 5);
/// ```
#[derive(Debug, Clone, Copy)]
pub enum IdBlock<'a> {
    /// Any ids.
    List(&'a [u128]),
    /// Ids at equal distances: those of one tick, as a lane mints them.
    Progression(Progression),
}

/// Ids at equal distances: `first`, `first + step`, …, `count` of them.
///
/// Bounds: the last id is below 2^128, too.
///
/// ```
/// use idmint::id::Progression;
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
    /// How many ids there are.
    pub count: u64,
}

impl IdBlock<'_> {
    /// How many ids there are.
    pub fn len(&self) -> usize {
        match self {
            IdBlock::List(ids) => ids.len(),
            IdBlock::Progression(ids) => {
                usize::try_from(ids.count).expect("as many as are written at once")
            }
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends each id as `width` bytes, big-endian: 1 to 16 bytes, and no id needs more.
    ///
    /// ```
    /// use idmint::id::{IdBlock, Progression};
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

    /// How much longer [`IdBlock::write_bytes`] makes `out` while it writes: a little more than the ids need.
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

/// Writes each id as `LEN` bytes, the first `width` of which are its own; the next id covers the others. So every store has
/// a length that the compiler knows:
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
    /// The last id.
    ///
    /// # Panics
    /// When there are no ids.
    pub fn last(&self) -> u128 {
        self.first + u128::from(self.count - 1) * self.step
    }

    /// The ids.
    ///
    /// # Panics
    /// When the last one is not below 2^128.
    pub fn values(&self) -> impl ExactSizeIterator<Item = u128> {
        let Progression { first, step, count } = *self;
        // Checked once for all of them: the others are between these two.
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

    /// Drops the first `count` ids, at most all of them.
    pub(crate) fn skip(&mut self, count: u64) {
        self.count -= count;
        // There need not be a number after the last one.
        if self.count > 0 {
            self.first += u128::from(count) * self.step;
        }
    }

    /// The sum of `len` over all ids, where `len` never falls as the id grows: found by bisection, not by counting.
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

    /// How many ids from the first on are `alike`: the first one is, and after one that is not there is none.
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
