//! Under which keys records are stored. Numbers have as many digits as they can have, so keys sort as they do.
//!
//! ```text
//! meta                                   what the fleet has agreed on                     (written by cluster/)
//! hz/SLOT, slot/SLOT                     below which instant a slot was used; who has it  (written by cluster/)
//! ledger/LEDGER                          its first event and its head
//! event/LEDGER/LAST-EVENT                the appends of one transaction, by the id of their last event
//! request/KEY                            the last request with that key
//! request-day/DAY/LAST-EVENT             keys of requests of a day, for the sweep
//! series/SERIES                          its first number and its last
//! number/SERIES/LAST                     what one transaction gave of it, by the last number
//! number-key/SERIES/KEY                  the last number that a key was given
//! void/SERIES/NUMBER                     a number that is void
//! conj/FORMAT/PRIMARY-SECONDARY          the anchors of a pair, in the order of their creation
//! conj-t/FORMAT/TIME/PRIMARY-SECONDARY   one anchor and what is known of its reports, by time
//! conj-x/FORMAT/TIME/PRIMARY-SECONDARY   the ids that other originators have given it
//! conj-e/FORMAT/ID/TIME/PRIMARY-SECONDARY   nothing: an anchor with that id, whose bytes are in base 16
//! ```

use std::ops::RangeInclusive;

use crate::conjunction::{ExternalId, Pair, Tca};
use crate::ledger::{EventId, KeyHash, LedgerId, SeriesName};
use crate::storage::coordinator::{Key, Range};
use crate::storage::etcd::Namespace;
use crate::storage::records::{AnchorKey, ListPlace, WrittenDay};

/// What the keys of horizons begin with, behind the prefix of the fleet, and those of the holders of slots.
const HORIZON: &str = "hz/";
const HOLDER: &str = "slot/";

