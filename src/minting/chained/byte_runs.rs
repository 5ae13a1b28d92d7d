//! How far a run of bytes goes, found eight bytes at a time.

const EACH: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// How many bytes of the inside of a JSON string come before its end, an escape or a control character.
pub(super) fn plain_len(bytes: &[u8]) -> usize {
    // In a byte that is less than the bound, and in those above it in the word perhaps, the high bit is set. Only the
    // lowest is looked at, and that is exact.
    let below = |word: u64, bound: u64| word.wrapping_sub(EACH * bound) & !word & HIGH;
    let stops = |word: u64| {
        below(word, 0x20) | below(word ^ (EACH * u64::from(b'"')), 1) | below(word ^ (EACH * u64::from(b'\\')), 1)
    };
    let mut len = 0;
    while let Some(word) = bytes[len..].first_chunk() {
        let found = stops(u64::from_le_bytes(*word));
        if found != 0 {
            return len + found.trailing_zeros() as usize / 8;
        }
        len += 8;
    }
    let rest = &bytes[len..];
    len + rest.iter().position(|byte| matches!(byte, ..0x20 | b'"' | b'\\')).unwrap_or(rest.len())
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
                assert_eq!(plain_len(&bytes), if stops { at } else { 25 }, "{byte:02x} at {at}");
                bytes[24] = b'"';
                assert_eq!(plain_len(&bytes), if stops { at } else { 24 }, "{byte:02x} at {at}");
            }
        }
        assert_eq!(plain_len(b""), 0);
    }
}
