//! A message, and the draft of one while it is read: the part that all forms share.

use super::error::{CdmError, quote};
use super::insertion::Insertion;
use super::read_rule::ReadRule;
use super::version::{CdmVersion, NoteForm};
use crate::conjunction::external_id::ExternalId;
use crate::conjunction::grouped_minter::GroupedMinter;
use crate::conjunction::object_rules::ObjectFault;
use crate::conjunction::report::{Report, ReportError, Role};
use crate::conjunction::sent_report::{CONJUNCTION_ID_KEY, EVENT_ID_KEY, NotedFault, read_noted};
use crate::id::Format;
use crate::time::UnixTime;

/// The parts of a Conjunction Data Message that an id is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    report: Report,
    version: CdmVersion,
    existing_id: Option<ExistingId>,
    conjunction_id: Option<ExistingId>,
    line: u64,
    tca_line: u64,
    object_lines: [u64; 2],
    names: &'static Names,
    pub(super) insertion: Insertion,
}

/// The conjunction id that a message came with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingId {
    /// The line in which it stands, counted from 1.
    pub line: u64,
    /// The id as it is written there.
    pub text: String,
}

/// The names of the values in one form.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) tca: &'static str,
    pub(super) objects: [&'static str; 2],
    pub(super) catalogs: [&'static str; 2],
}

/// The names of CCSDS 508.0, in KVN and in XML.
pub(super) const CCSDS: Names = Names {
    tca: "TCA",
    objects: ["OBJECT_DESIGNATOR", "OBJECT_DESIGNATOR"],
    catalogs: ["CATALOG_NAME", "CATALOG_NAME"],
};

impl Message {
    /// The report in it.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Its version; 1.0 where its form has none.
    pub fn version(&self) -> &CdmVersion {
        &self.version
    }

    /// The id that it came with, in a comment or a member that nobody but this service writes.
    pub fn existing_id(&self) -> Option<&ExistingId> {
        self.existing_id.as_ref()
    }

    /// Its keyword CONJUNCTION_ID, which has an id of this service or of another originator, or is empty.
    pub fn conjunction_id(&self) -> Option<&ExistingId> {
        self.conjunction_id.as_ref()
    }

    /// The id that it came with: that of the comment, and else that of the keyword if it is of this service.
    ///
    /// `encoding`: the position of the one that a comment is read in first.
    ///
    /// # Errors
    /// [`CdmError`] if that of the comment is none of the format, or the keyword has another one.
    pub fn noted(&self, minter: &GroupedMinter, encoding: usize) -> Result<Option<u128>, CdmError> {
        let keyword = self.own_keyword(minter);
        let Some(existing) = &self.existing_id else {
            return Ok(keyword.map(|(id, _)| id));
        };
        let noted = existing.read(minter.format(), encoding);
        let noted = noted.ok_or_else(|| self.refuse_existing_id(&NotedFault::NoId))?;
        match keyword {
            Some((id, keyword)) if id != noted => {
                Err(refuse_second(keyword, CONJUNCTION_ID_KEY, existing))
            }
            _ => Ok(Some(noted)),
        }
    }

    /// The id of its keyword, if it is one of this service: another originator's may read as one, but hardly as one of
    /// the same two objects.
    fn own_keyword(&self, minter: &GroupedMinter) -> Option<(u128, &ExistingId)> {
        let keyword = self.conjunction_id.as_ref()?;
        let mut ids = minter
            .format()
            .encodings
            .iter()
            .filter_map(|encoding| encoding.read(&keyword.text).ok());
        let own = ids.find(|id| minter.anchors_of(*id, &self.report).is_some());
        own.map(|id| (id, keyword))
    }

    /// The id of another originator that it came with: what its keyword CONJUNCTION_ID has, unless that is of this service.
    pub fn external(&self, minter: &GroupedMinter) -> Option<ExternalId> {
        let keyword = self
            .conjunction_id
            .as_ref()
            .filter(|_| self.own_keyword(minter).is_none())?;
        ExternalId::new(&keyword.text)
    }

    /// The line in which it begins, counted from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The error for a report that gets no id, with the line and the name of the wrong value.
    pub(super) fn refuse(&self, error: &ReportError) -> CdmError {
        let role = match error {
            ReportError::ObjectZero { role } | ReportError::ObjectTooGreat { role, .. } => {
                Some(*role)
            }
            ReportError::SameObject { .. } => Some(Role::Secondary),
            ReportError::TcaUnreadable(_)
            | ReportError::TcaTooEarly { .. }
            | ReportError::TcaTooLate { .. }
            | ReportError::IdTooGreat { .. } => None,
        };
        let (line, name) = role.map_or((self.tca_line, self.names.tca), |role| {
            (
                self.object_lines[index_of(role)],
                self.names.objects[index_of(role)],
            )
        });
        CdmError::of(line, name, error.reason(), error).with_limit(error.limit())
    }

    /// The error for a message that came with an id that is none of its own.
    ///
    /// # Panics
    /// When it came without an id.
    pub fn refuse_existing_id(&self, fault: &NotedFault) -> CdmError {
        let comment = self
            .existing_id
            .as_ref()
            .map(|existing| (existing, EVENT_ID_KEY));
        let keyword = || {
            self.conjunction_id
                .as_ref()
                .map(|existing| (existing, CONJUNCTION_ID_KEY))
        };
        let (existing, name) = comment
            .or_else(keyword)
            .expect("only called for a message that came with an id");
        let message = format!("{} {fault}", quote(&existing.text));
        CdmError::of(existing.line, name, fault.reason(), message)
    }
}

impl ExistingId {
    /// The id in this format: read in the encoding of that position, or else in the first that reads it.
    pub fn read(&self, format: &Format, encoding: usize) -> Option<u128> {
        read_noted(&self.text, format, encoding)
    }
}

/// The error for a second id that is another one than the first.
fn refuse_second(second: &ExistingId, name: &str, first: &ExistingId) -> CdmError {
    let message = format!(
        "{} stands here and {} in line {}",
        quote(&second.text),
        quote(&first.text),
        first.line
    );
    CdmError::of(second.line, name, "another_id", message)
}

const fn index_of(role: Role) -> usize {
    match role {
        Role::Primary => 0,
        Role::Secondary => 1,
    }
}

/// What a message says of an object.
#[derive(Debug, Default)]
struct ObjectDraft {
    /// The designator and its line.
    designator: Option<(String, u64)>,
    /// The catalogue and its line.
    catalog: Option<(String, u64)>,
    /// The line in which it begins, where a form has blocks of objects.
    begun: Option<u64>,
}

/// A message that is not completely read yet.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    rule: ReadRule<'a>,
    version: CdmVersion,
    line: u64,
    names: &'static Names,
    tca: Option<(UnixTime, u64)>,
    objects: [ObjectDraft; 2],
    /// The object whose block is being read.
    current: Option<Role>,
    existing_id: Option<ExistingId>,
    conjunction_id: Option<ExistingId>,
}

