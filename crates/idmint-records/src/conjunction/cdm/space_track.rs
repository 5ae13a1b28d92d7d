//! Reads messages from JSON: an object or a list of objects. Nearly all values are strings.
//!
//! Most objects are flat rows with the names of space-track.org ([`flat`](super::flat)). Its class
//! `cdm` is for operators, and uses the keywords of CCSDS 508.0 with `SAT1_` or `SAT2_` before the
//! keywords of an object. The class `cdm_public` uses a few different names. With `metadata=true`
//! the rows are in the member `data` of an object.
//!
//! The Python package brahe nests the objects of CCSDS 508.0, with member names in lower or upper
//! case: `relative_metadata`, and `metadata` in `object1` and `object2`.
//!
//! Until about 2020, `cdm` split a time into a `TCA` that contains a blank, and `TCA_FRACTION`. The
//! field list does not define the unit of `TCA_FRACTION`. A row with both is refused, because its
//! time could be wrong. A blank in a `TCA` without `TCA_FRACTION` stands for `T`.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::draft::{Draft, Message};
use super::error::{CdmError, quote};
use super::flat::{self, CDM, FlatNames, MIXED, NESTED, Part, TCA_FRACTION};
use super::insertion::Insertion;
use super::lines::{LineCounter, text_of};
use super::outcomes::Outcomes;
use super::outcomes::ReadRule;
use super::version::CdmVersion;
use crate::conjunction::sent_report::EVENT_ID_KEY;

/// The member names in idmint's own JSON reports.
const OURS: [&str; 3] = ["tca", "primary", "secondary"];

/// The names of the two members in a response of space-track.org with `metadata=true`. The member
/// `data` contains the rows, and each row is a message.
const ENVELOPE: [&str; 2] = [ROWS, "request_metadata"];
const ROWS: &str = "data";

/// The member with the time in nested JSON.
const RELATIVE_METADATA: &str = "relative_metadata";

/// The lower-case paths of the objects in nested JSON (as brahe writes it) whose members are read.
const CONTAINERS: [&str; 5] = [
    RELATIVE_METADATA,
    "object1",
    "object2",
    "object1.metadata",
    "object2.metadata",
];

/// Reads every message of a JSON text.
pub(super) fn read<'a>(document: &[u8], rule: ReadRule<'a>) -> Result<Outcomes<'a>, CdmError> {
    let text = text_of(document)?;
    let mut rows = Rows {
        text,
        begin: document.len() - text.len(),
        lines: LineCounter::default(),
        rule,
    };
    let values = values_of(text).map_err(|error| rows.not_json(text, &error))?;
    if values.is_empty() {
        return Err(CdmError::at(
            1,
            "missing_field",
            "the list has no message; send at least one",
        ));
    }
    let mut outcomes = Outcomes::new(rule);
    for value in values {
        outcomes.add(rows.message(value.get()))?;
    }
    Ok(outcomes)
}

/// Returns the JSON values that are messages. They are the values of a list, the values of the list
/// `data` in a response with metadata, or the whole text.
fn values_of(text: &str) -> Result<Vec<&RawValue>, serde_json::Error> {
    if text.trim_ascii_start().starts_with('[') {
        return serde_json::from_str(text);
    }
    let value: &RawValue = serde_json::from_str(text)?;
    if !value.get().starts_with('{') {
        return Ok(vec![value]);
    }
    let Members(members) = serde_json::from_str(value.get())?;
    let is_envelope = members
        .iter()
        .all(|member| ENVELOPE.contains(&member.name.as_ref()));
    let lists = members
        .iter()
        .filter(|member| member.name == ROWS && member.value.starts_with('['));
    match lists.collect::<Vec<_>>()[..] {
        [rows] if is_envelope => serde_json::from_str(rows.value),
        _ => Ok(vec![value]),
    }
}

/// Returns `true` if the JSON, or its first object if the JSON is a list, looks like that of
/// space-track.org or like nested JSON. `HasTheirNames` describes the features that are looked for.
pub(super) fn has_their_names(json: &[u8]) -> bool {
    let Ok(text) = text_of(json) else {
        return false;
    };
    serde_json::from_str::<HasTheirNames>(text).is_ok_and(|found| found.0)
}

/// One member of a JSON object.
#[derive(Clone)]
struct Member<'a> {
    name: Cow<'a, str>,
    /// The value as written, including any quotes.
    value: &'a str,
}

