//! The table of request keys. The table is ordered by the day on which each key was recorded, and
//! then by key.
//!
//! With this order, expired rows are at the beginning of the table and are found without a search.
//! Rows that are written at the same time share a few pages, so a write changes few pages. A row
//! has 28 bytes: the time of recording, the last event of the request's append, and a CRC-32C. The
//! CRC-32C covers the row name and the other fields.

use redb::{ReadableTable, Table, TableDefinition};

use super::record_tables::RecordTables;
use crate::failure::StoreError;
use crate::records::{DoneRequest, RequestStore, WrittenDay, days_to_forget};
use idmint_records::ledger::{EventId, EventTime, KeyHash};

/// Maps a day and an idempotency key to the request that was recorded on this day with this key.
pub(super) const REQUESTS: TableDefinition<'_, Name, &[u8]> = TableDefinition::new("requests");

/// The name of a row: the day and the request key.
pub(super) type Name = (u32, u128);

/// The maximum number of keys to look up in the open write transaction, because all other readers
/// and writers wait meanwhile. A longer list of keys is looked up in a read transaction.
const LOOKED_AT_MAX: usize = 100;

impl RequestStore for RecordTables {
    fn requests(&self, keys: &[KeyHash]) -> Result<Vec<Option<DoneRequest>>, StoreError> {
        if keys.len() <= LOOKED_AT_MAX {
            self.look(|transaction| find(&transaction.open_table(REQUESTS)?, keys))
        } else {
            self.read(|transaction| find(&transaction.open_table(REQUESTS)?, keys))
        }
    }

    fn forget_requests(&self, since: EventTime, count_max: usize) -> Result<bool, StoreError> {
        // Check in a read transaction first, which does not wait for other writers. Most calls find
        // no keys to remove.
        if days_to_forget(&self.request_days()?, since).is_empty() {
            return Ok(false);
        }
        self.change(|transaction| {
            let mut requests = transaction.open_table(REQUESTS)?;
            let days = days(&requests)?;
            let Some(day) = days_to_forget(&days, since).first() else {
                return Ok(false);
            };
            let names = requests
                .range((day.number(), 0)..=(day.number(), u128::MAX))?
                .take(count_max)
                .map(|row| Ok(row?.0.value()))
                .collect::<Result<Vec<_>, redb::Error>>()?;
            for name in names {
                requests.remove(name)?;
            }
            Ok(true)
        })
    }

    fn request_days(&self) -> Result<Vec<WrittenDay>, StoreError> {
        self.read(|transaction| days(&transaction.open_table(REQUESTS)?))
    }
}

/// Stores a request. An earlier request with the same key and day is replaced.
pub(super) fn write_request(
    requests: &mut Table<'_, Name, &'static [u8]>,
    done: &DoneRequest,
) -> Result<(), redb::Error> {
    let name = (WrittenDay::of(done.recorded).number(), done.key.0);
    requests.insert(name, to_bytes(name, done).as_slice())?;
    Ok(())
}

/// Returns the latest request with each of these keys. Looks up each key in all stored days, from
/// the latest to the earliest. Only a few days are stored, because the keys of old days are
/// removed.
fn find(
    requests: &impl ReadableTable<Name, &'static [u8]>,
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

/// Returns the days on which requests were recorded, in ascending order.
fn days(
    requests: &impl ReadableTable<Name, &'static [u8]>,
) -> Result<Vec<WrittenDay>, redb::Error> {
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

/// Decodes a completed request's row with the key `name`. Returns `None` if the row is damaged.
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
    redb::Error::Corrupted(format!("the request {key:032x} of day {day} is corrupted"))
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
