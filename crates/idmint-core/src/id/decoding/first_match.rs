//! Finds the likeliest id that a text can be read as, and decides whether another id is nearly as
//! likely. Other readings are not collected, which makes decoding many texts fast.

use super::decode_filter::DecodeFilter;
use super::decoder::{AMBIGUOUS_BITS_OF_EQUALS, DecoderAt, Match};
use super::encoding_groups::{GroupOfLen, Member};
use super::given_text::GivenText;

/// The maximum rounding error, in bits, between two sums of the same numbers that were added in
/// different orders.
const ROUNDING_BITS: f64 = 1e-6;

/// The maximum number of encodings whose evidence for one text is kept on the stack. If more
/// encodings read the same number from the text, the evidence for the others is computed twice.
const WEIGHED_MAX: usize = 24;

/// The best reading of a text.
#[derive(Debug)]
pub(super) struct FirstMatch<'a> {
    pub(super) best: Match<'a>,
    /// `true` if another id is nearly as likely as the best match, or if the text may be random.
    pub(super) is_ambiguous: bool,
    /// `true` if the best match may be reported, because at least one match is likely or the caller
    /// named the format or the encoding.
    pub(super) is_told: bool,
}

/// The best reading of a text so far, and the runners-up, which make it ambiguous if they are
/// nearly as likely.
struct Ranking<'a> {
    best: Option<Match<'a>>,
    /// For each kind of reading, the likeliest of the readings that lost against another id when
    /// they were added.
    ///
    /// If the best id changes from A to B and back to A, an entry may still be an earlier reading
    /// of A. Such an entry hides the best reading of a third id C, so all readings must be compared
    /// again.
    seconds: [Option<Second>; Match::KINDS],
    /// `true` if the text is likely an id, or if the caller named the format or the encoding.
    is_any_likely: bool,
    /// The minimum evidence, in bits, that another reading of the text needs. With less, it can
    /// neither replace the best reading nor make it ambiguous, so it is skipped.
    bits_needed: f64,
}

/// A reading that is not the best one.
#[derive(Clone, Copy)]
struct Second {
    bits: f64,
    /// The index of the format, and the id.
    id: (usize, u128),
}

impl Second {
    fn of(found: &Match<'_>) -> Second {
        Second {
            bits: found.evidence_bits,
            id: (found.format_index(), found.id()),
        }
    }
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
                    let second = &mut self.seconds[other.kind()];
                    if second.is_none_or(|second| second.bits < other.evidence_bits) {
                        *second = Some(Second::of(&other));
                    }
                }
                best
            }
        };
        self.best = Some(best);
        if self.is_any_likely {
            self.bits_needed = best.evidence_bits - AMBIGUOUS_BITS_OF_EQUALS - ROUNDING_BITS;
        }
    }
}

impl<'a> DecoderAt<'a> {
    /// Returns the best match, which is the first match of [`decode`](DecoderAt::decode). This is
    /// faster than `decode`, because it skips formats and encodings in which the text is much less
    /// likely than in the best one, and does not find out why other formats cannot read the text.
    pub fn best(&self, text: &str, filter: DecodeFilter<'_>) -> Option<Match<'a>> {
        self.first_of(text, filter).map(|first| first.best)
    }

    /// Returns the match of [`best`](DecoderAt::best), and a flag that is `true` if the match [is
    /// ambiguous](crate::id::Decoded::is_ambiguous), because another id is nearly as likely or the
    /// text may be random.
    ///
    /// Returns `None` if no format can read the text as an id. Also returns `None` if every such id
    /// [is unlikely](Match::is_unlikely) and the caller named neither the format nor the encoding.
    pub fn best_and_doubt(
        &self,
        text: &str,
        filter: DecodeFilter<'_>,
    ) -> Option<(Match<'a>, bool)> {
        let first = self.first_of(text, filter)?;
        first.is_told.then_some((first.best, first.is_ambiguous))
    }

    /// Returns the best match, with flags that say whether the match is ambiguous and whether it
    /// may be reported. Returns `None` if no format can read the text as an id.
    pub(super) fn first_of(&self, text: &str, filter: DecodeFilter<'_>) -> Option<FirstMatch<'a>> {
        let text = GivenText::new(text, filter);
        let (formats, groups) = (&self.decoder.formats, &self.decoder.groups);
        let least_bits = self.least_bits();
        let (is_any_likely, none) = (filter.is_pinned(), f64::NEG_INFINITY);
        let mut first = Ranking {
            best: None,
            seconds: [None; Match::KINDS],
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
            // Of the encodings that read this number, try the likeliest first. Most others can then
            // be skipped.
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
            seconds,
            is_any_likely,
            ..
        } = first;
        let is_ambiguous = |best: &Match<'a>| {
            let id = Second::of(best).id;
            let mut rivals = seconds.iter().enumerate();
            let has_rival = if seconds.iter().flatten().any(|second| second.id == id) {
                let mut all = self.readings(text.text, filter).into_iter();
                all.any(|other| other.is_rival_of(best))
            } else {
                rivals.any(|(kind, second)| {
                    second.is_some_and(|second| {
                        best.evidence_bits - second.bits <= best.bits_of_rival(kind)
                    })
                })
            };
            !best.is_expected && (best.is_weak || has_rival)
        };
        best.map(|best| FirstMatch {
            best,
            is_ambiguous: is_ambiguous(&best),
            is_told: is_any_likely,
        })
    }

    /// Returns the groups of encodings whose texts can have the length and the letters of `text`.
    /// Each group comes with a lower bound, in bits, for the evidence against any id that the group
    /// can read from a text of this length.
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
