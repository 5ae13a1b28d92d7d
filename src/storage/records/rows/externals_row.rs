//! The ids of other originators beside an anchor as bytes: version (1), each id with its length in 2 bytes before it, CRC-32C over
//! all of these.

use crate::conjunction::ExternalId;

const VERSION: u8 = 1;

/// Ids as bytes.
pub(in crate::storage) fn to_bytes(externals: &[ExternalId]) -> Vec<u8> {
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

/// Reads a row; `None` when it is not what was written.
pub(in crate::storage) fn from_bytes(bytes: &[u8]) -> Option<Vec<ExternalId>> {
    let (content, crc) = bytes.split_last_chunk()?;
    let (&VERSION, mut rest) = content
        .split_first()
        .filter(|_| crc32c::crc32c(content).to_be_bytes() == *crc)?
    else {
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

/// Adds an id to those of an anchor, if there is room and it is not among them. Returns whether it was added.
pub(in crate::storage) fn add(externals: &mut Vec<ExternalId>, external: &ExternalId) -> bool {
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
