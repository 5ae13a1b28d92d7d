//! Writes minted ids as rows of numbers. A row stands for many equally spaced ids in a few bytes.

use idmint_core::id::{FieldKind, Format, Progression};

/// The maximum length of a row of ids with its comma, in bytes. A row has two numbers of 128 bits
/// and a count of eight digits.
pub(super) const ROW_LEN_MAX: usize = 120;

/// Returns the maximum number of rows that `count` ids of a format take. The ids of one worker
/// number in a whole tick, the format's unit of time, are one row. Each of the node's `lanes`
/// worker numbers adds at most two rows, because its first and its last tick may be incomplete.
pub(super) fn rows_max(format: &Format, lanes: usize, count: u64) -> usize {
    let sequences = format
        .variants
        .iter()
        .filter_map(|variant| variant.layout.field_of(FieldKind::Sequence));
    let per_tick = sequences
        .map(|sequence| sequence.max.saturating_add(1))
        .min()
        .unwrap_or(1);
    let whole = usize::try_from(u128::from(count) / per_tick).unwrap_or(usize::MAX);
    let most = whole.saturating_add(lanes.saturating_mul(2));
    most.min(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Appends a row as JSON, followed by a comma.
pub(super) fn write_row(row: &Progression, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    out.extend_from_slice(br#"{"first":""#);
    out.extend_from_slice(digits.format(row.first).as_bytes());
    out.extend_from_slice(br#"","step":""#);
    out.extend_from_slice(digits.format(row.step).as_bytes());
    out.extend_from_slice(br#"","count":"#);
    out.extend_from_slice(digits.format(row.count).as_bytes());
    out.extend_from_slice(b"},");
}

/// Returns the number of bytes that [`write_row`] appends.
pub(super) fn row_len(row: &Progression) -> usize {
    const BESIDE_DIGITS: usize = r#"{"first":"","step":"","count":},"#.len();
    let mut digits = itoa::Buffer::new();
    let numbers = [row.first, row.step, row.count.into()];
    BESIDE_DIGITS
        + numbers
            .map(|number| digits.format(number).len())
            .iter()
            .sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_as_long_as_was_said_and_never_longer_than_the_longest() {
        let greatest = Progression {
            first: u128::MAX,
            step: u128::MAX,
            count: 10_000_000,
        };
        for row in [
            Progression {
                first: 0,
                step: 1,
                count: 1,
            },
            Progression {
                first: 987,
                step: 64,
                count: 4_096,
            },
            greatest,
        ] {
            let mut written = Vec::new();
            write_row(&row, &mut written);
            assert_eq!(written.len(), row_len(&row), "{row:?}");
            assert!(written.len() <= ROW_LEN_MAX, "{} bytes", written.len());
        }
    }

    #[test]
    fn a_batch_has_rows_for_its_whole_ticks_and_both_ends_of_each_lane() {
        let snowflake = Format::built_in("snowflake").expect("is built in");
        assert_eq!(rows_max(&snowflake, 8, 100_000), 24 + 16);
        assert_eq!(rows_max(&snowflake, 8, 3), 3);
        assert!(
            rows_max(&snowflake, 8, 100_000) * 60 < 3 * 1024,
            "a row of 64 bits is some 56 bytes"
        );
    }
}
