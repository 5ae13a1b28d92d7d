//! What is known of the reports of an anchor as bytes: version (1), count, first and last report in 8 bytes each number,
//! CRC-32C over all of these. An anchor of which nothing is known has an empty row.

use crate::conjunction::{ReportTally, Seen, Tca};
use crate::time::UnixNanos;

const VERSION: u8 = 1;
const LEN: usize = 1 + 5 * 8 + 4;

/// A tally as bytes.
pub(in crate::storage) fn to_bytes(tally: &ReportTally) -> Vec<u8> {
    let numbers = [
        tally.count.to_be_bytes(),
        tally.first.at.get().to_be_bytes(),
        tally.first.tca.0.to_be_bytes(),
        tally.last.at.get().to_be_bytes(),
        tally.last.tca.0.to_be_bytes(),
    ];
    let mut bytes = Vec::with_capacity(LEN);
    bytes.push(VERSION);
    bytes.extend_from_slice(numbers.as_flattened());
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_be_bytes());
    bytes
}

/// Reads a row; `None` for an empty one, and for one that is not what was written: it is a hint, and begins anew.
pub(in crate::storage) fn from_bytes(bytes: &[u8]) -> Option<ReportTally> {
    let content = bytes.get(1..LEN - 4)?;
    let [count, first_at, first_tca, last_at, last_tca] = content.as_chunks::<8>().0 else {
        return None;
    };
    let seen = |at: &[u8; 8], tca: &[u8; 8]| Seen {
        at: UnixNanos::new(u64::from_be_bytes(*at)),
        tca: Tca(i64::from_be_bytes(*tca)),
    };
    let tally = ReportTally {
        count: u64::from_be_bytes(*count),
        first: seen(first_at, first_tca),
        last: seen(last_at, last_tca),
    };
    (to_bytes(&tally) == bytes).then_some(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_is_read_as_it_was_written_and_damage_is_nothing_known() {
        let seen = |at, tca| Seen {
            at: UnixNanos::new(at),
            tca: Tca(tca),
        };
        let tally = ReportTally {
            count: 7,
            first: seen(1, -2),
            last: seen(u64::MAX, i64::MAX),
        };
        let bytes = to_bytes(&tally);
        assert_eq!(from_bytes(&bytes), Some(tally));
        for at in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            assert_eq!(from_bytes(&flipped), None, "bit {at}");
        }
        assert_eq!((from_bytes(&[]), from_bytes(&bytes[1..])), (None, None));
    }
}
