//! The keys of records. Numbers in keys are padded to a fixed number of digits, so that keys sort
//! in numerical order.
//!
//! ```text
//! meta                                   what the fleet has agreed on                     (written by slot leases)
//! hz/SLOT, slot/SLOT                     horizon of a slot; holder of a slot              (written by slot leases)
//! ledger/LEDGER                          first event and head of a ledger
//! event/LEDGER/LAST-EVENT                the appends of one transaction, by the id of their last event
//! request/KEY                            the last request with that key
//! request-day/DAY/LAST-EVENT             idempotency keys of a day, for the sweep of expired keys
//! series/SERIES                          first and last number of a series, and whether it is closed
//! number/SERIES/LAST                     the numbers that one transaction issued, by the last number
//! number-key/SERIES/KEY                  the last number that was issued to a key
//! number-form/SERIES/FROM                how numbers from FROM on are written
//! void/SERIES/NUMBER                     a void number
//! number-hold                            the hold on numbers that the last fence set
//! number-kinds                           the kinds of series at the last start of a node
//! number-templates                       the templates of all starts, for the texts of numbers
//! number-hold/SERIES                     the last hold that has ended for a series, or for all if SERIES is `*`
//! conj/FORMAT/PRIMARY-SECONDARY          the anchors of a pair, in the order of their creation
//! conj-t/FORMAT/TIME/PRIMARY-SECONDARY   one anchor with its report count, by time
//! conj-x/FORMAT/TIME/PRIMARY-SECONDARY   the external ids of an anchor
//! conj-e/FORMAT/ID/TIME/PRIMARY-SECONDARY   no content: an anchor by external id, whose bytes are in base 16
//! ```

use std::ops::RangeInclusive;

use crate::coordinator::{Key, Range};
use crate::nonce::Nonce;
use idmint_records::conjunction::{ExternalId, Pair, Tca};
use idmint_records::ledger::{EventId, KeyHash, LedgerId, SeriesName};
use idmint_storage::Namespace;
use idmint_storage::{AnchorKey, ListPlace, WrittenDay};

/// The prefixes of the keys of slots' horizons and holders, without the fleet's own prefix.
const HORIZON: &str = "hz/";
const HOLDER: &str = "slot/";

/// Builds and parses the keys of one fleet.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    prefix: String,
}

impl Keys {
    pub(super) fn of(namespace: &Namespace) -> Keys {
        Keys {
            prefix: namespace.key_prefix(),
        }
    }

    pub(super) fn meta(&self) -> Key {
        format!("{}meta", self.prefix)
    }

    pub(super) fn ledger(&self, ledger: LedgerId) -> Key {
        format!("{}ledger/{ledger}", self.prefix)
    }

    pub(super) fn ledgers(&self, after: Option<LedgerId>) -> Range {
        let all = Range::prefix(format!("{}ledger/", self.prefix));
        Range {
            from: after.map_or(all.from, |after| behind(&self.ledger(after))),
            ..all
        }
    }

    pub(super) fn event(&self, last: EventId) -> Key {
        format!("{}event/{}/{last}", self.prefix, last.ledger())
    }

    /// `true` if `key` belongs to the namespace of this fleet.
    pub(super) fn are_above(&self, key: &str) -> bool {
        key.starts_with(&self.prefix)
    }

    /// Returns the event id in a key that [`Keys::event`] made, or `None` for any other key. The id
    /// is that of the last event in the row.
    pub(super) fn event_of(&self, key: &str) -> Option<EventId> {
        let (ledger, last) = key
            .strip_prefix(&self.prefix)?
            .strip_prefix("event/")?
            .split_once('/')?;
        EventId::from_text(last)
            .ok()
            .filter(|last| last.ledger().to_string() == ledger)
    }

    /// Returns the key range of a ledger's rows from `event` on. The range begins with the row that
    /// contains `event`, or with the first later row if no row contains it.
    pub(super) fn events_from(&self, event: EventId) -> Range {
        Range {
            from: self.event(event),
            ..self.events_of(event.ledger())
        }
    }

