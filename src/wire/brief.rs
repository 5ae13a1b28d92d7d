//! `POST /decode`: what each of many texts is, in brief.

use std::fmt;

use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::decode::{FieldReading, KnownDomains, time_of};
use crate::id::Match;

/// The best reading of a text: `id`, `format`, `encoding`, `time` and `fields` as in a
/// [`DecodeAnswer`](super::DecodeAnswer), and nothing but `id` where there is none.
///
/// Borrows what it tells of, and is written without a copy of it. As text it is one line without its end: the members
/// between tabs, each field as `name=value`, and `-` for what there is not. In the id, control characters and the
/// backslash are escaped as in Rust, so that it stays one line of these columns.
#[derive(Debug)]
pub struct BriefReading<'a> {
    id: &'a str,
    found: Option<&'a Match<'a>>,
    domains: &'a KnownDomains,
}

impl<'a> BriefReading<'a> {
    /// The reading `found` of the text `id`.
    pub fn new(id: &'a str, found: Option<&'a Match<'a>>, domains: &'a KnownDomains) -> BriefReading<'a> {
        BriefReading { id, found, domains }
    }
}

impl Serialize for BriefReading<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_struct("BriefReading", 5)?;
        members.serialize_field("id", self.id)?;
        members.serialize_field("format", &self.found.map(|found| &found.format().name))?;
        members.serialize_field("encoding", &self.found.map(|found| found.encoding().name()))?;
        members.serialize_field("time", &self.found.and_then(|found| time_of(found.format(), &found.parts())))?;
        members.serialize_field("fields", &Fields { found: self.found, domains: self.domains })?;
        members.end()
    }
}

struct Fields<'a> {
    found: Option<&'a Match<'a>>,
    domains: &'a KnownDomains,
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(found) = self.found else { return serializer.collect_seq([(); 0]) };
        serializer.collect_seq(FieldReading::all(found, &found.parts(), self.domains))
    }
}

impl fmt::Display for BriefReading<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let breaks_the_line = |letter: char| letter.is_control() || letter == '\\';
        for part in self.id.split_inclusive(breaks_the_line) {
            match part.char_indices().next_back().filter(|(_, letter)| breaks_the_line(*letter)) {
                Some((at, letter)) => write!(f, "{}{}", &part[..at], letter.escape_default())?,
                None => f.write_str(part)?,
            }
        }
        let Some(found) = self.found else { return f.write_str("\t-\t-\t-") };
        let parts = found.parts();
        let time = time_of(found.format(), &parts);
        write!(f, "\t{}\t{}\t{}", found.format().name, found.encoding().name(), time.as_deref().unwrap_or("-"))?;
        for (field, value, _) in parts.numbers() {
            write!(f, "\t{}={}", field.name, itoa::Buffer::new().format(value))?;
        }
        Ok(())
    }
}
