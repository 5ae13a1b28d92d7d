//! The keys of requests, in a table of the database: by the day on which they were recorded, and in each day by the key.
//!
//! Days, so that what is forgotten lies together and is found without a search, and so that what is written at one time lies
//! in few pages. A row is 28 bytes: when it was recorded, the last event it appended, and a CRC-32C over its name and these.

use redb::{ReadableTable, Table, TableDefinition};

use crate::ledger::{EventId, EventTime, KeyHash};
use crate::storage::records::{DoneRequest, WrittenDay, days_to_forget};

/// Day and key to the request.
pub(super) const REQUESTS: TableDefinition<'_, Name, &[u8]> = TableDefinition::new("requests");

/// What names a row.
pub(super) type Name = (u32, u128);

/// The requests, as a transaction sees them.
pub(super) trait RequestRows: ReadableTable<Name, &'static [u8]> {}
impl<T: ReadableTable<Name, &'static [u8]>> RequestRows for T {}

type RequestTable<'a> = Table<'a, Name, &'static [u8]>;

/// Keeps a request. One of the same key and day is replaced.
pub(super) fn write_request(
    requests: &mut RequestTable<'_>,
    done: &DoneRequest,
) -> Result<(), redb::Error> {
    let name = (WrittenDay::of(done.recorded).number(), done.key.0);
    requests.insert(name, to_bytes(name, done).as_slice())?;
    Ok(())
}

/// The last request of each of these keys. A look at each day that there is, of which there are few.
pub(super) fn find(
    requests: &impl RequestRows,
    keys: &[KeyHash],
) -> Result<Vec<Option<DoneRequest>>, redb::Error> {
    let days = days(requests)?;
    let find_one = |key: &KeyHash| {
        for day in days.iter().rev() {
            let name = (day.number(), key.0);
            if let Some(row) = requests.get(name)? {
                return from_bytes(name, row.value())
                    .map(Some)
                    .ok_or_else(|| damaged(name));
            }
        }
        Ok(None)
    };
    keys.iter().map(find_one).collect()
}

/// Forgets up to `count_max` requests of days that are old. Returns whether there were any.
pub(super) fn forget(
    requests: &mut RequestTable<'_>,
    since: EventTime,
    count_max: usize,
) -> Result<bool, redb::Error> {
    let days = days(requests)?;
    let Some(day) = days_to_forget(&days, since).first() else {
        return Ok(false);
    };
    let names = requests
        .range((day.number(), 0)..=(day.number(), u128::MAX))?
        .take(count_max);
    let names = names
        .map(|row| Ok(row?.0.value()))
        .collect::<Result<Vec<_>, redb::Error>>()?;
    for name in names {
        requests.remove(name)?;
    }
    Ok(true)
}

/// Whether there is a day that [`forget`] would take from.
pub(super) fn has_old(requests: &impl RequestRows, since: EventTime) -> Result<bool, redb::Error> {
    Ok(!days_to_forget(&days(requests)?, since).is_empty())
}

/// The days of which there is a request, in their order.
pub(super) fn days(requests: &impl RequestRows) -> Result<Vec<WrittenDay>, redb::Error> {
    let mut found = Vec::new();
    let mut next = Some(0);
    while let Some(from) = next {
        let Some(row) = requests.range((from, 0)..)?.next() else {
            break;
        };
        let (day, _) = row?.0.value();
        found.push(WrittenDay::numbered(day));
        next = day.checked_add(1);
    }
    Ok(found)
}

fn to_bytes(name: Name, done: &DoneRequest) -> [u8; 28] {
    let mut bytes = [0; 28];
    bytes[..8].copy_from_slice(&done.recorded.micros().to_be_bytes());
    bytes[8..24].copy_from_slice(&done.last.value().to_be_bytes());
    let crc = crc_of(name, &bytes[..24]);
    bytes[24..].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// Reads the row of that name; `None` when it is not what was written.
fn from_bytes(name: Name, bytes: &[u8]) -> Option<DoneRequest> {
    let (content, crc) = bytes.split_last_chunk::<4>()?;
    if crc_of(name, content) != u32::from_be_bytes(*crc) {
        return None;
    }
    let (recorded, last) = content.split_first_chunk()?;
    let recorded = EventTime::from_micros(u64::from_be_bytes(*recorded))?;
    let last = EventId::from_value(u128::from_be_bytes(last.try_into().ok()?))?;
    Some(DoneRequest {
        key: KeyHash(name.1),
        recorded,
        last,
    })
}

fn crc_of((day, key): Name, content: &[u8]) -> u32 {
    let of_name = crc32c::crc32c_append(crc32c::crc32c(&day.to_be_bytes()), &key.to_be_bytes());
    crc32c::crc32c_append(of_name, content)
}

fn damaged((day, key): Name) -> redb::Error {
    redb::Error::Corrupted(format!(
        "the request {key:032x} of day {day} is not what was written"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_as_it_was_written_and_every_flipped_bit_is_found() {
        let last = EventId::from_text("0005cd7556b05092aecc815daa77f99c").expect("an id");
        let recorded = EventTime::from_micros(1_900_000_000_000_000).expect("in range");
        let done = DoneRequest {
            key: KeyHash(9),
            recorded,
            last,
        };
        let name = (21_990, 9);
        let bytes = to_bytes(name, &done);
        assert_eq!(from_bytes(name, &bytes), Some(done));
        assert_eq!(
            from_bytes((21_991, 9), &bytes),
            None,
            "a row that has come under another name"
        );
        for at in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[at / 8] ^= 1 << (at % 8);
            assert_eq!(from_bytes(name, &flipped), None, "bit {at}");
        }
        assert_eq!(from_bytes(name, &bytes[..27]), None);
    }
}