    /// Returns the key range of a ledger's rows whose last event comes after `event`.
    pub(super) fn events_behind(&self, event: EventId) -> Range {
        Range {
            from: behind(&self.event(event)),
            ..self.events_of(event.ledger())
        }
    }

    pub(super) fn events_of(&self, ledger: LedgerId) -> Range {
        Range::prefix(format!("{}event/{ledger}/", self.prefix))
    }

    pub(super) fn request(&self, key: KeyHash) -> Key {
        format!("{}request/{:032x}", self.prefix, key.0)
    }

    pub(super) fn request_day(&self, day: WrittenDay, last: EventId) -> Key {
        format!("{}{last}", self.day_prefix(day))
    }

    /// Returns the key range of all rows that list the idempotency keys of a day.
    pub(super) fn request_days(&self) -> Range {
        Range::prefix(format!("{}request-day/", self.prefix))
    }

    /// Returns the key range of the rows that list the idempotency keys recorded on `day`.
    pub(super) fn requests_of(&self, day: WrittenDay) -> Range {
        Range::prefix(self.day_prefix(day))
    }

    /// Returns the key range of the rows that list the idempotency keys recorded before `day`.
    pub(super) fn request_days_before(&self, day: WrittenDay) -> Range {
        Range {
            to: Some(self.day_prefix(day)),
            ..self.request_days()
        }
    }

    fn day_prefix(&self, day: WrittenDay) -> String {
        format!("{}request-day/{:010}/", self.prefix, day.number())
    }

    /// Returns the day in the key of a row that lists idempotency keys, or `None` for any other
    /// key.
    pub(super) fn day_of(&self, key: &str) -> Option<WrittenDay> {
        let (day, _) = key
            .strip_prefix(&self.prefix)?
            .strip_prefix("request-day/")?
            .split_once('/')?;
        day.parse().ok().map(WrittenDay::numbered)
    }

    pub(super) fn series(&self, series: &SeriesName) -> Key {
        format!("{}series/{series}", self.prefix)
    }

    /// Returns the key range of all series, or of the series after `after`.
    pub(super) fn all_series(&self, after: Option<&SeriesName>) -> Range {
        let all = Range::prefix(format!("{}series/", self.prefix));
        Range {
            from: after.map_or(all.from, |after| behind(&self.series(after))),
            ..all
        }
    }

    /// Returns the name of the series in a key that [`Keys::series`] made, or `None` for any other
    /// key.
    pub(super) fn series_of(&self, key: &str) -> Option<SeriesName> {
        SeriesName::from_text(key.strip_prefix(&self.prefix)?.strip_prefix("series/")?).ok()
    }

    /// Returns the key of the row with the numbers that one transaction issued in a series. `last`
    /// is the last of these numbers.
    pub(super) fn numbers(&self, series: &SeriesName, last: u64) -> Key {
        self.numbered("number/", series, last)
    }

    /// Returns the key range of the rows with issued numbers of a series, from the row that
    /// contains `number` onwards.
    pub(super) fn numbers_from(&self, series: &SeriesName, number: u64) -> Range {
        let all = Range::prefix(format!("{}number/{series}/", self.prefix));
        Range {
            from: self.numbers(series, number),
            ..all
        }
    }

    /// Returns the series and the number in a key that [`Keys::numbers`] made, or `None` for any
    /// other key. The number is the last one in the row.
    pub(super) fn numbers_of(&self, key: &str) -> Option<(SeriesName, u64)> {
        read_numbered(key.strip_prefix(&self.prefix)?.strip_prefix("number/")?)
    }

    /// Returns the key of the row that maps an idempotency key to the last number that was issued
    /// for it.
    pub(super) fn number_key(&self, series: &SeriesName, key: KeyHash) -> Key {
        format!("{}number-key/{series}/{:032x}", self.prefix, key.0)
    }

    /// Returns the key of the row with the form in which a series writes its numbers from `from`
    /// on, for example `INV-00042`.
    pub(super) fn number_form(&self, series: &SeriesName, from: u64) -> Key {
        self.numbered("number-form/", series, from)
    }

