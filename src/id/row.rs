//! Many ids one after the other, before they are spelled.

/// Ids to be spelled one after the other: any, or at equal distances, which need not be computed one by one.
#[derive(Debug, Clone, Copy)]
pub enum Row<'a> {
    /// Any ids.
    Ids(&'a [u128]),
    /// Ids of one tick, as a lane mints them.
    Progression(Progression),
}

/// `first`, `first + step`, …, `count` of them; the last one is a number of 128 bits, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progression {
    /// The first id.
    pub first: u128,
    /// From one id to the next.
    pub step: u128,
    /// How many.
    pub count: u64,
}

impl Row<'_> {
    /// How many ids.
    pub fn len(&self) -> usize {
        match self {
            Row::Ids(ids) => ids.len(),
            Row::Progression(ids) => usize::try_from(ids.count).expect("as many as are spelled at once"),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends each id as that many bytes, big-endian, at most 16; the bytes above them are zero.
    ///
    /// ```
    /// use idmint::id::{Progression, Row};
    ///
    /// let mut bytes = Vec::new();
    /// Row::Progression(Progression { first: 0x1fe, step: 1, count: 3 }).write_bytes(2, &mut bytes);
    /// assert_eq!(bytes, [0x01, 0xfe, 0x01, 0xff, 0x02, 0x00]);
    /// ```
    pub fn write_bytes(&self, width: usize, out: &mut Vec<u8>) {
        match self {
            Row::Ids(ids) => write_bytes(ids.iter().copied(), width, out),
            Row::Progression(ids) => write_bytes(ids.values(), width, out),
        }
    }

    /// How much longer [`Row::write_bytes`] makes `out` while it writes: a little more than the ids need.
    pub fn bytes_len_max(count: usize, width: usize) -> usize {
        count.saturating_mul(width).saturating_add(size_of::<u128>())
    }
}

fn write_bytes(ids: impl ExactSizeIterator<Item = u128>, width: usize, out: &mut Vec<u8>) {
    let bits = 8 * u32::try_from(width).expect("at most 16");
    match width {
        0..=8 => {
            let short = |id| u64::try_from(id).expect("an id of at most eight bytes");
            write_places(ids, width, out, |id| (short(id) << (u64::BITS - bits)).to_be_bytes());
        }
        _ => write_places(ids, width, out, |id| (id << (u128::BITS - bits)).to_be_bytes()),
    }
}

/// Each id takes a whole number's place, whose end the next one covers: so every store has a length that the compiler knows.
fn write_places<const PLACE: usize>(
    ids: impl ExactSizeIterator<Item = u128>,
    width: usize,
    out: &mut Vec<u8>,
    place: impl Fn(u128) -> [u8; PLACE],
) {
    let start = out.len();
    let len = ids.len() * width;
    out.resize(start + Row::bytes_len_max(ids.len(), width), 0);
    let mut rest = &mut out[start..];
    for id in ids {
        *rest.first_chunk_mut().expect("room for a whole number") = place(id);
        rest = &mut rest[width..];
    }
    out.truncate(start + len);
}

impl Progression {
    /// The last id. There is one.
    pub fn last(&self) -> u128 {
        self.first + u128::from(self.count - 1) * self.step
    }

    /// Its ids.
    pub fn values(&self) -> impl ExactSizeIterator<Item = u128> {
        let Progression { first, step, count } = *self;
        // Checked once for all of them: the others are between these two.
        assert!(count == 0 || first <= self.last(), "the last of {self:?} is a number of 128 bits");
        let mut next = first;
        (0..Row::Progression(*self).len()).map(move |_| {
            let id = next;
            next = id.wrapping_add(step);
            id
        })
    }

    /// Goes past the first ids, at most all of them.
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
            let same = left.count_below(|id| len(id) == first_len);
            total += same * u64::try_from(first_len).expect("a spelling is short");
            left.skip(same);
        }
        total
    }

    /// How many ids from the first on hold `is`, which holds for the first and, once it fails, for none after.
    fn count_below(&self, is: impl Fn(u128) -> bool) -> u64 {
        if is(self.last()) {
            return self.count;
        }
        let (mut holds, mut fails) = (0, self.count - 1);
        while fails - holds > 1 {
            let middle = holds + (fails - holds) / 2;
            if is(self.first + u128::from(middle) * self.step) { holds = middle } else { fails = middle }
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
        for (first, step, count) in [(0, 1, 1), (0, 1, 12_345), (7, 13, 1000), (99, 1, 2), (999_999_999_999, 3, 100)] {
            let ids = Progression { first, step, count };
            assert_eq!(ids.total_len(len), ids.values().map(|id| len(id) as u64).sum::<u64>());
        }
    }

    proptest! {
        #[test]
        fn bytes_are_the_lowest_of_each_id(width in 1_usize..=16, seed: u128, step in 0_u128..1000, count in 0_u64..50) {
            let greatest = u128::MAX >> (128 - 8 * width);
            let first = (seed & greatest).min(greatest - (step * 50).min(greatest));
            let step = if greatest < 50_000 { 0 } else { step };
            let row = Progression { first, step, count };
            let ids: Vec<u128> = row.values().collect();
            let expected: Vec<u8> = ids.iter().flat_map(|id| id.to_be_bytes()[16 - width..].to_vec()).collect();
            for row in [Row::Progression(row), Row::Ids(&ids)] {
                let mut written = b"before".to_vec();
                row.write_bytes(width, &mut written);
                prop_assert_eq!(&written[..6], b"before");
                prop_assert_eq!(&written[6..], &expected);
            }
        }
    }
}
