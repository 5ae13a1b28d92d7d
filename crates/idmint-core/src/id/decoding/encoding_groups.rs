//! Groups the encodings of all formats, so that all encodings in a group read a text as the same
//! number. For example, a decimal text is read only once for all decimal encodings.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::decode_filter::DecodeFilter;
use crate::id::encoding::{Encoding, EncodingKind, LetterSet};
use crate::id::format::Format;

/// The encodings of a decoder's formats, in groups. All encodings in a group read a text as the
/// same number.
#[derive(Debug)]
pub(super) struct EncodingGroups {
    groups: Vec<EncodingGroup>,
    /// For each text length, the groups of encodings that can write a text of that length. The
    /// groups of Hashids and Sqids come last, because they take longest to read a text.
    by_len: Vec<Vec<GroupOfLen>>,
    /// For each format and each of its encodings, the index of the encoding's group in `groups`.
    of_formats: Vec<Vec<usize>>,
    /// The canonical encodings of all formats with prefixes. A text in one of these encodings may
    /// follow a prefix such as `user_`.
    behind_prefixes: Vec<Member>,
}

/// A group of encodings that agree: they read the same number from a text, and write the same text
/// for a number. They may differ only in the greatest number that they can write.
#[derive(Debug)]
pub(super) struct EncodingGroup {
    members: Vec<Member>,
    /// The letters that may occur in texts of the group.
    letters: LetterSet,
}

/// A group of encodings, and the numbers whose texts in this group have a given length. For
/// example, the numbers 100 to 999 have decimal texts of 3 bytes.
#[derive(Debug)]
pub(super) struct GroupOfLen {
    /// The index of the group in `EncodingGroups`.
    pub(super) at: usize,
    /// The numbers whose texts in this group have the given length.
    pub(super) numbers: RangeInclusive<u128>,
}

/// An encoding of one of the decoder's formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Member {
    /// The index of the format in the decoder's formats.
    pub(super) format: usize,
    /// The index of the encoding in the format's encodings.
    pub(super) encoding: usize,
}

impl Member {
    pub(super) fn of(self, formats: &[Arc<Format>]) -> &Encoding {
        &formats[self.format].encodings[self.encoding]
    }
}

impl EncodingGroup {
    /// Returns all encodings in this group.
    pub(super) fn members(&self) -> &[Member] {
        &self.members
    }

    /// Returns the encodings in this group that the filter accepts.
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

    /// Returns the range of numbers that the encodings of this group write as texts of `len` bytes,
    /// or `None` if no text has that length.
    fn numbers_of_len(&self, formats: &[Arc<Format>], len: usize) -> Option<RangeInclusive<u128>> {
        // The encodings of a group differ only in the greatest number that they can write. Use the
        // one with the highest such number, because it covers the numbers of all others.
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
    /// Puts encodings that read every text as the same number into one group. `bits` has an
    /// estimate for each format of how improbable its ids are. For example, 10 bits mean 1 in 1024.
    /// Within a group, the encodings of the format with the fewest bits come first.
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
        // Sort the encodings so that those with the likeliest ids come first. After a match in an
        // early encoding, the search for the best reading can skip later encodings.
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

    /// Returns all groups of encodings.
    pub(super) fn all(&self) -> &[EncodingGroup] {
        &self.groups
    }

    /// Returns the groups of encodings that can write a text of `len` bytes with these `letters`.
    /// Other groups cannot read such a text. Groups that read quickly come first.
    pub(super) fn of_texts(
        &self,
        len: usize,
        letters: LetterSet,
    ) -> impl Iterator<Item = &GroupOfLen> {
        self.of_len(len)
            .iter()
            .filter(move |group| self.may_have(group, letters))
    }

    /// Returns the groups of encodings that can write a text of `len` bytes. Groups that read
    /// quickly come first.
    pub(super) fn of_len(&self, len: usize) -> &[GroupOfLen] {
        self.by_len.get(len).map_or(&[], Vec::as_slice)
    }

    /// `true` if texts of `group` can contain all of `letters`. All encodings of a group have the
    /// same letters.
    pub(super) fn may_have(&self, group: &GroupOfLen, letters: LetterSet) -> bool {
        letters.is_within(self.groups[group.at].letters)
    }

    /// Returns the number of possible text lengths, which range from 0 to the length of the longest
    /// text.
    pub(super) fn lens(&self) -> usize {
        self.by_len.len()
    }

    /// Returns the canonical encoding of each format whose texts can start with a prefix, such as
    /// `user_`.
    pub(super) fn behind_prefixes(&self) -> &[Member] {
        &self.behind_prefixes
    }

    /// Returns the index of the group to which each encoding of a format belongs.
    pub(super) fn of_format(&self, format: usize) -> &[usize] {
        &self.of_formats[format]
    }
}
