//! The spellings of all formats, put together where one reading serves several: a decimal number is read once.

use std::sync::Arc;

use super::decode_filter::DecodeFilter;
use crate::id::encoding::{Encoding, EncodingKind, LetterSet};
use crate::id::format::Format;

/// All spellings of some formats.
#[derive(Debug)]
pub(in crate::id) struct SpellingGroups {
    groups: Vec<SpellingGroup>,
    /// Positions in `groups`, by the length of a text; those that are quickly read stand first.
    by_len: Vec<Vec<usize>>,
    shapes: Vec<Vec<usize>>,
    /// For each format, the positions in `groups` of its encodings.
    of_formats: Vec<Vec<usize>>,
}

/// Spellings that read every text alike, apart from the greatest number they allow. Since what is read spells back to the
/// same text, they also spell every number alike that they allow.
#[derive(Debug)]
pub(in crate::id) struct SpellingGroup {
    members: Vec<Member>,
    /// A text with any other letter is none of its texts.
    letters: LetterSet,
}

/// A format and one of its encodings, by their positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::id) struct Member {
    pub(in crate::id) format: usize,
    pub(in crate::id) encoding: usize,
}

impl Member {
    pub(in crate::id) fn of(self, formats: &[Arc<Format>]) -> &Encoding {
        &formats[self.format].encodings[self.encoding]
    }
}

impl SpellingGroup {
    /// Those of its spellings that are to be tried.
    pub(in crate::id) fn wanted<'a>(
        &'a self,
        formats: &'a [Arc<Format>],
        filter: DecodeFilter<'a>,
    ) -> impl Iterator<Item = Member> + 'a {
        let is_any = filter == DecodeFilter::default();
        let members = self.members.iter().copied();
        members.filter(move |member| is_any || filter.accepts(&formats[member.format], member.of(formats)))
    }

    fn encoding<'a>(&self, formats: &'a [Arc<Format>]) -> &'a Encoding {
        self.members[0].of(formats)
    }
}

impl SpellingGroups {
    /// The spellings of these formats, whose ids have about so many bits.
    pub(in crate::id) fn of(formats: &[Arc<Format>], bits: &[f64]) -> SpellingGroups {
        let mut groups: Vec<SpellingGroup> = Vec::new();
        let mut of_formats = vec![Vec::new(); formats.len()];
        for (at, format) in formats.iter().enumerate() {
            for (encoding, spelling) in format.encodings.iter().enumerate() {
                let alike = |group: &SpellingGroup| group.encoding(formats).reads_like(spelling);
                let group = groups.iter().position(alike).unwrap_or_else(|| {
                    groups.push(SpellingGroup { members: Vec::new(), letters: spelling.letters() });
                    groups.len() - 1
                });
                groups[group].members.push(Member { format: at, encoding });
                of_formats[at].push(group);
            }
        }
        // The likeliest first: it spares whoever looks for the best the others.
        for group in &mut groups {
            group.members.sort_by(|one, other| bits[one.format].total_cmp(&bits[other.format]));
        }
        let has_len = |group: &SpellingGroup, len| {
            group.members.iter().any(|member| {
                let encoding = member.of(formats);
                (encoding.len(0)..=encoding.len_max()).contains(&len)
            })
        };
        let is_slow = |at: &usize| {
            let kind = groups[*at].encoding(formats).definition().kind;
            matches!(kind, EncodingKind::Hashids | EncodingKind::Sqids)
        };
        let of_len = |len| {
            let mut of_len: Vec<usize> = (0..groups.len()).filter(|at| has_len(&groups[*at], len)).collect();
            of_len.sort_by_key(is_slow);
            of_len
        };
        let encodings = || formats.iter().flat_map(|format| &format.encodings);
        let len_max = encodings().map(Encoding::len_max).max().unwrap_or(0);
        let mut shapes: Vec<_> = encodings().map(|encoding| encoding.groups().to_vec()).collect();
        shapes.retain(|shape| !shape.is_empty());
        shapes.sort();
        shapes.dedup();
        SpellingGroups { by_len: (0..=len_max).map(of_len).collect(), shapes, of_formats, groups }
    }

    /// The lengths of the groups between hyphens that some spelling has.
    pub(in crate::id) fn shapes(&self) -> &[Vec<usize>] {
        &self.shapes
    }

    /// Every group.
    pub(in crate::id) fn all(&self) -> &[SpellingGroup] {
        &self.groups
    }

    /// The positions of those that may have a text of so many bytes with these letters; those that are quickly read stand
    /// first.
    pub(in crate::id) fn of_texts(&self, len: usize, letters: LetterSet) -> impl Iterator<Item = usize> {
        let of_len = self.by_len.get(len).into_iter().flatten().copied();
        of_len.filter(move |at| letters.is_within(self.groups[*at].letters))
    }

    /// In which group each encoding of a format is.
    pub(in crate::id) fn of_format(&self, format: usize) -> &[usize] {
        &self.of_formats[format]
    }
}
