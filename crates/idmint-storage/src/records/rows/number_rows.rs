//! The byte formats of numbers.
//!
//! The name of each row begins with the name of the series. The second part depends on the kind of
//! row. It is the last issued number, the void number, the hash of the request key, or the first
//! number in a new text form. In the row of a closed series, it is the last number, or 0 if there
//! is none. All integers are big-endian. Every text is preceded by its length in 2 bytes:
//!
//! ```text
//! given   version 1; first number, 8 bytes; microseconds since 1970, 8; hash of the key, 16;
//!         digest of the request, 32; 1 and the caller, or 0
//! void    version 1; microseconds since 1970, 8 bytes; the reason; 1 and the caller, or 0
//! form    version 1; hash of the key that got the number, 16 bytes; least count of digits, 1;
//!         method for check characters, 1: 0 for none, 1 Luhn, 2 mod 97; text before the number;
//!         text after it
//! closed  version 1; microseconds since 1970, 8 bytes; 1 and the caller, or 0
//! key     the last number given to the key, 8 bytes
//! -4      CRC-32C over the name and everything before
//! ```

use idmint_records::ledger::{
    ClosedSeries, EventTime, FormChange, GivenNumbers, KeyHash, NumberCheck, NumberForm,
    RequestMark, SeriesName, VoidReason, VoidedNumber,
};

const VERSION: u8 = 1;
const CRC_LEN: usize = 4;

/// The name (key) of a row about numbers: the name of the series and a number.
pub type NumberName<'a> = (&'a str, u64);

/// The name (key) of a row for a request key: the name of the series and the hash of the request
/// key.
pub type KeyName<'a> = (&'a str, u128);

/// Returns the name of the row for these issued numbers.
pub fn name_of(given: &GivenNumbers) -> NumberName<'_> {
    (given.series.as_str(), given.last)
}

/// Returns the name of the row for this void number.
pub(crate) fn name_of_void(void: &VoidedNumber) -> NumberName<'_> {
    (void.series.as_str(), void.number)
}

/// Encodes the row for issued numbers.
pub fn given_to_bytes(given: &GivenNumbers) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    bytes.extend(given.first.to_be_bytes());
    bytes.extend(given.recorded.micros().to_be_bytes());
    bytes.extend(given.mark.key.0.to_be_bytes());
    bytes.extend(given.mark.digest);
    push_caller(&mut bytes, given.by.as_deref());
    sealed(name_of(given), bytes)
}

/// Decodes the row of the numbers that a request received. `name` is the row's key: the series and
/// the last of these numbers. Returns `None` if the row is damaged or of a later version.
pub fn given_of_bytes(name: NumberName<'_>, bytes: &[u8]) -> Option<GivenNumbers> {
    let mut rest = Rest(opened(name, bytes)?);
    let (series, last) = (SeriesName::from_text(name.0).ok()?, name.1);
    let first = u64::from_be_bytes(rest.array()?);
    let recorded = EventTime::from_micros(u64::from_be_bytes(rest.array()?))?;
    let mark = RequestMark {
        key: KeyHash(u128::from_be_bytes(rest.array()?)),
        digest: rest.array()?,
    };
    let by = rest.caller()?;
    (rest.0.is_empty() && first <= last).then_some(GivenNumbers {
        series,
        first,
        last,
        recorded,
        mark,
        by,
    })
}

/// Encodes the row for a void number.
pub fn void_to_bytes(void: &VoidedNumber) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    bytes.extend(void.recorded.micros().to_be_bytes());
    push_text(&mut bytes, void.reason.as_str());
    push_caller(&mut bytes, void.by.as_deref());
    sealed(name_of_void(void), bytes)
}

/// Decodes the row for a void number with this name. Returns `None` if the row is damaged or of a
/// later version.
pub fn void_of_bytes(name: NumberName<'_>, bytes: &[u8]) -> Option<VoidedNumber> {
    let mut rest = Rest(opened(name, bytes)?);
    let (series, number) = (SeriesName::from_text(name.0).ok()?, name.1);
    let recorded = EventTime::from_micros(u64::from_be_bytes(rest.array()?))?;
    let reason = VoidReason::from_text(rest.text()?)?;
    let by = rest.caller()?;
    rest.0.is_empty().then_some(VoidedNumber {
        series,
        number,
        recorded,
        reason,
        by,
    })
}

/// Returns the name of the row for this change of text form. The text form of a number is how it is
/// written, such as `INV-0042`.
pub fn name_of_form(change: &FormChange) -> NumberName<'_> {
    (change.series.as_str(), change.from)
}

