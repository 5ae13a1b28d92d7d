//! Reads ids from a list that another program has written.

use super::near_ids::unwrapped;
use crate::id::encoding::{EncodingKind, LetterSet};
use crate::id::format::{Format, Prefix, Prefixes, Rule};
use crate::id::layout::FieldKind;
use crate::id::rejection::Rejection;
use crate::time::UnixNanos;

/// The result of reading one line of a list of ids in one encoding of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListedId {
    /// An id.
    Id(u128),
    /// An id in the wrong letter case, such as `1i9zc1000` for `1I9ZC1000`. If the list is in
    /// another encoding, with letters of both cases, the line may be a different id.
    OtherCase(u128),
    /// The encoding can read the line as a number, but the number is not an id of the format.
    Outside,
    /// The line is not a text of the encoding.
    Unreadable,
}

impl Format {
    /// Reads an id from a line of a list. `encoding` is the index of the expected encoding. Blanks,
    /// quotes, brackets and commas around the id are ignored.
    pub(crate) fn read_listed(&self, encoding: usize, line: &str) -> ListedId {
        let as_written = self.read_as(encoding, line);
        if let Ok(id) = as_written {
            return self.listed(id);
        }
        let text = unwrapped(line);
        match self.read_as(encoding, &text) {
            Ok(id) => return self.listed(id),
            Err(Rejection::OutOfRange | Rejection::Overflow) => return ListedId::Outside,
            Err(_) if text.is_empty() => return ListedId::Unreadable,
            Err(_) => {}
        }
        let encoding = &self.encodings[encoding];
        let has_one_case = LetterSet::of(text.as_bytes()).cases() != (true, true);
        let meant = encoding.lenient_text(&text).filter(|_| has_one_case);
        match meant.map(|meant| encoding.read(&meant)) {
            Some(Ok(id)) => match (self.listed(id), encoding.definition().kind) {
                (ListedId::Id(id), kind) if !is_of_any_case(kind) => ListedId::OtherCase(id),
                (listed, _) => listed,
            },
            Some(Err(_)) => ListedId::Outside,
            None => ListedId::Unreadable,
        }
    }

    fn listed(&self, id: u128) -> ListedId {
        match self.variant_of(id).layout.unpack(id) {
            Ok(_) => ListedId::Id(id),
            Err(_) => ListedId::Outside,
        }
    }

    /// `true` if the format has an encoding such that each letter of `line` can occur in its texts
    /// or in a prefix. Characters that are not letters, such as digits, do not matter.
    pub(crate) fn can_have_letters_of(&self, line: &str) -> bool {
        let letters: String = line.chars().filter(|char| char.is_alphabetic()).collect();
        let prefixes = match &self.prefixes {
            Prefixes::Listed(listed) => listed.iter().map(Prefix::as_str).collect(),
            Prefixes::Types { .. } => ('a'..='z').collect::<String>(),
        };
        let letters = LetterSet::of(letters.as_bytes());
        let prefixes = LetterSet::of(prefixes.as_bytes());
        let mut encodings = self.encodings.iter();
        encodings.any(|encoding| letters.is_within(encoding.letters().with(prefixes)))
    }

    /// Returns `true` if the id in a line of a list of old ids may be minted again. The line must
    /// be an id of this format in any of its encodings, and ids with the same time and worker
    /// number must still be possible from `now` on. The settings `mint` and `start_after` of the
    /// format apply, but the file in its setting `exclude` is not read.
    ///
    /// ```
    /// use idmint_core::id::Format;
    /// use idmint_core::time::UnixNanos;
    ///
    /// let payment = Format::built_in("payment").expect("a built-in format");
    /// let now = UnixNanos::from_seconds(1_750_000_000);
    /// assert!(payment.can_mint_again("ZZ0000000", now));
    /// assert!(!payment.can_mint_again("000000000", now), "its time has passed");
    /// assert!(!payment.can_mint_again("03nvoJDIi", now), "it has letters of both cases");
    /// ```
    pub fn can_mint_again(&self, line: &str, now: UnixNanos) -> bool {
        let is_ahead = |id| {
            let layout = &self.variant_of(id).layout;
            let Ok(values) = layout.unpack(id) else {
                return false;
            };
            let worker = layout.sum_of(FieldKind::Worker, &values);
            let has_worker = worker.is_none_or(|worker| {
                let last = self.last_worker.map_or(u128::MAX, u128::from);
                (self.first_worker.into()..=last).contains(&worker)
            });
            let tick = layout.sum_of(FieldKind::Time, &values);
            let begins = self.tick.map(|tick| tick.count(self.epoch, now.into()));
            let is_later = match (tick.map(i128::try_from), begins) {
                (Some(Ok(tick)), Some(begins)) => tick >= begins,
                _ => true,
            };
            let after = self.start_after.as_ref().map(|after| after.tick);
            has_worker && is_later && tick > after && tick < self.end_tick() && id < self.mint_below
        };
        let mut encodings = 0..self.encodings.len();
        self.rule == Rule::Sequenced
            && self.is_minted()
            && encodings.any(|encoding| match self.read_listed(encoding, line) {
                ListedId::Id(id) | ListedId::OtherCase(id) => is_ahead(id),
                ListedId::Outside | ListedId::Unreadable => false,
            })
    }
}