    /// Returns the key range of the form in which a number of a series is written. The range
    /// contains at most one row, which is the last form that begins at or below `number`.
    pub(super) fn form_at(&self, series: &SeriesName, number: u64) -> Range {
        Range {
            count_max: 1,
            is_descending: true,
            ..self.forms(series, &(0..=number))
        }
    }

    /// Returns the key range of the forms of a series that begin within `numbers`.
    pub(super) fn forms(&self, series: &SeriesName, numbers: &RangeInclusive<u64>) -> Range {
        let last = self.number_form(series, *numbers.end());
        Range {
            from: self.number_form(series, *numbers.start()),
            to: Some(behind(&last)),
            count_max: 0,
            is_descending: false,
        }
    }

    /// Returns the series and the number in a key that [`Keys::number_form`] made, or `None` for
    /// any other key. The form applies from that number on.
    pub(super) fn form_of(&self, key: &str) -> Option<(SeriesName, u64)> {
        read_numbered(
            key.strip_prefix(&self.prefix)?
                .strip_prefix("number-form/")?,
        )
    }

    pub(super) fn void(&self, series: &SeriesName, number: u64) -> Key {
        self.numbered("void/", series, number)
    }

    /// Returns the key of the hold on numbers. `fence-restore` writes this key if a restore may
    /// have lost numbers. No series then issues numbers until an operator ends the hold.
    pub(super) fn number_hold(&self) -> Key {
        format!("{}number-hold", self.prefix)
    }

    /// Returns the key that stores which hold an operator ended last for this series. With `None`,
    /// the key stores which hold ended last for all series.
    pub(super) fn ended_hold(&self, series: Option<&SeriesName>) -> Key {
        let series = series.map_or("*", SeriesName::as_str);
        format!("{}number-hold/{series}", self.prefix)
    }

    /// Returns the key of the kinds of series, `gapless` or `blocks`, that were configured at the
    /// last start of a node.
    pub(super) fn number_kinds(&self) -> Key {
        format!("{}number-kinds", self.prefix)
    }

    /// Returns the key of the templates that write numbers as texts. The row has the templates of
    /// all starts of nodes.
    pub(super) fn number_templates(&self) -> Key {
        format!("{}number-templates", self.prefix)
    }

    /// Returns the key range of the void numbers within `numbers`.
    pub(super) fn voids(&self, series: &SeriesName, numbers: &RangeInclusive<u64>) -> Range {
        let (from, last) = (
            self.void(series, *numbers.start()),
            self.void(series, *numbers.end()),
        );
        Range {
            from,
            to: Some(behind(&last)),
            count_max: 0,
            is_descending: false,
        }
    }

    /// Returns the series and the number in a key that [`Keys::void`] made, or `None` for any other
    /// key.
    pub(super) fn void_of(&self, key: &str) -> Option<(SeriesName, u64)> {
        read_numbered(key.strip_prefix(&self.prefix)?.strip_prefix("void/")?)
    }

    fn numbered(&self, kind: &str, series: &SeriesName, number: u64) -> Key {
        format!("{}{kind}{series}/{number:020}", self.prefix)
    }

    pub(super) fn pair(&self, format: &str, pair: Pair) -> Key {
        format!("{}conj/{format}/{}", self.prefix, pair_text(pair))
    }

    /// Returns the format and the pair of objects in a key that [`Keys::pair`] made, or `None` for
    /// any other key.
    pub(super) fn pair_of(&self, key: &str) -> Option<(String, Pair)> {
        let (format, pair) = key
            .strip_prefix(&self.prefix)?
            .strip_prefix("conj/")?
            .rsplit_once('/')?;
        Some((format.to_owned(), read_pair(pair)?))
    }

    pub(super) fn conjunction(&self, format: &str, (tca, pair): ListPlace) -> Key {
        format!("{}conj-t/{format}/{}", self.prefix, place_text((tca, pair)))
    }

    /// Returns the key range of a format's conjunctions from `first` to `last`, inclusive. A
    /// position in this range is a time and a pair of objects.
    pub(super) fn conjunctions(
        &self,
        format: &str,
        (first, last): (ListPlace, ListPlace),
    ) -> Range {
        let (from, last) = (
            self.conjunction(format, first),
            self.conjunction(format, last),
        );
        Range {
            from,
            to: Some(behind(&last)),
            count_max: 0,
            is_descending: false,
        }
    }