/// Encodes the row for a change of text form.
pub fn form_to_bytes(change: &FormChange) -> Vec<u8> {
    let NumberForm {
        before,
        width,
        after,
        check,
    } = &change.form;
    let mut bytes = vec![VERSION];
    bytes.extend(change.of.0.to_be_bytes());
    bytes.push(*width);
    bytes.push(match check {
        None => 0,
        Some(NumberCheck::Luhn) => 1,
        Some(NumberCheck::Mod97) => 2,
    });
    push_text(&mut bytes, before);
    push_text(&mut bytes, after);
    sealed(name_of_form(change), bytes)
}

/// Decodes the row with this name, which stores a change of text form. Returns `None` if the row is
/// damaged or of a later version.
pub fn form_of_bytes(name: NumberName<'_>, bytes: &[u8]) -> Option<FormChange> {
    let mut rest = Rest(opened(name, bytes)?);
    let of = KeyHash(u128::from_be_bytes(rest.array()?));
    let [width, check] = rest.array()?;
    let check = match check {
        0 => None,
        1 => Some(NumberCheck::Luhn),
        2 => Some(NumberCheck::Mod97),
        _ => return None,
    };
    let (before, after) = (rest.text()?.to_owned(), rest.text()?.to_owned());
    rest.0.is_empty().then_some(FormChange {
        series: SeriesName::from_text(name.0).ok()?,
        from: name.1,
        of,
        form: NumberForm {
            before,
            width,
            after,
            check,
        },
    })
}

/// Returns the name of the row for this closed series.
pub(crate) fn name_of_closed(closed: &ClosedSeries) -> NumberName<'_> {
    (closed.series.as_str(), closed.last.unwrap_or(0))
}

/// Encodes the row for a closed series.
pub fn closed_to_bytes(closed: &ClosedSeries) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    bytes.extend(closed.recorded.micros().to_be_bytes());
    push_caller(&mut bytes, closed.by.as_deref());
    sealed(name_of_closed(closed), bytes)
}

/// Decodes the row with this name, which stores that a series was closed. Returns `None` if the row
/// is damaged or of a later version.
pub fn closed_of_bytes(name: NumberName<'_>, bytes: &[u8]) -> Option<ClosedSeries> {
    let mut rest = Rest(opened(name, bytes)?);
    let recorded = EventTime::from_micros(u64::from_be_bytes(rest.array()?))?;
    let by = rest.caller()?;
    rest.0.is_empty().then_some(ClosedSeries {
        series: SeriesName::from_text(name.0).ok()?,
        last: (name.1 > 0).then_some(name.1),
        recorded,
        by,
    })
}

/// Encodes the row for a request key, which contains the last number that was issued to that key.
pub fn key_to_bytes((series, key): KeyName<'_>, last: u64) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&last.to_be_bytes());
    let crc = crc_of(series, &key.to_be_bytes(), &bytes[..8]);
    bytes[8..].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// Returns the last number that was issued for an idempotency key, or `None` if its row is damaged.
/// `name`, the key of the row, is the series and the hash of the idempotency key.
pub fn key_of_bytes(name: KeyName<'_>, bytes: &[u8]) -> Option<u64> {
    let last = u64::from_be_bytes(*bytes.first_chunk()?);
    (key_to_bytes(name, last) == bytes).then_some(last)
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend(
        u16::try_from(text.len())
            .expect("texts of numbers are short")
            .to_be_bytes(),
    );
    bytes.extend(text.as_bytes());
}

fn push_caller(bytes: &mut Vec<u8>, by: Option<&str>) {
    bytes.push(u8::from(by.is_some()));
    by.into_iter().for_each(|by| push_text(bytes, by));
}

/// Appends a checksum to the content of a row. The checksum also covers the name (key) of the row.
fn sealed((series, number): NumberName<'_>, mut content: Vec<u8>) -> Vec<u8> {
    let crc = crc_of(series, &number.to_be_bytes(), &content);
    content.extend(crc.to_be_bytes());
    content
}

/// Returns the content of the row with this name, without the version and the checksum. Returns
/// `None` if the row is damaged or of a later version. [`is_whole`] tells these two cases apart.
fn opened<'a>((series, number): NumberName<'_>, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let (content, _) = bytes.split_last_chunk::<CRC_LEN>()?;
    content
        .strip_prefix(&[VERSION])
        .filter(|_| is_whole((series, number), bytes))
}