impl Member<'_> {
    fn is_relative_metadata(&self) -> bool {
        self.name.eq_ignore_ascii_case(RELATIVE_METADATA) && self.value.starts_with('{')
    }

    /// Returns the value as a catalogue number, with or without quotes.
    fn number(&self) -> Option<u64> {
        flat::number(self.value.trim_matches('"'))
    }
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
            let message = format!(
                "{} is not a JSON object; each message must be one",
                quote(object)
            );
            return Err(CdmError::at(line, "report_form", message));
        }
        let Members(members) =
            serde_json::from_str(object).map_err(|error| self.not_json(object, &error))?;
        let mut flat = Vec::with_capacity(members.len());
        let is_nested = members.iter().any(Member::is_relative_metadata);
        let kind = if is_nested {
            self.flatten("", &members, &mut flat)?;
            &NESTED
        } else {
            flat.extend(members.iter().cloned());
            FlatNames::of(members.iter().map(|member| member.name.as_ref())).unwrap_or(&CDM)
        };
        let mut draft = Draft::new(line, CdmVersion::V1, &kind.names, self.rule);
        for member in &flat {
            if let (Some(Part::Number(role)), Some(number)) =
                (kind.part(&member.name), member.number())
            {
                draft.set_number(role, number);
            }
        }
        let is_split = flat.iter().any(|member| member.name == TCA_FRACTION);
        for member in &flat {
            self.read_member(member, kind, is_split, &mut draft)?;
        }
        let mut seen: Vec<&str> = members.iter().map(|member| member.name.as_ref()).collect();
        seen.sort_unstable();
        if let Some(twice) = seen.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(CdmError::of(
                line,
                twice[0],
                "duplicate_key",
                "the object that begins in this line has this member twice; remove one of them",
            ));
        }
        let insertion = self.insertion_behind(&members, object);
        draft.finish(insertion, None)
    }

    /// Appends the members of nested JSON to `flat`. A member inside one of the [`CONTAINERS`] is
    /// named by its path in lower case, such as `object1.metadata.object_designator`. A member
    /// outside of them keeps its name.
    fn flatten(
        &mut self,
        path: &str,
        members: &[Member<'a>],
        flat: &mut Vec<Member<'a>>,
    ) -> Result<(), CdmError> {
        for member in members {
            let inner = format!("{path}{}", member.name.to_ascii_lowercase());
            if CONTAINERS.contains(&inner.as_str()) && member.value.starts_with('{') {
                let Members(members) = serde_json::from_str(member.value)
                    .map_err(|error| self.not_json(member.value, &error))?;
                self.flatten(&format!("{inner}."), &members, flat)?;
                continue;
            }
            let name = match path {
                "" => member.name.clone(),
                _ => Cow::Owned(inner),
            };
            flat.push(Member { name, ..*member });
        }
        Ok(())
    }

    fn read_member(
        &mut self,
        member: &Member<'a>,
        kind: &FlatNames,
        is_split: bool,
        draft: &mut Draft<'_>,
    ) -> Result<(), CdmError> {
        let name = member.name.as_ref();
        let (is_ours, is_of_others) = (OURS.contains(&name), kind.is_of_other_class(name));
        let part = kind.part(name);
        if !is_ours && !is_of_others && part.is_none() {
            return Ok(());
        }
        let line = self.line_of(member.value);
        let refuse = |reason, message: &str| Err(CdmError::of(line, name, reason, message));
        if is_ours {
            let what = "only idmint's own JSON reports have this member; send `tca`, `primary` and `secondary` alone \
                        to the service, or TCA with the names of objects of space-track.org";
            return refuse("report_form", what);
        }
        let Some(part) = part else {
            return refuse("report_form", MIXED);
        };
        let takes_null = matches!(
            part,
            Part::Catalog(_) | Part::TcaFraction | Part::ConjunctionId
        );
        if member.value == "null" && takes_null {
            return Ok(());
        }
        let is_number = member.value.bytes().all(|byte| byte.is_ascii_digit());
        let takes_number = matches!(part, Part::Designator(_) | Part::ConjunctionId);
        let text = match serde_json::from_str::<Text<'_>>(member.value) {
            Ok(Text(text)) => text,
            Err(_) if is_number && takes_number => Cow::Borrowed(member.value),
            Err(_) if part == Part::TcaFraction => Cow::Borrowed(member.value),
            // Ignore a CONJUNCTION_ID that is neither a string nor a whole number. The member is
            // optional, and an unusual id of another organization should not make the message
            // invalid. Also ignore `Part::Number`, a catalogue number that has already been read.
            Err(_) if matches!(part, Part::ConjunctionId | Part::Number(_)) => return Ok(()),
            Err(_) => {
                return refuse(
                    "wrong_type",
                    &format!("{} is not a string in quotes", quote(member.value)),
                );
            }
        };
        flat::take(draft, part, line, &text, is_split)
    }

    /// Creates the insertion of a conjunction id after the last member of a JSON object, with the
    /// same spacing as that member.
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
        let separator_end = find(between.find([',', '{'])) + 1;
        let closed = find(between.rfind('"')) + 1;
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
            format!("the document is not valid JSON: {what}"),
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

/// The result of examining a JSON object. It is `true` if the object has a member name in upper
/// case, as all rows of space-track.org have, or a list of rows, or nested members.
/// `CONJUNCTION_EVENT_ID` does not count, because idmint's own JSON may have this member as well.
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
        while let Some((Text(name), value)) = members.next_entry::<Text<'de>, &'de RawValue>()? {
            let value = value.get();
            let member = Member { name, value };
            found |= member.is_relative_metadata()
                || member.name == ROWS && member.value.starts_with('[');
            let name = member.name;
            let is_capital = |byte: u8| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_');
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
