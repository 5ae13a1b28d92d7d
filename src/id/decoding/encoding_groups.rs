//! The encodings of all formats, grouped so that one reading serves several: a decimal number is read once.

use std::sync::Arc;

use super::decode_filter::DecodeFilter;
use crate::id::encoding::{Encoding, EncodingKind, LetterSet};
use crate::id::format::Format;

/// The encodings of some formats, in groups.
#[derive(Debug)]
pub(super) struct EncodingGroups {
    groups: Vec<EncodingGroup>,
    /// Positions in `groups`, by the length of a text; those that are quickly read stand first.
    by_len: Vec<Vec<usize>>,
    shapes: Vec<Vec<usize>>,
    /// For each format, the positions in `groups` of its encodings.
    of_formats: Vec<Vec<usize>>,
}

/// Encodings that read every text as the same number, apart from the greatest number they allow. Since a number that was
/// read is written as the same text again, they also write every number alike that they allow.
#[derive(Debug)]
pub(super) struct EncodingGroup {
    members: Vec<Member>,
    /// The letters that texts of the group can have.
    letters: LetterSet,
}

/// A format and one of its encodings, by their positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) format: usize,
    pub(super) encoding: usize,
}

impl Member {
    pub(super) fn of(self, formats: &[Arc<Format>]) -> &Encoding {
        &formats[self.format].encodings[self.encoding]
    }
}

impl EncodingGroup {
    /// The members that the filter accepts.
    pub(super) fn select<'a>(
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

impl EncodingGroups {
    /// Groups the encodings of these formats. `bits` are those of an id of each format: members with few bits are tried first.
    pub(super) fn new(formats: &[Arc<Format>], bits: &[f64]) -> EncodingGroups {
        let mut groups: Vec<EncodingGroup> = Vec::new();
        let mut of_formats = vec![Vec::new(); formats.len()];
        for (at, format) in formats.iter().enumerate() {
            for (index, encoding) in format.encodings.iter().enumerate() {
                let alike = |group: &EncodingGroup| group.encoding(formats).reads_like(encoding);
                let group = groups.iter().position(alike).unwrap_or_else(|| {
                    groups.push(EncodingGroup { members: Vec::new(), letters: encoding.letters() });
                    groups.len() - 1
                });
                groups[group].members.push(Member { format: at, encoding: index });
                of_formats[at].push(group);
            }
        }
        // Few bits are much evidence, which spares `best` the members after it.
        for group in &mut groups {
            group.members.sort_by(|one, other| bits[one.format].total_cmp(&bits[other.format]));
        }
        let has_len = |group: &EncodingGroup, len| {
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
        EncodingGroups { by_len: (0..=len_max).map(of_len).collect(), shapes, of_formats, groups }
    }

    /// The lengths of the groups between hyphens that some encoding has.
    pub(super) fn shapes(&self) -> &[Vec<usize>] {
        &self.shapes
    }

    /// Every group.
    pub(super) fn all(&self) -> &[EncodingGroup] {
        &self.groups
    }

    /// The positions of the groups that may have a text of `len` bytes with these letters, those that are quickly read
    /// first.
    pub(super) fn of_texts(&self, len: usize, letters: LetterSet) -> impl Iterator<Item = usize> {
        let of_len = self.by_len.get(len).into_iter().flatten().copied();
        of_len.filter(move |at| letters.is_within(self.groups[*at].letters))
    }

    /// The position of the group of each encoding of a format.
    pub(super) fn of_format(&self, format: usize) -> &[usize] {
        &self.of_formats[format]
    }
}