/// The keys of one fleet.
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

    /// Whether this key is of this fleet.
    pub(super) fn are_above(&self, key: &str) -> bool {
        key.starts_with(&self.prefix)
    }

    /// The event of a key of [`Keys::event`]; `None` where it is none.
    pub(super) fn event_of(&self, key: &str) -> Option<EventId> {
        let (ledger, last) = key
            .strip_prefix(&self.prefix)?
            .strip_prefix("event/")?
            .split_once('/')?;
        EventId::from_text(last)
            .ok()
            .filter(|last| last.ledger().to_string() == ledger)
    }

    /// The appends of a ledger that end at this event or behind it.
    pub(super) fn events_from(&self, event: EventId) -> Range {
        Range {
            from: self.event(event),
            ..self.events_of(event.ledger())
        }
    }

    /// The appends of a ledger that end behind this event.
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

    /// The keys of requests of all days.
    pub(super) fn request_days(&self) -> Range {
        Range::prefix(format!("{}request-day/", self.prefix))
    }

    /// The keys of requests of a day.
    pub(super) fn requests_of(&self, day: WrittenDay) -> Range {
        Range::prefix(self.day_prefix(day))
    }

    /// The keys of requests of the days before that one.
    pub(super) fn request_days_before(&self, day: WrittenDay) -> Range {
        Range {
            to: Some(self.day_prefix(day)),
            ..self.request_days()
        }
    }

    fn day_prefix(&self, day: WrittenDay) -> String {
        format!("{}request-day/{:010}/", self.prefix, day.number())
    }

    /// The day of a key of [`Keys::request_days`]; `None` where there is none in it.
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

    /// All series, or those behind that one.
    pub(super) fn all_series(&self, after: Option<&SeriesName>) -> Range {
        let all = Range::prefix(format!("{}series/", self.prefix));
        Range {
            from: after.map_or(all.from, |after| behind(&self.series(after))),
            ..all
        }
    }

    /// The series of a key of [`Keys::series`]; `None` where it is none.
    pub(super) fn series_of(&self, key: &str) -> Option<SeriesName> {
        SeriesName::from_text(key.strip_prefix(&self.prefix)?.strip_prefix("series/")?).ok()
    }

    /// What a transaction gave of a series, up to this number.
    pub(super) fn numbers(&self, series: &SeriesName, last: u64) -> Key {
        self.numbered("number/", series, last)
    }

    /// What was given of a series, from the row with this number on.
    pub(super) fn numbers_from(&self, series: &SeriesName, number: u64) -> Range {
        let all = Range::prefix(format!("{}number/{series}/", self.prefix));
        Range {
            from: self.numbers(series, number),
            ..all
        }
    }

    /// The series of a key of [`Keys::numbers`], and the number; `None` where it is none.
    pub(super) fn numbers_of(&self, key: &str) -> Option<(SeriesName, u64)> {
        read_numbered(key.strip_prefix(&self.prefix)?.strip_prefix("number/")?)
    }

    /// What a key was given of a series.
    pub(super) fn number_key(&self, series: &SeriesName, key: KeyHash) -> Key {
        format!("{}number-key/{series}/{:032x}", self.prefix, key.0)
    }

    pub(super) fn void(&self, series: &SeriesName, number: u64) -> Key {
        self.numbered("void/", series, number)
    }

    /// Those of these numbers that are void.
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

    /// The series of a key of [`Keys::void`], and the number; `None` where it is none.
    pub(super) fn void_of(&self, key: &str) -> Option<(SeriesName, u64)> {
        read_numbered(key.strip_prefix(&self.prefix)?.strip_prefix("void/")?)
    }

    fn numbered(&self, kind: &str, series: &SeriesName, number: u64) -> Key {
        format!("{}{kind}{series}/{number:020}", self.prefix)
    }

    pub(super) fn pair(&self, format: &str, pair: Pair) -> Key {
        format!("{}conj/{format}/{}", self.prefix, pair_text(pair))
    }

    /// The format and the pair of a key of [`Keys::pair`]; `None` where it is none.
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

    /// The conjunctions of a format between two places, both included.
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

    /// The conjunctions of all formats, or those before that one.
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

    /// The anchor of a key of [`Keys::conjunction`]; `None` where it is none.
    pub(super) fn anchor_of(&self, key: &str) -> Option<AnchorKey> {
        let (rest, (tca, pair)) =
            split_place(key.strip_prefix(&self.prefix)?.strip_prefix("conj-t/")?)?;
        Some(AnchorKey {
            format: rest.to_owned(),
            pair,
            tca,
        })
    }

    /// The ids beside an anchor.
    pub(super) fn externals(&self, AnchorKey { format, pair, tca }: &AnchorKey) -> Key {
        format!(
            "{}conj-x/{format}/{}",
            self.prefix,
            place_text((*tca, *pair))
        )
    }

    /// An anchor with an id.
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

    /// The anchors with an id.
    pub(super) fn anchors_of_external(&self, format: &str, external: &ExternalId) -> Range {
        Range::prefix(self.external_prefix(format, external))
    }

    /// The anchor of a key of [`Keys::external`]; `None` where it is none.
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

    /// What shows the clocks of the nodes that hold a slot: all horizons, and all holders.
    pub(super) fn clocks(&self) -> [Range; 2] {
        [HORIZON, HOLDER].map(|kind| Range::prefix(format!("{}{kind}", self.prefix)))
    }

    /// The slot of the key of a horizon or a holder; `None` where it is none.
    pub(super) fn slot_of<'k>(&self, key: &'k str) -> Option<&'k str> {
        let key = key.strip_prefix(&self.prefix)?;
        key.strip_prefix(HORIZON)
            .or_else(|| key.strip_prefix(HOLDER))
    }
}

/// The first key behind that one.
fn behind(key: &str) -> Key {
    format!("{key}\0")
}

/// Time and pair as the end of a key.
fn place_text((tca, pair): ListPlace) -> String {
    format!("{:016x}/{}", to_ordered(tca), pair_text(pair))
}

/// What stands before a time and a pair at the end of a key.
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

/// A time as a number that grows with it, from 0.
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
