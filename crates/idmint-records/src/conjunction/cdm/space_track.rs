//! Reads messages from the JSON of space-track.org. The JSON is an object or a list of objects, and
//! nearly all values are strings.
//!
//! The class `cdm` is for operators. It uses the keywords of CCSDS 508.0, with `SAT1_` or `SAT2_`
//! before the keywords of an object. The class `cdm_public` has a few names of its own. Source: the
//! field lists (`modeldef`) of both classes at <https://www.space-track.org/documentation#api>,
//! which are visible only with an account, and rows of both classes in published clients.
//!
//! Until about 2020, `cdm` split a time into a `TCA` that contains a blank, and `TCA_FRACTION`. The
//! field list does not define the unit of `TCA_FRACTION`. Such a row is refused, because its time
//! could be wrong.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::draft::{Draft, Message, Names};
use super::error::{CdmError, quote};
use super::insertion::Insertion;
use super::lines::{LineCounter, text_of};
use super::outcomes::Outcomes;
use super::outcomes::ReadRule;
use super::version::CdmVersion;
use crate::conjunction::report::Role;
use crate::conjunction::sent_report::EVENT_ID_KEY;

/// The member names in space-track.org's class `cdm`.
const OF_OPERATORS: Names = Names {
    tca: "TCA",
    objects: ["SAT1_OBJECT_DESIGNATOR", "SAT2_OBJECT_DESIGNATOR"],
    catalogs: ["SAT1_CATALOG_NAME", "SAT2_CATALOG_NAME"],
};

/// The member names in space-track.org's class `cdm_public`. This class has no catalogues, so the
/// catalogue names are those of `cdm`. They apply to rows that combine both classes.
const OF_THE_PUBLIC: Names = Names {
    tca: "TCA",
    objects: ["SAT_1_ID", "SAT_2_ID"],
    catalogs: ["SAT1_CATALOG_NAME", "SAT2_CATALOG_NAME"],
};

/// The member names in idmint's own JSON reports.
const OURS: [&str; 3] = ["tca", "primary", "secondary"];

const TCA_FRACTION: &str = "TCA_FRACTION";

/// Reads every message of a JSON text.
pub(super) fn read<'a>(document: &[u8], rule: ReadRule<'a>) -> Result<Outcomes<'a>, CdmError> {
    let text = text_of(document)?;
    let mut rows = Rows {
        text,
        begin: document.len() - text.len(),
        lines: LineCounter::default(),
        rule,
    };
    let is_list = text.trim_ascii_start().starts_with('[');
    let values: Result<Vec<&RawValue>, _> = if is_list {
        serde_json::from_str(text)
    } else {
        serde_json::from_str(text).map(|value| vec![value])
    };
    let values = values.map_err(|error| rows.not_json(text, &error))?;
    if values.is_empty() {
        return Err(CdmError::at(
            1,
            "missing_field",
            "there is no message in the list",
        ));
    }
    let mut outcomes = Outcomes::new(rule);
    for value in values {
        outcomes.add(rows.message(value.get()))?;
    }
    Ok(outcomes)
}

/// Returns `true` if the object, or the first object of the list, has a member name of
/// space-track.org.
pub(super) fn has_their_names(json: &[u8]) -> bool {
    let Ok(text) = text_of(json) else {
        return false;
    };
    serde_json::from_str::<HasTheirNames>(text).is_ok_and(|found| found.0)
}

/// One member of a JSON object.
struct Member<'a> {
    name: Cow<'a, str>,
    /// The value as written, including any quotes.
    value: &'a str,
}

/// The members of a JSON object, in order. If a member is repeated, all occurrences are included.
struct Members<'a>(Vec<Member<'a>>);

struct Rows<'a> {
    text: &'a str,
    /// The length in bytes of the byte order mark before the text.
    begin: usize,
    lines: LineCounter,
    rule: ReadRule<'a>,
}