    /// Returns the key range of the conjunctions of all formats. If `before` is given, the range
    /// ends before that conjunction.
    pub(super) fn conjunctions_before(&self, before: Option<&AnchorKey>) -> Range {
        let all = Range::prefix(format!("{}conj-t/", self.prefix));
        match before {
            Some(key) => Range {
                to: Some(self.conjunction(&key.format, (key.tca, key.pair))),
                ..all
            },
            None => all,
        }
    }

    /// Returns the anchor in a key that [`Keys::conjunction`] made, or `None` for any other key.
    pub(super) fn anchor_of(&self, key: &str) -> Option<AnchorKey> {
        let (rest, (tca, pair)) =
            split_place(key.strip_prefix(&self.prefix)?.strip_prefix("conj-t/")?)?;
        Some(AnchorKey {
            format: rest.to_owned(),
            pair,
            tca,
        })
    }

    /// Returns the key of the row with an anchor's external ids.
    pub(super) fn externals(&self, AnchorKey { format, pair, tca }: &AnchorKey) -> Key {
        format!(
            "{}conj-x/{format}/{}",
            self.prefix,
            place_text((*tca, *pair))
        )
    }

    /// Returns the key of the row that maps an external id to an anchor.
    pub(super) fn external(
        &self,
        AnchorKey { format, pair, tca }: &AnchorKey,
        external: &ExternalId,
    ) -> Key {
        format!(
            "{}{}",
            self.external_prefix(format, external),
            place_text((*tca, *pair))
        )
    }

    /// Returns the key range of the rows that map this external id to anchors.
    pub(super) fn anchors_of_external(&self, format: &str, external: &ExternalId) -> Range {
        Range::prefix(self.external_prefix(format, external))
    }

    /// Returns the anchor in a key that [`Keys::external`] made, or `None` for any other key.
    pub(super) fn anchor_of_external(&self, format: &str, key: &str) -> Option<AnchorKey> {
        let (_, (tca, pair)) =
            split_place(key.strip_prefix(&self.prefix)?.strip_prefix("conj-e/")?)?;
        Some(AnchorKey {
            format: format.to_owned(),
            pair,
            tca,
        })
    }

    fn external_prefix(&self, format: &str, external: &ExternalId) -> String {
        let id: String = external
            .as_str()
            .bytes()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("{}conj-e/{format}/{id}/", self.prefix)
    }

    /// Returns the key ranges of all slots' horizons and holders. Each horizon is stored with its
    /// writer's clock reading, so the two ranges show the clocks of the holders.
    pub(super) fn clocks(&self) -> [Range; 2] {
        [HORIZON, HOLDER].map(|kind| Range::prefix(format!("{}{kind}", self.prefix)))
    }

    /// Returns two key ranges: the holders of all slots, and the announcements in which processes
    /// name the kinds of rows that they can read.
    pub(super) fn holders_and_known_rows(&self) -> [Range; 2] {
        [HOLDER, "knows/"].map(|kind| Range::prefix(format!("{}{kind}", self.prefix)))
    }

    /// `true` if the process `instance` wrote this key to announce which kinds of rows it can read.
    pub(super) fn is_announced_by(&self, key: &str, instance: Nonce) -> bool {
        key.starts_with(&format!("{}knows/{instance}/", self.prefix))
    }

    /// Returns the slot number in the key of a slot's horizon or holder, or `None` for any other
    /// key.
    pub(super) fn slot_of<'k>(&self, key: &'k str) -> Option<&'k str> {
        let key = key.strip_prefix(&self.prefix)?;
        key.strip_prefix(HORIZON)
            .or_else(|| key.strip_prefix(HOLDER))
    }
}

/// Returns the key that directly follows `key` in bytewise order.
fn behind(key: &str) -> Key {
    format!("{key}\0")
}

/// Formats a time and a pair of objects as the end of a key.
fn place_text((tca, pair): ListPlace) -> String {
    format!("{:016x}/{}", to_ordered(tca), pair_text(pair))
}

