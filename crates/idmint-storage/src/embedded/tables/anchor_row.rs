//! The byte format of the row of an anchor: the version in 1 byte (always 1), the rank in 4 bytes,
//! and a CRC-32C in 4 bytes. A new anchor gets a higher rank than the older anchors near it. The
//! CRC-32C covers the row name and the bytes before it.

use idmint_records::conjunction::{Anchor, Pair, Tca};

const VERSION: u8 = 1;

/// The length of a row, in bytes.
pub(super) const LEN: usize = 9;

/// The key of the row for an anchor: the format, the two objects, and their time of closest
/// approach in microseconds since 1970.
pub(super) type Name<'a> = (&'a str, u64, u64, i64);

/// Returns the row key of the first report of a close approach of two objects at the time `tca`.
pub(super) fn name(format: &str, pair: Pair, tca: Tca) -> Name<'_> {
    (format, pair.primary, pair.secondary, tca.0)
}

/// Encodes the row of an anchor without the row's key, `name`, which the checksum also covers.
pub(super) fn to_bytes(name: Name<'_>, rank: u32) -> [u8; LEN] {
    let mut bytes = [VERSION; LEN];
    bytes[1..5].copy_from_slice(&rank.to_be_bytes());
    let crc = crc_of(name, &bytes[..5]);
    bytes[5..].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// Decodes the row with this name (key). The anchor's time is in the name and not in the row.
/// Returns `None` if the row is damaged, or if a later version wrote it.
pub(super) fn from_bytes(name: Name<'_>, bytes: &[u8]) -> Option<Anchor> {
    let rank = u32::from_be_bytes(*bytes.get(1..5)?.first_chunk()?);
    (bytes == to_bytes(name, rank)).then_some(Anchor {
        tca: Tca(name.3),
        rank,
    })
}

/// `true` if the row's checksum, which also covers the name, is right. A row with a right checksum
/// that cannot be decoded is not damaged. A later version of this program has written it.
pub(super) fn is_whole(name: Name<'_>, bytes: &[u8]) -> bool {
    bytes
        .split_last_chunk()
        .is_some_and(|(content, crc)| crc_of(name, content) == u32::from_be_bytes(*crc))
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
