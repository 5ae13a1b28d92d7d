//! The encodings of all formats, grouped so that one reading serves several: a decimal number is read once.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::decode_filter::DecodeFilter;
use crate::id::encoding::{Encoding, EncodingKind, LetterSet};
use crate::id::format::Format;

/// The encodings of some formats, in groups.
#[derive(Debug)]
pub(super) struct EncodingGroups {
    groups: Vec<EncodingGroup>,
    /// By the length of a text; those that are quickly read stand first.
    by_len: Vec<Vec<GroupOfLen>>,
    /// For each format, the positions in `groups` of its encodings.
    of_formats: Vec<Vec<usize>>,
    /// The canonical encodings of formats with prefixes.
    behind_prefixes: Vec<Member>,
}

/// Encodings that read every text as the same number, apart from the greatest number they allow. Since a number that was
/// read is written as the same text again, they also write every number alike that they allow.
#[derive(Debug)]
pub(super) struct EncodingGroup {
    members: Vec<Member>,
    /// The letters that texts of the group can have.
    letters: LetterSet,
}

/// A group that has texts of some length.
#[derive(Debug)]
pub(super) struct GroupOfLen {
    /// Its position.
    pub(super) at: usize,
    /// The numbers that have texts of that length.
    pub(super) numbers: RangeInclusive<u128>,
}

/// A format and one of its encodings, by their positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    /// All of its members.
    pub(super) fn members(&self) -> &[Member] {
        &self.members
    }

    /// The members that the filter accepts.
    pub(super) fn select<'a>(
        &'a self,
        formats: &'a [Arc<Format>],
        filter: DecodeFilter<'a>,
    ) -> impl Iterator<Item = Member> + 'a {
        let is_any = filter.accepts_all();
        let members = self.members.iter().copied();
        members.filter(move |member| {
            is_any || filter.accepts(&formats[member.format], member.of(formats))
        })
    }

    /// The numbers that have texts of `len` bytes; `None` if none has.
    fn numbers_of_len(&self, formats: &[Arc<Format>], len: usize) -> Option<RangeInclusive<u128>> {
        // They write alike, but for the greatest number that each has.
        let longest = self
            .members
            .iter()
            .map(|member| member.of(formats))
            .max_by_key(|encoding| encoding.max())?;
        longest.numbers_of_len(len)
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
                    groups.push(EncodingGroup {
                        members: Vec::new(),
                        letters: encoding.letters(),
                    });
                    groups.len() - 1
                });
                groups[group].members.push(Member {
                    format: at,
                    encoding: index,
                });
                of_formats[at].push(group);
            }
        }
        // Few bits are much evidence, which spares `best` the members after it.
        for group in &mut groups {
            group
                .members
                .sort_by(|one, other| bits[one.format].total_cmp(&bits[other.format]));
        }
        let is_slow = |group: &GroupOfLen| {
            let kind = groups[group.at].encoding(formats).definition().kind;
            matches!(kind, EncodingKind::Hashids | EncodingKind::Sqids)
        };
        let of_len = |len| {
            let group = |at: usize| {
                Some(GroupOfLen {
                    at,
                    numbers: groups[at].numbers_of_len(formats, len)?,
                })
            };
            let mut of_len: Vec<GroupOfLen> = (0..groups.len()).filter_map(group).collect();
            of_len.sort_by_key(is_slow);
            of_len
        };
        let encodings = formats.iter().flat_map(|format| &format.encodings);
        let len_max = encodings.map(Encoding::len_max).max().unwrap_or(0);
        let prefixed = formats
            .iter()
            .enumerate()
            .filter(|(_, format)| !format.prefixes.is_empty());
        let behind_prefixes = prefixed
            .map(|(format, _)| Member {
                format,
                encoding: 0,
            })
            .collect();
        EncodingGroups {
            by_len: (0..=len_max).map(of_len).collect(),
            of_formats,
            behind_prefixes,
            groups,
        }
    }

    /// Every group.
    pub(super) fn all(&self) -> &[EncodingGroup] {
        &self.groups
    }

    /// The groups that may have a text of `len` bytes with these letters, those that are quickly read first.
    pub(super) fn of_texts(
        &self,
        len: usize,
        letters: LetterSet,
    ) -> impl Iterator<Item = &GroupOfLen> {
        self.of_len(len)
            .iter()
            .filter(move |group| self.may_have(group, letters))
    }

    /// The groups that have texts of `len` bytes, those that are quickly read first.
    pub(super) fn of_len(&self, len: usize) -> &[GroupOfLen] {
        self.by_len.get(len).map_or(&[], Vec::as_slice)
    }

    /// Whether texts of the group may have these letters.
    pub(super) fn may_have(&self, group: &GroupOfLen, letters: LetterSet) -> bool {
        letters.is_within(self.groups[group.at].letters)
    }

    /// How many lengths texts may have, with none.
    pub(super) fn lens(&self) -> usize {
        self.by_len.len()
    }

    /// The canonical encodings of formats with prefixes, whose texts may stand behind one.
    pub(super) fn behind_prefixes(&self) -> &[Member] {
        &self.behind_prefixes
    }

    /// The position of the group of each encoding of a format.
    pub(super) fn of_format(&self, format: usize) -> &[usize] {
        &self.of_formats[format]
    }
}