/// `true` if encodings of this kind accept upper and lower case by their specification.
fn is_of_any_case(kind: EncodingKind) -> bool {
    matches!(
        kind,
        EncodingKind::Uuid | EncodingKind::Uuid8 | EncodingKind::Crockford | EncodingKind::Cb32
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{StartAfter, preset};

    #[test]
    fn a_listed_id_is_read_with_what_surrounds_it_and_in_another_case() {
        let payment = preset("payment");
        let read = |line: &str| payment.read_listed(0, line);
        let ListedId::Id(id) = read("1I9ZC1000") else {
            panic!("a canonical text")
        };
        for line in [
            " 1I9ZC1000 ",
            "\"1I9ZC1000\",",
            "['1I9ZC1000'];",
            "\u{feff}1I9ZC1000\t",
        ] {
            assert_eq!(read(line), ListedId::Id(id), "{line}");
        }
        assert_eq!(read("1i9zc1000"), ListedId::OtherCase(id));
        for line in ["1i9ZC1000", "1I9ZC100", "", "id", "1I9ZC-1000"] {
            assert_eq!(read(line), ListedId::Unreadable, "{line}");
        }
        let decimal = |line: &str| {
            let decimal = |encoding: &crate::id::Encoding| encoding.name() == "decimal";
            let at = payment.encodings.iter().position(decimal);
            payment.read_listed(at.expect("it has one"), line)
        };
        let beyond = 36_u128.pow(9);
        assert_eq!(decimal(&beyond.to_string()), ListedId::Outside);
        assert_eq!(decimal(&(beyond - 1).to_string()), ListedId::Id(beyond - 1));
    }

    #[test]
    fn letters_are_those_of_some_encoding() {
        let payment = preset("payment");
        for (line, can) in [
            ("1I9ZC1000", true),
            ("2024", true),
            ("03nvoJDIi", false),
            ("\"03nvoJDIi\"", false),
            ("id", false),
            ("1I9ZC-1000", true),
            ("", true),
        ] {
            assert_eq!(payment.can_have_letters_of(line), can, "{line}");
        }
    }

    #[test]
    fn an_old_id_can_be_minted_again_if_its_tick_and_worker_are_still_to_come() {
        let mut payment = preset("payment");
        let now = UnixNanos::from_seconds(1_750_000_000);
        let tick = payment.ticks_at(now.into()).expect("a tick");
        let id = |tick, worker| {
            let layout = &payment.variants[0].layout;
            let id = layout.pack(&[tick, worker, 7]).expect("fits");
            payment.canonical().to_text(id)
        };
        let (before, at, last) = (id(tick - 1, 3), id(tick, 3), id(36_u128.pow(6) - 1, 35));
        let (beside, after) = (id(tick, 9), id(tick + 1, 3));
        let again = |format: &Format, line: &str| format.can_mint_again(line, now);
        assert!(!again(&payment, &before) && again(&payment, &at) && again(&payment, &last));
        assert!(again(&payment, &at.to_lowercase()) && !again(&payment, "id"));
        payment.first_worker = 4;
        assert!(!again(&payment, &at) && again(&payment, &last));
        (payment.first_worker, payment.last_worker) = (0, Some(3));
        assert!(again(&payment, &at) && !again(&payment, &last));
        payment.last_worker = None;
        payment.start_after = Some(StartAfter {
            id: at.clone(),
            tick,
        });
        assert!(!again(&payment, &at) && !again(&payment, &beside));
        assert!(again(&payment, &after) && again(&payment, &last));
        payment.mint = false;
        assert!(!again(&payment, &last));
        assert!(!again(
            &preset("uuid4"),
            "00000000-0000-4000-8000-000000000000"
        ));
    }
}
