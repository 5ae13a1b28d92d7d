//! The row with the report count of an anchor. The row has the version in 1 byte (always 1), five
//! integers of 8 bytes each, and a CRC-32C over all of these. The integers are the count, and two
//! times of the first report and of the last report: its arrival and its closest approach. If an
//! anchor has no report count, its row is empty.

use idmint_core::time::UnixNanos;
use idmint_records::conjunction::{ReportCount, Seen, Tca};

const VERSION: u8 = 1;
const LEN: usize = 1 + 5 * 8 + 4;

/// Encodes a report count as a row.
pub fn to_bytes(report_count: &ReportCount) -> Vec<u8> {
    let numbers = [
        report_count.count.to_be_bytes(),
        report_count.first.at.get().to_be_bytes(),
        report_count.first.tca.0.to_be_bytes(),
        report_count.last.at.get().to_be_bytes(),
        report_count.last.tca.0.to_be_bytes(),
    ];
    let mut bytes = Vec::with_capacity(LEN);
    bytes.push(VERSION);
    bytes.extend_from_slice(numbers.as_flattened());
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_be_bytes());
    bytes
}

/// Decodes the row with a report count. Returns `None` if the row is empty, damaged or of a later
/// version. A missing count need not be an error, because counting can start again.
pub fn from_bytes(bytes: &[u8]) -> Option<ReportCount> {
    let content = bytes.get(1..LEN - 4)?;
    let [count, first_at, first_tca, last_at, last_tca] = content.as_chunks::<8>().0 else {
        return None;
    };
    let seen = |at: &[u8; 8], tca: &[u8; 8]| Seen {
        at: UnixNanos::new(u64::from_be_bytes(*at)),
        tca: Tca(i64::from_be_bytes(*tca)),
    };
    let report_count = ReportCount {
        count: u64::from_be_bytes(*count),
        first: seen(first_at, first_tca),
        last: seen(last_at, last_tca),
    };
    (to_bytes(&report_count) == bytes).then_some(report_count)
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
        let report_count = ReportCount {
            count: 7,
            first: seen(1, -2),
            last: seen(u64::MAX, i64::MAX),
        };
        let bytes = to_bytes(&report_count);
        assert_eq!(from_bytes(&bytes), Some(report_count));
        for at in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            assert_eq!(from_bytes(&flipped), None, "bit {at}");
        }
        assert_eq!((from_bytes(&[]), from_bytes(&bytes[1..])), (None, None));
    }
}
