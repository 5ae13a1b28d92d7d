//! One anchor as bytes: version (1), rank in 4 bytes, CRC-32C over the name of the row and these.

use crate::conjunction::{Anchor, Pair, Tca};

const VERSION: u8 = 1;

/// Bytes of a row.
pub(super) const LEN: usize = 9;

/// What names a row: the format, the pair, the time in microseconds.
pub(super) type Name<'a> = (&'a str, u64, u64, i64);

/// The name of the row of an anchor.
pub(super) fn name(format: &str, pair: Pair, tca: Tca) -> Name<'_> {
    (format, pair.primary, pair.secondary, tca.0)
}

/// An anchor as bytes.
pub(super) fn to_bytes(name: Name<'_>, rank: u32) -> [u8; LEN] {
    let mut bytes = [VERSION; LEN];
    bytes[1..5].copy_from_slice(&rank.to_be_bytes());
    let crc = crc_of(name, &bytes[..5]);
    bytes[5..].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// Reads the row of that name; `None` when it is not what was written.
pub(super) fn from_bytes(name: Name<'_>, bytes: &[u8]) -> Option<Anchor> {
    let rank = u32::from_be_bytes(*bytes.get(1..5)?.first_chunk()?);
    (bytes == to_bytes(name, rank)).then_some(Anchor {
        tca: Tca(name.3),
        rank,
    })
}

fn crc_of((format, primary, secondary, tca): Name<'_>, content: &[u8]) -> u32 {
    let numbers = [
        primary.to_be_bytes(),
        secondary.to_be_bytes(),
        tca.to_be_bytes(),
    ];
    let of_name = numbers
        .iter()
        .fold(crc32c::crc32c(format.as_bytes()), |crc, part| {
            crc32c::crc32c_append(crc, part)
        });
    crc32c::crc32c_append(of_name, content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_as_it_was_written_and_under_its_name_only() {
        let named = name(
            "conjunction",
            Pair {
                primary: 25_544,
                secondary: 48_274,
            },
            Tca(-5),
        );
        let bytes = to_bytes(named, 7);
        assert_eq!(
            from_bytes(named, &bytes),
            Some(Anchor {
                tca: Tca(-5),
                rank: 7
            })
        );
        assert_eq!(
            from_bytes(("conjunctions", named.1, named.2, named.3), &bytes),
            None
        );
        assert_eq!(
            from_bytes((named.0, named.2, named.1, named.3), &bytes),
            None
        );
        assert_eq!(from_bytes((named.0, named.1, named.2, 5), &bytes), None);
        for at in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[at / 8] ^= 1 << (at % 8);
            assert_eq!(from_bytes(named, &flipped), None, "bit {at}");
        }
        assert_eq!(from_bytes(named, &bytes[..8]), None);
    }
}
