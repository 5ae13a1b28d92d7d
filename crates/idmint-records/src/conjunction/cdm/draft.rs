//! Collects the values of one Conjunction Data Message in a draft, and makes a message from the
//! draft. The readers of all forms (KVN, XML, JSON and CSV) share this code.

use super::error::{CdmError, quote};
use super::insertion::Insertion;
use super::outcomes::ReadRule;
use super::version::{CdmVersion, NoteForm};
use crate::conjunction::external_id::ExternalId;
use crate::conjunction::grouped_minter::GroupedMinter;
use crate::conjunction::object_rules::{ObjectFault, TOO_GREAT};
use crate::conjunction::report::{Report, ReportError, Role};
use crate::conjunction::sent_report::{
    CONJUNCTION_ID_KEY, EVENT_ID_KEY, NotedFault, read_noted, read_own,
};
use idmint_core::id::Format;
use idmint_core::time::UnixTime;

/// The parts of a Conjunction Data Message that are needed to make or check its conjunction's id.
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

/// A conjunction id that is already written in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingId {
    /// The line of the id, counted from 1.
    pub line: u64,
    /// The id as written in the message.
    pub text: String,
}

/// The names that one form of messages uses for its values. For example, the first object is named
/// `SAT_1_ID` in CSV. Error messages use the same names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) tca: &'static str,
    pub(super) objects: [&'static str; 2],
    pub(super) catalogs: [&'static str; 2],
}

/// The names of the values in CCSDS 508.0, for messages in KVN (keyword = value notation) and XML.
pub(super) const CCSDS: Names = Names {
    tca: "TCA",
    objects: ["OBJECT_DESIGNATOR", "OBJECT_DESIGNATOR"],
    catalogs: ["CATALOG_NAME", "CATALOG_NAME"],
};

impl Message {
    /// Returns the report of the message.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Returns the version of the message. A message counts as version 1.0 if its form, such as
    /// CSV, has no versions.
    pub fn version(&self) -> &CdmVersion {
        &self.version
    }

    /// Returns the attached id, if the message has one. It is the id of the conjunction in the
    /// comment, JSON member or CSV column that only idmint writes.
    pub fn existing_id(&self) -> Option<&ExistingId> {
        self.existing_id.as_ref()
    }

    /// Returns the value of the keyword CONJUNCTION_ID, if the message has it. It is an id of
    /// idmint, an id that another system or organization assigned, or empty.
    pub fn conjunction_id(&self) -> Option<&ExistingId> {
        self.conjunction_id.as_ref()
    }

    /// Returns the attached id, which is the conjunction id that idmint wrote into the message
    /// earlier. It is taken from the comment, JSON member or CSV column of idmint, or else from the
    /// keyword CONJUNCTION_ID. The keyword is ignored if its value is not an id of idmint, or if
    /// the message is JSON or CSV.
    ///
    /// The encoding with the index `encoding` is tried first for the id in the comment.
    ///
    /// # Errors
    /// Returns [`CdmError`] if the id in the comment is not an id of the format, or if the keyword
    /// has a different id of idmint.
    pub fn noted(&self, minter: &GroupedMinter, encoding: usize) -> Result<Option<u128>, CdmError> {
        // In JSON and CSV, idmint writes its id into a separate member or column. Ignore
        // CONJUNCTION_ID there, because its value is an id that another organization assigned.
        let keyword = self.own_keyword(minter).filter(|_| self.names == &CCSDS);
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

    /// Returns the value of the keyword CONJUNCTION_ID if it is an id of idmint.
    fn own_keyword(&self, minter: &GroupedMinter) -> Option<(u128, &ExistingId)> {
        let keyword = self.conjunction_id.as_ref()?;
        let own = read_own(&keyword.text, minter, &self.report);
        own.map(|id| (id, keyword))
    }

    /// Returns the id that another originator gave to the conjunction: the value of CONJUNCTION_ID,
    /// unless that value is an id of idmint.
    pub fn external(&self, minter: &GroupedMinter) -> Option<ExternalId> {
        let keyword = self.conjunction_id.as_ref()?;
        ExternalId::new(&keyword.text).filter(|_| self.own_keyword(minter).is_none())
    }

    /// Returns the line number at which the message begins, counted from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Converts `error` to a [`CdmError`] with the line and the name of the invalid value.
    pub(super) fn refuse(&self, error: &ReportError) -> CdmError {
        let at = match error {
            ReportError::ObjectZero { role } | ReportError::ObjectTooGreat { role, .. } => {
                Some(index_of(*role))
            }
            ReportError::SameObject { .. } => Some(index_of(Role::Secondary)),
            ReportError::TcaUnreadable(_)
            | ReportError::TcaTooEarly { .. }
            | ReportError::TcaTooLate { .. }
            | ReportError::IdTooGreat { .. } => None,
        };
        let (line, name) = match at {
            Some(at) => (self.object_lines[at], self.names.objects[at]),
            None => (self.tca_line, self.names.tca),
        };
        CdmError::of(line, name, error.reason(), error).with_limit(error.limit())
    }

    /// Returns the error for a message that contains a conjunction id which does not belong to it.
    ///
    /// # Panics
    /// Panics if the message contains no conjunction id.
    pub fn refuse_existing_id(&self, fault: &NotedFault) -> CdmError {
        let comment = self.existing_id.as_ref().zip(Some(EVENT_ID_KEY));
        let keyword = self.conjunction_id.as_ref().zip(Some(CONJUNCTION_ID_KEY));
        let id = comment.or(keyword);
        let (existing, name) = id.expect("only called for a message that came with an id");
        let message = format!("{} {fault}", quote(&existing.text));
        CdmError::of(existing.line, name, fault.reason(), message)
    }
}

impl ExistingId {
    /// Parses the text of the id. The encoding of `format` with the index `encoding` is tried
    /// first, and then the other encodings in order.
    pub fn read(&self, format: &Format, encoding: usize) -> Option<u128> {
        read_noted(&self.text, format, encoding)
    }
}

/// Returns the error for a message that contains a second conjunction id which differs from the
/// first.
fn refuse_second(second: &ExistingId, name: &str, first: &ExistingId) -> CdmError {
    let (quoted, of_first, line) = (quote(&second.text), quote(&first.text), first.line);
    let message = format!(
        "{quoted} differs from the id {of_first} in line {line}; find out which one is right"
    );
    CdmError::of(second.line, name, "another_id", message)
}

/// Checks that a value occurs only once in a message. `known` is the earlier value with its line
/// number, or `None` if the value was not read before.
fn check_new<T>(known: &Option<(T, u64)>, line: u64, name: &str) -> Result<(), CdmError> {
    let Some((_, first)) = known else {
        return Ok(());
    };
    let message = format!("line {first} already has this value; remove one of them");
    Err(CdmError::of(line, name, "duplicate_key", message))
}

/// Records a conjunction id in `known`. A message may contain the same id under `name` several
/// times, but not two different ids.
fn note_id(
    known: &mut Option<ExistingId>,
    name: &str,
    line: u64,
    text: &str,
) -> Result<(), CdmError> {
    let text = text.to_owned();
    let found = ExistingId { line, text };
    let first = known.get_or_insert_with(|| found.clone());
    match first.text == found.text {
        true => Ok(()),
        false => Err(refuse_second(&found, name, first)),
    }
}

const fn index_of(role: Role) -> usize {
    match role {
        Role::Primary => 0,
        Role::Secondary => 1,
    }
}

/// The values of one of the two objects of a message, as far as they were read.
#[derive(Debug, Default)]
struct ObjectDraft {
    /// The designator, and the line number where it was read.
    designator: Option<(String, u64)>,
    /// The catalogue, and the line number where it was read.
    catalog: Option<(String, u64)>,
    /// The number of the line that begins the part of the message about this object. `None` before
    /// that line is read. For JSON and CSV, the field stays `None`.
    begun: Option<u64>,
    /// The catalogue number from a separate CSV column or JSON member, such as
    /// `SAT1_COMMENT_NORAD_ID`. It is used if the designator is not a number of an accepted
    /// catalogue.
    number: Option<u64>,
}

/// A message that is still being read, so some values may be missing.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    rule: ReadRule<'a>,
    version: CdmVersion,
    line: u64,
    names: &'static Names,
    tca: Option<(UnixTime, u64)>,
    objects: [ObjectDraft; 2],
    /// The object whose block of values is being read, or `None` outside of the blocks of the two
    /// objects.
    current: Option<Role>,
    existing_id: Option<ExistingId>,
    conjunction_id: Option<ExistingId>,
}

impl<'a> Draft<'a> {
    /// Creates the draft of a message that begins at line `line`.
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

    /// Records the time of closest approach, which `text` contains.
    pub(super) fn tca(&mut self, line: u64, text: &str) -> Result<(), CdmError> {
        self.tca_read_as(line, text, text)
    }

    /// Records the time of closest approach. `text` is the time as written in the message, and
    /// `ccsds` is the same time in a form that CCSDS defines.
    pub(super) fn tca_read_as(
        &mut self,
        line: u64,
        text: &str,
        ccsds: &str,
    ) -> Result<(), CdmError> {
        check_new(&self.tca, line, self.names.tca)?;
        // Times in CCSDS messages are in UTC. The only offset that they may have is `Z`, so refuse
        // any other offset.
        let has_offset = ccsds
            .split_once('T')
            .is_some_and(|(_, time)| time.contains(['+', '-']));
        let Some(tca) = UnixTime::from_utc_text(ccsds).ok().filter(|_| !has_offset) else {
            let what =
                "is not a time in UTC such as 2024-02-01T00:00:00.250 or 2024-032T00:00:00.250";
            let message = format!("{} {what}", quote(text));
            return Err(CdmError::of(line, self.names.tca, "bad_timestamp", message));
        };
        self.tca = Some((tca, line));
        Ok(())
    }

    /// Begins the block of the object that `text` names.
    pub(super) fn begin_object(&mut self, line: u64, text: &str) -> Result<(), CdmError> {
        // The XML schema of CCSDS also permits lower case.
        let role = match text {
            "OBJECT1" | "object1" => Role::Primary,
            "OBJECT2" | "object2" => Role::Secondary,
            _ => {
                let message = format!(
                    "{} is neither OBJECT1 nor OBJECT2, the only two values",
                    quote(text)
                );
                return Err(CdmError::of(line, "OBJECT", "report_form", message));
            }
        };
        if let Some(first) = self.objects[index_of(role)].begun {
            let message = format!(
                "line {first} already begins {text}; a message has OBJECT1 and OBJECT2 once each"
            );
            return Err(CdmError::of(line, "OBJECT", "duplicate_key", message));
        }
        self.objects[index_of(role)].begun = Some(line);
        self.current = Some(role);
        Ok(())
    }

    /// Returns `true` while the part of the message about one of the two objects is being read.
    pub(super) fn is_in_object(&self) -> bool {
        self.current.is_some()
    }

    /// Ends the part about an object. XML marks this end with a tag, but KVN has no mark for it.
    pub(super) fn end_object(&mut self) {
        self.current = None;
    }

    /// Records the designator of the object whose block of values is being read.
    pub(super) fn designator(&mut self, line: u64, text: &str) -> Result<(), CdmError> {
        let role = self.current_object(line, CCSDS.objects[0])?;
        self.object(role, line, text)
    }

    /// Records the name of the catalogue of the object whose part of the message is being read.
    pub(super) fn catalog_name(&mut self, line: u64, text: &str) -> Result<(), CdmError> {
        let role = self.current_object(line, CCSDS.catalogs[0])?;
        self.catalog(role, line, text)
    }

    fn current_object(&self, line: u64, name: &str) -> Result<Role, CdmError> {
        let message = "this value comes before OBJECT, which must say whose value it is";
        let unknown = || CdmError::of(line, name, "report_form", message);
        self.current.ok_or_else(unknown)
    }

    /// Records the name of the catalogue in which an object has its designator.
    pub(super) fn catalog(&mut self, role: Role, line: u64, text: &str) -> Result<(), CdmError> {
        let at = index_of(role);
        check_new(&self.objects[at].catalog, line, self.names.catalogs[at])?;
        self.objects[at].catalog = Some((text.to_owned(), line));
        // Resolve the object's designator now, so that an error in it is reported before errors
        // that come later in the message.
        self.number_of(role).map(|_| ())
    }

    /// Records the designator of an object, such as its catalogue number.
    pub(super) fn object(&mut self, role: Role, line: u64, text: &str) -> Result<(), CdmError> {
        let at = index_of(role);
        check_new(&self.objects[at].designator, line, self.names.objects[at])?;
        self.objects[at].designator = Some((text.to_owned(), line));
        if self.objects[at].catalog.is_some() {
            self.number_of(role)?;
        }
        Ok(())
    }

    /// Records an object's catalogue number from a value such as `SAT1_COMMENT_NORAD_ID`. Call this
    /// before recording the designator and the catalogue, because these need the number.
    pub(super) fn set_number(&mut self, role: Role, number: u64) {
        self.objects[index_of(role)].number = Some(number);
    }

    /// Returns the catalogue number of an object, and the line number of its designator in the
    /// message. Returns `None` if the designator was not read yet.
    fn number_of(&self, role: Role) -> Result<Option<(u64, u64)>, CdmError> {
        let at = index_of(role);
        let object = &self.objects[at];
        let Some((designator, line)) = &object.designator else {
            return Ok(None);
        };
        let (line, name) = (*line, self.names.objects[at]);
        let refuse = |reason, what: &str| {
            let message = format!("{} {what}", quote(designator));
            Err(CdmError::of(line, name, reason, message))
        };
        let catalog = object.catalog.as_ref().map(|(catalog, _)| catalog.as_str());
        let objects = self.rule.objects;
        match objects.resolve(role, designator, catalog, object.number) {
            Ok(number) => Ok(Some((number, line))),
            Err(ObjectFault::Catalog(what)) => {
                let line = object.catalog.as_ref().map_or(line, |(_, line)| *line);
                let message = format!("{} {what}", quote(catalog.unwrap_or_default()));
                let name = self.names.catalogs[at];
                Err(CdmError::of(line, name, "another_catalog", message))
            }
            Err(ObjectFault::NoNumber(what)) => refuse("wrong_type", &what),
            Err(ObjectFault::TooGreat) => refuse("out_of_range", TOO_GREAT),
        }
    }

    /// Reads a comment. If the comment contains a conjunction id of idmint, records that id.
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

    /// Records a conjunction id that idmint wrote.
    pub(super) fn event_id(&mut self, line: u64, id: &str) -> Result<(), CdmError> {
        if id.is_empty() {
            let message = "the id is empty; remove it, so that the message gets an id";
            return Err(CdmError::of(line, EVENT_ID_KEY, "another_id", message));
        }
        note_id(&mut self.existing_id, EVENT_ID_KEY, line, id)
    }

    /// Records the value of the keyword CONJUNCTION_ID. It may be an id of idmint or of another
    /// originator.
    pub(super) fn conjunction_id(&mut self, line: u64, text: &str) -> Result<(), CdmError> {
        note_id(&mut self.conjunction_id, CONJUNCTION_ID_KEY, line, text)
    }

    /// Completes the message. `comment` and `keyword` are the places at which a comment or the
    /// keyword CONJUNCTION_ID can be inserted. `keyword` is `None` if the message has no place for
    /// this keyword.
    pub(super) fn finish(
        self,
        comment: Insertion,
        keyword: Option<Insertion>,
    ) -> Result<Message, CdmError> {
        const OF_MESSAGE: &str =
            "the message that begins in this line does not have this value; add it";
        let lacks =
            |line, name: &str, what: &str| Err(CdmError::of(line, name, "missing_field", what));
        let Some((tca, tca_line)) = self.tca else {
            return lacks(self.line, self.names.tca, OF_MESSAGE);
        };
        let mut found = [(0, 0); 2];
        for (at, role) in [Role::Primary, Role::Secondary].into_iter().enumerate() {
            found[at] = match (self.number_of(role)?, self.objects[at].begun) {
                (Some(object), _) => object,
                (None, Some(begun)) => {
                    let what =
                        "the object that begins in this line does not have this value; add it";
                    return lacks(begun, self.names.objects[at], what);
                }
                (None, None) if self.names == &CCSDS => {
                    let what = format!(
                        "the message that begins in this line does not have OBJECT{}; add this object",
                        at + 1
                    );
                    return lacks(self.line, "OBJECT", &what);
                }
                (None, None) => return lacks(self.line, self.names.objects[at], OF_MESSAGE),
            };
        }
        let [(primary, primary_line), (secondary, secondary_line)] = found;
        let insertion = match self.rule.note.unwrap_or(self.version.note()) {
            // Do not replace an existing CONJUNCTION_ID, because another originator may have
            // written it.
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
                // If both objects of the message are the same, report the error at the line of the
                // second object.
                let at = match &error {
                    ReportError::ObjectZero { role } => index_of(*role),
                    _ => 1,
                };
                CdmError::of(found[at].1, self.names.objects[at], error.reason(), error)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conjunction::cdm::document::Document;
    use crate::conjunction::cdm::form::CdmForm;
    use crate::conjunction::object_rules::ObjectRules;

    #[test]
    fn objects_may_be_named_in_lower_case() {
        let segment = |object: &str, number| {
            format!(
                "<segment><metadata><OBJECT>{object}</OBJECT>\
                 <OBJECT_DESIGNATOR>{number}</OBJECT_DESIGNATOR></metadata></segment>"
            )
        };
        let document = format!(
            "<cdm id=\"CCSDS_CDM_VERS\" version=\"1.0\"><header></header><body>\
             <relativeMetadataData><TCA>2024-02-01T00:00:00</TCA></relativeMetadataData>{}{}</body></cdm>",
            segment("object2", 7),
            segment("object1", 9)
        );
        let document = Document::read(CdmForm::Xml, &document).expect("names of the schema");
        let report = document.messages()[0].report();
        assert_eq!((report.primary(), report.secondary()), (9, 7));
    }

    #[test]
    fn a_client_leaves_it_to_the_service_if_two_unknown_objects_are_the_same() {
        let document = "CCSDS_CDM_VERS = 1.0\nTCA = 2024-032T00:00:00\nOBJECT = OBJECT1\n\
            OBJECT_DESIGNATOR = UNKNOWN\nOBJECT = OBJECT2\nOBJECT_DESIGNATOR = UNKNOWN\n";
        let rule = ReadRule {
            objects: &ObjectRules::accepting_all(),
            note: None,
            is_partial: false,
            count_max: 1,
        };
        let document = Document::read_by(rule, CdmForm::Kvn, document);
        assert_eq!(document.expect("accepted").messages().len(), 1);
    }
}
