//! The first reading of a text and whether it has a rival, without all the others: for many texts at once.

use super::decode_filter::DecodeFilter;
use super::decoder::{AMBIGUOUS_BITS, DecoderAt, Match};
use super::encoding_groups::{GroupOfLen, Member};
use super::given_text::GivenText;

/// Sums of bits in another order differ by less.
const ROUNDING_BITS: f64 = 1e-6;

/// So many members of a group are weighed once, and others twice.
const WEIGHED_MAX: usize = 24;

/// The first of the matches of a text.
#[derive(Debug)]
pub(super) struct FirstMatch<'a> {
    pub(super) best: Match<'a>,
    /// Whether it has a rival.
    pub(super) is_ambiguous: bool,
    /// Whether it is pinned, or any match is likely.
    pub(super) is_told: bool,
}

/// The readings so far.
struct Ranking<'a> {
    best: Option<Match<'a>>,
    /// The most evidence of another id than the best. Two readings as one id have the same, so what was best once never was of
    /// the id that is best now.
    second_bits: f64,
    /// Whether any of them is likely, or it does not matter.
    is_any_likely: bool,
    /// A reading with less evidence is neither the first one, nor its rival.
    bits_needed: f64,
}

impl<'a> Ranking<'a> {
    fn add(&mut self, found: Match<'a>) {
        self.is_any_likely |= !found.is_unlikely();
        let best = match self.best {
            None => found,
            Some(before) => {
                let (best, other) = if found.rank(&before).is_lt() {
                    (found, before)
                } else {
                    (before, found)
                };
                if !best.is_same_id(&other) {
                    self.second_bits = self.second_bits.max(other.evidence_bits);
                }
                best
            }
        };
        self.best = Some(best);
        if self.is_any_likely {
            self.bits_needed = best.evidence_bits - AMBIGUOUS_BITS - ROUNDING_BITS;
        }
    }
}

impl<'a> DecoderAt<'a> {
    /// The first of the matches that [`decode`](DecoderAt::decode) finds, without the reasons: for many texts at once.
    pub fn best(&self, text: &str, filter: DecodeFilter<'_>) -> Option<Match<'a>> {
        self.first_of(text, filter).map(|first| first.best)
    }

    /// As [`best`](DecoderAt::best), and whether it [has a rival](crate::id::Decoded::is_ambiguous); `None` also where nobody pins a
    /// format or encoding and every reading [is unlikely](Match::is_unlikely).
    pub fn best_and_doubt(
        &self,
        text: &str,
        filter: DecodeFilter<'_>,
    ) -> Option<(Match<'a>, bool)> {
        let first = self.first_of(text, filter)?;
        first.is_told.then_some((first.best, first.is_ambiguous))
    }

    /// The first match, and whether it has a rival.
    pub(super) fn first_of(&self, text: &str, filter: DecodeFilter<'_>) -> Option<FirstMatch<'a>> {
        let text = GivenText::new(text, filter.format.is_some());
        let (formats, groups) = (&self.decoder.formats, &self.decoder.groups);
        let least_bits = self.least_bits();
        let (is_any_likely, none) = (filter.is_pinned(), f64::NEG_INFINITY);
        let mut first = Ranking {
            best: None,
            second_bits: none,
            is_any_likely,
            bits_needed: none,
        };
        for (GroupOfLen { at, .. }, least) in self.groups_of(&text) {
            let has_evidence = |bits: f64, first: &Ranking<'_>| {
                text.is_of_format || text.bits - bits >= first.bits_needed
            };
            if !has_evidence(*least, &first) {
                continue;
            }
            let members = || groups.all()[*at].select(formats, filter);
            let bits_of = |member: Member, id: u128| least_bits[member.format].of(id);
            let Some(any) = members().next() else {
                continue;
            };
            let is_wanted =
                |id: u128| members().any(|member| has_evidence(bits_of(member, id), &first));
            let Some(id) = text.value_as(any.of(formats), is_wanted) else {
                continue;
            };
            // The likeliest one first, so that most of the others need not be looked at closer.
            let mut weighed = [0.0; WEIGHED_MAX];
            let mut likeliest: Option<(f64, Member)> = None;
            for (place, member) in members().enumerate() {
                let bits = bits_of(member, id);
                weighed
                    .get_mut(place)
                    .into_iter()
                    .for_each(|kept| *kept = bits);
                if likeliest.is_none_or(|(least, _)| bits < least) {
                    likeliest = Some((bits, member));
                }
            }
            let Some((_, likeliest)) = likeliest.filter(|(least, _)| has_evidence(*least, &first))
            else {
                continue;
            };
            self.read_as(likeliest, id, text)
                .into_iter()
                .for_each(|found| first.add(found));
            for (place, member) in members()
                .enumerate()
                .filter(|(_, member)| *member != likeliest)
            {
                let bits = weighed
                    .get(place)
                    .copied()
                    .unwrap_or_else(|| bits_of(member, id));
                if has_evidence(bits, &first) {
                    self.read_as(member, id, text)
                        .into_iter()
                        .for_each(|found| first.add(found));
                }
            }
        }
        let behind_prefixes = self
            .read_behind_prefixes(text, filter)
            .filter_map(|(_, read)| read.ok());
        behind_prefixes.for_each(|found| first.add(found));
        let Ranking {
            best,
            second_bits,
            is_any_likely,
            ..
        } = first;
        let is_ambiguous = |best: &Match<'a>| {
            !best.is_expected && best.evidence_bits - second_bits <= AMBIGUOUS_BITS
        };
        best.map(|best| FirstMatch {
            best,
            is_ambiguous: is_ambiguous(&best),
            is_told: is_any_likely,
        })
    }

    /// The groups that may have this text, each with the fewest bits that an id of them has whose text is as long.
    fn groups_of<'b>(
        &'b self,
        text: &GivenText<'_>,
    ) -> impl Iterator<Item = (&'a GroupOfLen, &'b f64)> + use<'a, 'b> {
        let (groups, letters) = (&self.decoder.groups, text.letters);
        let of_len = groups.of_len(text.text.len());
        let least_of = |group: &GroupOfLen| {
            let members = groups.all()[group.at].members().iter();
            let bits =
                members.map(|member| self.least_bits()[member.format].of_any(&group.numbers));
            bits.fold(f64::INFINITY, f64::min)
        };
        let cell = self.least_of_groups.get(text.text.len());
        let least = cell.map(|cell| cell.get_or_init(|| of_len.iter().map(least_of).collect()));
        let with_least = of_len.iter().zip(least.into_iter().flatten());
        with_least.filter(move |(group, _)| groups.may_have(group, letters))
    }
}