impl<'a> Draft<'a> {
    /// A message that begins in that line.
    pub(super) fn new(
        line: u64,
        version: CdmVersion,
        names: &'static Names,
        rule: ReadRule<'a>,
    ) -> Draft<'a> {
        let objects = [ObjectDraft::default(), ObjectDraft::default()];
        Draft {
            rule,
            version,
            line,
            names,
            tca: None,
            objects,
            current: None,
            existing_id: None,
            conjunction_id: None,
        }
    }

    /// The time of closest approach.
    pub(super) fn tca(&mut self, line: u64, text: &str) -> Result<(), CdmError> {
        let refuse =
            |reason, message: String| Err(CdmError::of(line, self.names.tca, reason, message));
        if let Some((_, first)) = self.tca {
            return refuse(
                "duplicate_key",
                format!("it stands in line {first} already"),
            );
        }
        let Ok(tca) = UnixTime::from_utc_text(text) else {
            let what = "is no time of the CCSDS calendar or day-of-year form";
            return refuse("bad_timestamp", format!("{} {what}", quote(text)));
        };
        self.tca = Some((tca, line));
        Ok(())
    }

    /// The block of an object begins.
    pub(super) fn begin_object(&mut self, line: u64, text: &str) -> Result<(), CdmError> {
        let role = match text {
            "OBJECT1" => Role::Primary,
            "OBJECT2" => Role::Secondary,
            _ => {
                let message = format!("{} is neither OBJECT1 nor OBJECT2", quote(text));
                return Err(CdmError::of(line, "OBJECT", "report_form", message));
            }
        };
        if let Some(first) = self.objects[index_of(role)].begun {
            let message = format!("{text} stands in line {first} already");
            return Err(CdmError::of(line, "OBJECT", "duplicate_key", message));
        }
        self.objects[index_of(role)].begun = Some(line);
        self.current = Some(role);
        Ok(())
    }

    /// Whether the block of an object has begun and not ended.
    pub(super) fn is_in_object(&self) -> bool {
        self.current.is_some()
    }

    /// The block of an object ends, where it has an end.
    pub(super) fn end_object(&mut self) {
        self.current = None;
    }

    /// The number of the object whose block this is.
    pub(super) fn designator(&mut self, line: u64, text: &str) -> Result<(), CdmError> {
        let Some(role) = self.current else {
            let message = "it stands before OBJECT, so nobody knows whose it is";
            return Err(CdmError::of(line, CCSDS.objects[0], "report_form", message));
        };
        self.object(role, line, text)
    }

    /// The catalogue of the object whose block this is.
    pub(super) fn catalog_name(&mut self, line: u64, text: &str) -> Result<(), CdmError> {
        let Some(role) = self.current else {
            let message = "it stands before OBJECT, so nobody knows whose it is";
            return Err(CdmError::of(
                line,
                CCSDS.catalogs[0],
                "report_form",
                message,
            ));
        };
        self.catalog(role, line, text)
    }

    /// The catalogue in which the designator of an object stands.
    pub(super) fn catalog(&mut self, role: Role, line: u64, text: &str) -> Result<(), CdmError> {
        if let Some((_, first)) = &self.objects[index_of(role)].catalog {
            let message = format!("it stands in line {first} already");
            return Err(CdmError::of(
                line,
                self.names.catalogs[index_of(role)],
                "duplicate_key",
                message,
            ));
        }
        self.objects[index_of(role)].catalog = Some((text.to_owned(), line));
        // Told where it stands, before anything that comes later in the message.
        self.number_of(role).map(|_| ())
    }

    /// The designator of an object.
    pub(super) fn object(&mut self, role: Role, line: u64, text: &str) -> Result<(), CdmError> {
        if let Some((_, first)) = &self.objects[index_of(role)].designator {
            let message = format!("it stands in line {first} already");
            return Err(CdmError::of(
                line,
                self.names.objects[index_of(role)],
                "duplicate_key",
                message,
            ));
        }
        self.objects[index_of(role)].designator = Some((text.to_owned(), line));
        if self.objects[index_of(role)].catalog.is_some() {
            self.number_of(role)?;
        }
        Ok(())
    }

    /// The number of an object, and the line in which its designator stands; `None` if it has none so far.
    fn number_of(&self, role: Role) -> Result<Option<(u64, u64)>, CdmError> {
        let object = &self.objects[index_of(role)];
        let Some((designator, line)) = &object.designator else {
            return Ok(None);
        };
        let (line, name) = (*line, self.names.objects[index_of(role)]);
        let catalog = object.catalog.as_ref().map(|(catalog, _)| catalog.as_str());
        match self.rule.objects.resolve(designator, catalog) {
            Ok(number) => Ok(Some((number, line))),
            Err(ObjectFault::Catalog(what)) => {
                let line = object.catalog.as_ref().map_or(line, |(_, line)| *line);
                let message = format!("{} {what}", quote(catalog.unwrap_or_default()));
                Err(CdmError::of(
                    line,
                    self.names.catalogs[index_of(role)],
                    "another_catalog",
                    message,
                ))
            }
            Err(ObjectFault::NoNumber(what)) => Err(CdmError::of(
                line,
                name,
                "wrong_type",
                format!("{} {what}", quote(designator)),
            )),
            Err(ObjectFault::TooGreat) => {
                let message = format!("{} is greater than any catalogue number", quote(designator));
                Err(CdmError::of(line, name, "out_of_range", message))
            }
        }
    }

    /// The text of a comment: the id of the conjunction, or anything else.
    pub(super) fn comment(&mut self, line: u64, text: &str) -> Result<(), CdmError> {
        let rest = text
            .trim_ascii()
            .strip_prefix(EVENT_ID_KEY)
            .map(str::trim_ascii_start);
        match rest.and_then(|rest| rest.strip_prefix('=')) {
            Some(id) => self.event_id(line, id.trim_ascii()),
            None => Ok(()),
        }
    }

    /// The id of the conjunction.
    pub(super) fn event_id(&mut self, line: u64, id: &str) -> Result<(), CdmError> {
        if id.is_empty() {
            return Err(CdmError::of(
                line,
                EVENT_ID_KEY,
                "another_id",
                "there is no id",
            ));
        }
        match &self.existing_id {
            None => {
                self.existing_id = Some(ExistingId {
                    line,
                    text: id.to_owned(),
                });
                Ok(())
            }
            Some(existing) if existing.text == id => Ok(()),
            Some(existing) => Err(refuse_second(
                &ExistingId {
                    line,
                    text: id.to_owned(),
                },
                EVENT_ID_KEY,
                existing,
            )),
        }
    }

    /// The keyword with the id that this service or another originator has given the conjunction.
    pub(super) fn conjunction_id(&mut self, line: u64, text: &str) -> Result<(), CdmError> {
        let found = ExistingId {
            line,
            text: text.to_owned(),
        };
        match &self.conjunction_id {
            Some(first) if first.text != found.text => {
                Err(refuse_second(&found, CONJUNCTION_ID_KEY, first))
            }
            Some(_) => Ok(()),
            None => {
                self.conjunction_id = Some(found);
                Ok(())
            }
        }
    }

    /// The whole message. `keyword`: the insertion for CONJUNCTION_ID, where its form has one.
    pub(super) fn finish(
        self,
        comment: Insertion,
        keyword: Option<Insertion>,
    ) -> Result<Message, CdmError> {
        let lacks =
            |line, name: &str, what: &str| Err(CdmError::of(line, name, "missing_field", what));
        let Some((tca, tca_line)) = self.tca else {
            return lacks(
                self.line,
                self.names.tca,
                "the message that begins here has none",
            );
        };
        let mut found = [(0, 0); 2];
        for (at, role) in [Role::Primary, Role::Secondary].into_iter().enumerate() {
            found[at] = match (self.number_of(role)?, self.objects[at].begun) {
                (Some(object), _) => object,
                (None, Some(begun)) => {
                    return lacks(
                        begun,
                        self.names.objects[at],
                        "the object that begins here has none",
                    );
                }
                (None, None) if self.names == &CCSDS => {
                    let what = format!("the message that begins here has no OBJECT{}", at + 1);
                    return lacks(self.line, "OBJECT", &what);
                }
                (None, None) => {
                    return lacks(
                        self.line,
                        self.names.objects[at],
                        "the message that begins here has none",
                    );
                }
            };
        }
        let [(primary, primary_line), (secondary, secondary_line)] = found;
        let insertion = match self.rule.note.unwrap_or(self.version.note()) {
            // What another originator has put there stays.
            NoteForm::ConjunctionId if self.conjunction_id.is_none() => keyword.unwrap_or(comment),
            NoteForm::ConjunctionId | NoteForm::Comment => comment,
        };
        let message = |report| Message {
            report,
            version: self.version,
            existing_id: self.existing_id,
            conjunction_id: self.conjunction_id,
            line: self.line,
            tca_line,
            object_lines: [primary_line, secondary_line],
            names: self.names,
            insertion,
        };
        Report::new(tca, primary, secondary)
            .map(message)
            .map_err(|error| {
                // Of two that are the same, the second is one too many.
                let at = if let ReportError::ObjectZero { role } = &error {
                    index_of(*role)
                } else {
                    1
                };
                CdmError::of(found[at].1, self.names.objects[at], error.reason(), error)
            })
    }
}