impl<'a> Rows<'a> {
    fn message(&mut self, object: &'a str) -> Result<Message, CdmError> {
        let line = self.line_of(object);
        if !object.starts_with('{') {
            let message = format!("{} is no object", quote(object));
            return Err(CdmError::at(line, "report_form", message));
        }
        let Members(members) =
            serde_json::from_str(object).map_err(|error| self.not_json(object, &error))?;
        let is_public = members
            .iter()
            .any(|member| OF_THE_PUBLIC.objects.contains(&member.name.as_ref()));
        let names = if is_public {
            &OF_THE_PUBLIC
        } else {
            &OF_OPERATORS
        };
        let mut draft = Draft::new(line, CdmVersion::V1, names, self.rule);
        for member in &members {
            self.read_member(member, names, &mut draft)?;
        }
        let mut seen: Vec<&str> = members.iter().map(|member| member.name.as_ref()).collect();
        seen.sort_unstable();
        if let Some(twice) = seen.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(CdmError::of(
                line,
                twice[0],
                "duplicate_key",
                "the object that begins in this line has this member twice",
            ));
        }
        let insertion = self.insertion_behind(&members, object);
        draft.finish(insertion, None)
    }

    fn read_member(
        &mut self,
        member: &Member<'a>,
        names: &Names,
        draft: &mut Draft<'_>,
    ) -> Result<(), CdmError> {
        let name = member.name.as_ref();
        let is_ours = OURS.contains(&name);
        let is_of_the_others = [&OF_OPERATORS, &OF_THE_PUBLIC]
            .iter()
            .any(|others| others.objects.contains(&name))
            && !names.objects.contains(&name);
        if !is_ours && !is_of_the_others && !self.is_read(name, names) {
            return Ok(());
        }
        let line = self.line_of(member.value);
        let refuse = |reason, message: &str| Err(CdmError::of(line, name, reason, message));
        if is_ours {
            let what = "this member cannot be combined with the members of space-track.org; send `tca`, `primary` and \
                        `secondary`, or TCA with the names of their objects";
            return refuse("report_form", what);
        }
        if is_of_the_others {
            return refuse(
                "report_form",
                "the object mixes names of `cdm` and `cdm_public`",
            );
        }
        if name == TCA_FRACTION {
            let is_none = matches!(member.value, "null" | "0" | "\"\"" | "\"0\"");
            return if is_none {
                Ok(())
            } else {
                refuse(
                    "bad_timestamp",
                    "the unit of this value is unknown; add the value to TCA",
                )
            };
        }
        let is_number = member.value.bytes().all(|byte| byte.is_ascii_digit());
        if member.value == "null" && names.catalogs.contains(&name) {
            return Ok(());
        }
        let text = match serde_json::from_str::<Text<'_>>(member.value) {
            Ok(Text(text)) => text,
            Err(_) if is_number && names.objects.contains(&name) => Cow::Borrowed(member.value),
            Err(_) => {
                return refuse(
                    "wrong_type",
                    &format!("{} is not a quoted string", quote(member.value)),
                );
            }
        };
        match name {
            EVENT_ID_KEY => draft.event_id(line, &text),
            name if name == names.tca => draft.tca(line, &text),
            name if name == names.objects[0] => draft.object(Role::Primary, line, &text),
            name if name == names.catalogs[0] => draft.catalog(Role::Primary, line, &text),
            name if name == names.catalogs[1] => draft.catalog(Role::Secondary, line, &text),
            _ => draft.object(Role::Secondary, line, &text),
        }
    }

    fn is_read(&self, name: &str, names: &Names) -> bool {
        let of_an_object = names.objects.contains(&name) || names.catalogs.contains(&name);
        name == names.tca || of_an_object || name == EVENT_ID_KEY || name == TCA_FRACTION
    }

    /// Creates the insertion of a conjunction id after the last member, with the same spacing as
    /// that member.
    fn insertion_behind(&self, members: &[Member<'a>], object: &'a str) -> Insertion {
        let object_at = self.offset_of(object);
        let end_of = |member: &Member<'a>| self.offset_of(member.value) + member.value.len();
        let before = members
            .len()
            .checked_sub(2)
            .map_or(object_at, |at| end_of(&members[at]));
        let Some(last) = members.last() else {
            return Insertion::Member {
                at: object_at + self.begin + 1,
                gap: 0..0,
                colon: 0..0,
            };
        };
        // Between two values are a comma or a brace, the member name in quotes, and a colon. Each
        // of these may be surrounded by white space.
        let value_at = self.offset_of(last.value);
        let between = &self.text[before..value_at];
        let find = |offset: Option<usize>| {
            before + offset.expect("a member has a name, and something before it")
        };
        let opened = find(between.find('"'));
        let (separator_end, closed) = (
            find(between.find([',', '{'])) + 1,
            find(between.rfind('"')) + 1,
        );
        let shift = |range: Range<usize>| range.start + self.begin..range.end + self.begin;
        Insertion::Member {
            at: end_of(last) + self.begin,
            gap: shift(separator_end..opened),
            colon: shift(closed..value_at),
        }
    }

    /// Returns the byte offset at which a part of the text begins.
    fn offset_of(&self, part: &str) -> usize {
        part.as_ptr().addr() - self.text.as_ptr().addr()
    }

    fn line_of(&mut self, part: &str) -> u64 {
        let offset = self.offset_of(part);
        self.lines.line_at(self.text.as_bytes(), offset)
    }

    fn not_json(&mut self, part: &str, error: &serde_json::Error) -> CdmError {
        let lines_before = self.line_of(part) - 1;
        let line =
            lines_before + u64::try_from(error.line().max(1)).unwrap_or(u64::MAX - lines_before);
        // Remove the line number from serde_json's message, because it is relative to the part that
        // was parsed and not to the document.
        let what = error.to_string();
        let what = what.split(" at line ").next().unwrap_or_default();
        CdmError::at(
            line,
            "report_form",
            format!("this is not valid JSON: {what}"),
        )
    }
}

/// A JSON string. It is borrowed if it contains no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'de>, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut given: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some((Text(name), value)) = given.next_entry::<Text<'de>, &'de RawValue>()? {
            members.push(Member {
                name,
                value: value.get(),
            });
        }
        Ok(Members(members))
    }
}

/// `true` if the object has a member name in upper case. All names of space-track.org are in upper
/// case. The only such name of idmint is `CONJUNCTION_EVENT_ID`, which does not count.
struct HasTheirNames(bool);

impl<'de> Deserialize<'de> for HasTheirNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<HasTheirNames, D::Error> {
        deserializer.deserialize_any(NamesVisitor)
    }
}

struct NamesVisitor;

impl<'de> Visitor<'de> for NamesVisitor {
    type Value = HasTheirNames;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object, or a list of them")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<HasTheirNames, A::Error> {
        let mut found = false;
        while let Some((Text(name), IgnoredAny)) = members.next_entry::<Text<'de>, IgnoredAny>()? {
            let is_capital = |byte: u8| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_');
            // Ignore `CONJUNCTION_EVENT_ID`, because idmint's own JSON reports may also have this
            // member.
            found |= name != EVENT_ID_KEY
                && name.starts_with(|first: char| first.is_ascii_uppercase())
                && name.bytes().all(is_capital);
        }
        Ok(HasTheirNames(found))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut objects: A) -> Result<HasTheirNames, A::Error> {
        let first: Option<HasTheirNames> = objects.next_element()?;
        while objects.next_element::<IgnoredAny>()?.is_some() {}
        first.ok_or_else(|| de::Error::custom("an empty list"))
    }
}