/// Splits a key before the time and the pair of objects at its end.
fn split_place(key: &str) -> Option<(&str, ListPlace)> {
    let (rest, pair) = key.rsplit_once('/')?;
    let (rest, time) = rest.rsplit_once('/')?;
    Some((
        rest,
        (
            of_ordered(u64::from_str_radix(time, 16).ok()?),
            read_pair(pair)?,
        ),
    ))
}

fn read_numbered(text: &str) -> Option<(SeriesName, u64)> {
    let (series, number) = text.split_once('/')?;
    Some((SeriesName::from_text(series).ok()?, number.parse().ok()?))
}

fn pair_text(Pair { primary, secondary }: Pair) -> String {
    format!("{primary:020}-{secondary:020}")
}

fn read_pair(text: &str) -> Option<Pair> {
    let (primary, secondary) = text.split_once('-')?;
    Some(Pair {
        primary: primary.parse().ok()?,
        secondary: secondary.parse().ok()?,
    })
}

/// Maps a time to an unsigned number, so that larger times have larger numbers.
fn to_ordered(tca: Tca) -> u64 {
    tca.0.cast_unsigned() ^ (1 << 63)
}

fn of_ordered(number: u64) -> Tca {
    Tca((number ^ (1 << 63)).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_were_written_and_sort_as_times_do() {
        let keys = Keys::of(&Namespace::default());
        let pair = Pair {
            primary: u64::MAX,
            secondary: 5,
        };
        assert_eq!(
            keys.pair_of(&keys.pair("conjunction", pair)),
            Some(("conjunction".to_owned(), pair))
        );
        let times = [i64::MIN, -1, 0, 1, i64::MAX].map(Tca);
        let of_times = times.map(|tca| keys.conjunction("conjunction", (tca, pair)));
        assert!(of_times.is_sorted(), "{of_times:?}");
        for (tca, key) in times.into_iter().zip(&of_times) {
            let anchor = AnchorKey {
                format: "conjunction".to_owned(),
                pair,
                tca,
            };
            let of_id = keys.external(&anchor, &ExternalId::new("a/é").expect("short"));
            assert_eq!(
                keys.anchor_of_external("conjunction", &of_id).as_ref(),
                Some(&anchor),
                "{of_id}"
            );
            assert_eq!(keys.anchor_of(key), Some(anchor), "{key}");
        }
        let (acme, longer) = ["acme", "acme.2026"]
            .map(|name| SeriesName::from_text(name).expect("a name"))
            .into();
        for number in [0, 7, u64::MAX] {
            assert_eq!(
                keys.numbers_of(&keys.numbers(&acme, number)),
                Some((acme.clone(), number))
            );
            assert_eq!(
                keys.void_of(&keys.void(&longer, number)),
                Some((longer.clone(), number))
            );
        }
        assert_eq!(
            keys.series_of(&keys.series(&longer)).as_ref(),
            Some(&longer)
        );
        assert!(
            keys.numbers(&acme, 9) < keys.numbers(&acme, 10)
                && keys.series(&acme) < keys.series(&longer)
        );
        let of_acme = keys.numbers_from(&acme, 0);
        assert!(
            keys.numbers(&longer, 5) < of_acme.from || Some(keys.numbers(&longer, 5)) >= of_acme.to
        );
        assert_eq!(keys.numbers_of(&keys.void(&acme, 1)), None);
        let day = WrittenDay::numbered(20_000);
        let last = EventId::from_text("0005cd7556b05092aecc815daa77f99c").expect("an id");
        assert_eq!(keys.day_of(&keys.request_day(day, last)), Some(day));
        assert_eq!(keys.event_of(&keys.event(last)), Some(last));
        assert_eq!(
            (keys.day_of("x"), keys.pair_of("x"), keys.anchor_of("x")),
            (None, None, None)
        );
        assert_eq!(keys.event_of(&keys.ledger(last.ledger())), None);
        let other = Keys::of(&Namespace::parse("other").expect("a name"));
        assert_eq!(
            (keys.are_above(&keys.meta()), other.are_above(&keys.meta())),
            (true, false)
        );
    }
}
