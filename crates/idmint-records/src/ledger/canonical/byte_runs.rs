//! Counts the bytes before the next special byte, such as a quote or a line feed. Eight bytes are
//! compared at a time.

const EACH: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Returns the number of bytes at the beginning of a JSON string that can be copied unchanged.
/// These bytes end before the closing quote, an escape or a control character.
pub(in crate::ledger) fn plain_len(bytes: &[u8]) -> usize {
    let stops = |word| below(word, 0x20) | equal(word, b'"') | equal(word, b'\\');
    run_len(bytes, stops, |byte| matches!(byte, ..0x20 | b'"' | b'\\'))
}

/// Returns the number of bytes before the first line feed, or the length of `bytes` if it has no
/// line feed.
pub(in crate::ledger) fn line_len(bytes: &[u8]) -> usize {
    run_len(bytes, |word| equal(word, b'\n'), |byte| byte == b'\n')
}

/// Returns the number of bytes before the first stop byte, or the length of `bytes` if it has none.
/// `word_stops` takes eight bytes, the first one lowest. It returns a word whose lowest set bit is
/// in the first stop byte, or 0 if there is none.
fn run_len(
    bytes: &[u8],
    word_stops: impl Fn(u64) -> u64,
    byte_stops: impl Fn(u8) -> bool,
) -> usize {
    let mut len = 0;
    while let Some(word) = bytes[len..].first_chunk() {
        let found = word_stops(u64::from_le_bytes(*word));
        if found != 0 {
            return len + found.trailing_zeros() as usize / 8;
        }
        len += 8;
    }
    let rest = &bytes[len..];
    len + rest
        .iter()
        .position(|byte| byte_stops(*byte))
        .unwrap_or(rest.len())
}

/// Sets the high bit of every byte in `word` that is less than `bound`. Only the lowest set bit is
/// reliable, because the subtraction in one byte may borrow from the bytes above it.
fn below(word: u64, bound: u64) -> u64 {
    word.wrapping_sub(EACH * bound) & !word & HIGH
}

/// Sets the high bit of every byte in `word` that is equal to `byte`. Only the lowest set bit is
/// reliable, because a subtraction in one byte may borrow from the bytes above it.
fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ (EACH * u64::from(byte)), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_stops_a_run_or_does_not_at_every_place() {
        for byte in 0..=u8::MAX {
            let stops = byte < 0x20 || byte == b'"' || byte == b'\\';
            for at in 0..24 {
                let mut bytes = [b'!'; 25];
                bytes[at] = byte;
                assert_eq!(
                    plain_len(&bytes),
                    if stops { at } else { 25 },
                    "{byte:02x} at {at}"
                );
                bytes[24] = b'"';
                assert_eq!(
                    plain_len(&bytes),
                    if stops { at } else { 24 },
                    "{byte:02x} at {at}"
                );
            }
        }
        assert_eq!(plain_len(b""), 0);
    }

    #[test]
    fn a_line_ends_at_its_first_end() {
        for at in 0..24 {
            let mut bytes = [b'\x0b'; 25];
            bytes[at..].fill(b'\n');
            assert_eq!((line_len(&bytes), line_len(&bytes[..at])), (at, at));
        }
    }
}
