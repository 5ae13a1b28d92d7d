//! The row with the external ids of an anchor. An external id is an id that another originator gave
//! to the anchor's conjunction.
//!
//! The row begins with the version in 1 byte (always 1). Then follow the ids, each preceded by its
//! length in 2 bytes. The row ends with a CRC-32C over everything before it.

use idmint_records::conjunction::ExternalId;

const VERSION: u8 = 1;

/// Encodes external ids as a row.
pub fn to_bytes(externals: &[ExternalId]) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    for external in externals {
        bytes.extend(
            u16::try_from(external.as_str().len())
                .expect("ids are short")
                .to_be_bytes(),
        );
        bytes.extend(external.as_str().as_bytes());
    }
    bytes.extend(crc32c::crc32c(&bytes).to_be_bytes());
    bytes
}

/// Decodes a row. Returns `None` if the row is damaged or of a later version.
pub fn from_bytes(bytes: &[u8]) -> Option<Vec<ExternalId>> {
    let (content, _) = bytes.split_last_chunk::<4>()?;
    let (&VERSION, mut rest) = content.split_first().filter(|_| is_whole(bytes))? else {
        return None;
    };
    let mut externals = Vec::new();
    while !rest.is_empty() {
        let (len, behind) = rest.split_first_chunk()?;
        let (text, behind) = behind.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
        externals.push(ExternalId::new(str::from_utf8(text).ok()?)?);
        rest = behind;
    }
    Some(externals)
}

/// `true` if the checksum of the row is right. If a row with a right checksum cannot be decoded, a
/// later version of this program has written it.
pub(crate) fn is_whole(bytes: &[u8]) -> bool {
    bytes
        .split_last_chunk()
        .is_some_and(|(content, crc)| crc32c::crc32c(content).to_be_bytes() == *crc)
}

/// Adds an external id to the ids of a conjunction. Returns `false`, without adding the id, if the
/// conjunction already has this id or the maximum number of ids.
pub fn add(externals: &mut Vec<ExternalId>, external: &ExternalId) -> bool {
    let is_added = externals.len() < ExternalId::COUNT_MAX && !externals.contains(external);
    if is_added {
        externals.push(external.clone());
    }
    is_added
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_were_written_and_damage_is_noticed() {
        let ids = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| ExternalId::new(text).expect("short"))
                .collect::<Vec<_>>()
        };
        for externals in [
            ids(&[]),
            ids(&["A"]),
            ids(&["2012-018D", "é / ü", &"€".repeat(254)]),
        ] {
            let bytes = to_bytes(&externals);
            assert_eq!(from_bytes(&bytes), Some(externals));
            for at in 0..bytes.len() * 8 {
                let mut flipped = bytes.clone();
                flipped[at / 8] ^= 1 << (at % 8);
                assert_eq!(from_bytes(&flipped), None, "bit {at}");
            }
            assert_eq!(from_bytes(&bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(from_bytes(&[]), None);
    }
}