/// `true` if the checksum of the row with this name is right. If a row with a right checksum cannot
/// be decoded, a later version of this program has written it.
pub fn is_whole((series, number): NumberName<'_>, bytes: &[u8]) -> bool {
    bytes
        .split_last_chunk::<CRC_LEN>()
        .is_some_and(|(content, crc)| {
            crc_of(series, &number.to_be_bytes(), content) == u32::from_be_bytes(*crc)
        })
}

fn crc_of(series: &str, number: &[u8], content: &[u8]) -> u32 {
    crc32c::crc32c_append(
        crc32c::crc32c_append(crc32c::crc32c(series.as_bytes()), number),
        content,
    )
}

/// The bytes of a row that were not decoded yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn text(&mut self) -> Option<&'a str> {
        let len = usize::from(u16::from_be_bytes(self.array()?));
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        str::from_utf8(text).ok()
    }

    /// Decodes the name of the caller. Returns `Some(None)` if the caller is unknown, and `None` if
    /// the row is damaged.
    fn caller(&mut self) -> Option<Option<String>> {
        match self.array()? {
            [0] => Some(None),
            [1] => Some(Some(self.text()?.to_owned())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::assert_only_whole;

    #[test]
    fn rows_are_read_as_they_were_written_under_their_names_and_only_whole() {
        let series = SeriesName::from_text("acme-2026").expect("a name");
        let recorded = EventTime::from_micros(1_900_000_000_000_000).expect("in range");
        for by in [None, Some("the token `till`".to_owned())] {
            let mark = RequestMark {
                key: KeyHash(u128::MAX - 5),
                digest: [3; 32],
            };
            let given = GivenNumbers {
                series: series.clone(),
                first: 4,
                last: 6,
                recorded,
                mark,
                by: by.clone(),
            };
            let bytes = given_to_bytes(&given);
            assert_eq!(
                given_of_bytes(name_of(&given), &bytes).as_ref(),
                Some(&given)
            );
            assert_eq!(given_of_bytes(("acme-2027", 6), &bytes), None);
            assert_eq!(given_of_bytes(("acme-2026", 7), &bytes), None);
            assert_only_whole(&bytes, |bytes| given_of_bytes(name_of(&given), bytes));

            let reason = VoidReason::from_text("the order was cancelled ⑆").expect("a reason");
            let void = VoidedNumber {
                series: series.clone(),
                number: 5,
                recorded,
                reason,
                by,
            };
            let bytes = void_to_bytes(&void);
            assert_eq!(
                void_of_bytes(name_of_void(&void), &bytes).as_ref(),
                Some(&void)
            );
            assert_eq!(void_of_bytes(("acme-2026", 6), &bytes), None);
            assert_only_whole(&bytes, |bytes| void_of_bytes(name_of_void(&void), bytes));
        }
        for check in [None, Some(NumberCheck::Luhn), Some(NumberCheck::Mod97)] {
            let form = NumberForm {
                before: "AVO № ".to_owned(),
                width: 5,
                after: "/2026".to_owned(),
                check,
            };
            let change = FormChange {
                series: series.clone(),
                from: 4,
                of: KeyHash(u128::MAX - 5),
                form,
            };
            let bytes = form_to_bytes(&change);
            let name = name_of_form(&change);
            assert_eq!(form_of_bytes(name, &bytes).as_ref(), Some(&change));
            assert_eq!(form_of_bytes(("acme-2026", 5), &bytes), None);
            assert_only_whole(&bytes, |bytes| form_of_bytes(name, bytes));
        }
        for last in [None, Some(6)] {
            let closed = ClosedSeries {
                series: series.clone(),
                last,
                recorded,
                by: last.map(|_| "the token `till`".to_owned()),
            };
            let bytes = closed_to_bytes(&closed);
            let name = name_of_closed(&closed);
            assert_eq!(closed_of_bytes(name, &bytes).as_ref(), Some(&closed));
            assert_eq!(closed_of_bytes(("acme-2026", 7), &bytes), None);
            assert_only_whole(&bytes, |bytes| closed_of_bytes(name, bytes));
        }
        let name = ("acme-2026", 9);
        let bytes = key_to_bytes(name, 6);
        assert_eq!(
            (
                key_of_bytes(name, &bytes),
                key_of_bytes(("acme-2026", 8), &bytes)
            ),
            (Some(6), None)
        );
        assert_only_whole(&bytes, |bytes| key_of_bytes(name, bytes));
    }
}
