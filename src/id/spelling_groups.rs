//! The spellings of all formats, put together where one reading serves several: a decimal number is read once.

use std::sync::Arc;

use super::encoding::Encoding;
use super::encoding_definition::EncodingKind;
use super::format::Format;

/// All spellings of some formats.
#[derive(Debug)]
pub(super) struct SpellingGroups {
    groups: Vec<SpellingGroup>,
    /// Positions in `groups`, by the length of a text; those that are quickly read stand first.
    by_len: Vec<Vec<usize>>,
    shapes: Vec<Vec<usize>>,
}

/// Spellings that read every text alike, apart from the greatest number they allow.
#[derive(Debug)]
pub(super) struct SpellingGroup {
    members: Vec<Member>,
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

impl SpellingGroup {
    pub(super) fn members(&self) -> &[Member] {
        &self.members
    }

    fn encoding<'a>(&self, formats: &'a [Arc<Format>]) -> &'a Encoding {
        self.members[0].of(formats)
    }
}

impl SpellingGroups {
    pub(super) fn of(formats: &[Arc<Format>]) -> SpellingGroups {
        let mut groups: Vec<SpellingGroup> = Vec::new();
        for (at, format) in formats.iter().enumerate() {
            for encoding in 0..format.encodings.len() {
                let member = Member { format: at, encoding };
                let alike = |group: &&mut SpellingGroup| group.encoding(formats).reads_like(member.of(formats));
                match groups.iter_mut().find(alike) {
                    Some(group) => group.members.push(member),
                    None => groups.push(SpellingGroup { members: vec![member] }),
                }
            }
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
        SpellingGroups { by_len: (0..=len_max).map(of_len).collect(), shapes, groups }
    }

    /// The lengths of the groups between hyphens that some spelling has.
    pub(super) fn shapes(&self) -> &[Vec<usize>] {
        &self.shapes
    }

    /// Every group.
    pub(super) fn all(&self) -> impl Iterator<Item = &SpellingGroup> {
        self.groups.iter()
    }

    /// Those that have texts of so many bytes.
    pub(super) fn of_len(&self, len: usize) -> impl Iterator<Item = &SpellingGroup> {
        self.by_len.get(len).into_iter().flatten().map(|at| &self.groups[*at])
    }
}
