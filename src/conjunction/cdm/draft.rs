//! A message while it is read: what all forms have in common.

use super::error::{CdmError, quoted};
use super::place::Place;
use crate::conjunction::cdm::EVENT_ID_KEY;
use crate::conjunction::report::{Report, ReportError, Role};
use crate::id::Format;
use crate::time::UnixTime;

/// One Conjunction Data Message, as far as it makes an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    report: Report,
    noted: Option<Noted>,
    line: u64,
    tca_line: u64,
    object_lines: [u64; 2],
    names: &'static Names,
    pub(super) place: Place,
}

/// The id of a conjunction that a message has already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    /// The line in which it stands, counted from 1.
    pub line: u64,
    /// As it stands there.
    pub id: String,
}

/// What a form calls the values that an id is made of.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) tca: &'static str,
    pub(super) objects: [&'static str; 2],
}

/// The names of CCSDS 508.0, in KVN and in XML.
pub(super) const CCSDS: Names = Names { tca: "TCA", objects: ["OBJECT_DESIGNATOR", "OBJECT_DESIGNATOR"] };

impl Message {
    /// What it reports.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The id that it has already.
    pub fn noted(&self) -> Option<&Noted> {
        self.noted.as_ref()
    }

    /// The line in which it begins, counted from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// That its report gets no id, with the line and the name of the value to blame.
    pub fn refused(&self, error: &ReportError) -> CdmError {
        let role = match error {
            ReportError::ObjectZero { role } | ReportError::ObjectTooGreat { role, .. } => Some(*role),
            ReportError::SameObject { .. } => Some(Role::Secondary),
            ReportError::TcaTooEarly { .. } | ReportError::TcaTooLate { .. } | ReportError::IdTooGreat { .. } => None,
        };
        let (line, name) = role.map_or((self.tca_line, self.names.tca), |role| {
            (self.object_lines[place_of(role)], self.names.objects[place_of(role)])
        });
        CdmError::of(line, name, error.reason(), error)
    }

    /// That another id than its own is noted in it. `own`: its id, or none if what is noted is no id at all.
    ///
    /// # Panics
    /// When none is noted.
    pub fn noted_otherwise(&self, own: Option<&str>) -> CdmError {
        let noted = self.noted.as_ref().expect("only asked about a message that has an id");
        let message = match own {
            Some(own) => format!("{} stands here, the id of this conjunction is {own:?}", quoted(&noted.id)),
            None => format!("{} is no id of this format", quoted(&noted.id)),
        };
        CdmError::of(noted.line, EVENT_ID_KEY, "another_id", message)
    }
}

impl Noted {
    /// The id in this format: in the spelling of that position, or else in the first that reads it.
    pub fn id_in(&self, format: &Format, encoding: usize) -> Option<u128> {
        let asked_for = std::iter::once(&format.encodings[encoding]);
        asked_for.chain(&format.encodings).find_map(|encoding| encoding.read(&self.id).ok())
    }
}

const fn place_of(role: Role) -> usize {
    match role {
        Role::Primary => 0,
        Role::Secondary => 1,
    }
}

/// A number and the line in which it stands.
type NumberAt = (u64, u64);

/// A message of which not all is read yet.
#[derive(Debug)]
pub(super) struct Draft {
    line: u64,
    names: &'static Names,
    tca: Option<(UnixTime, u64)>,
    objects: [Option<NumberAt>; 2],
    /// The lines in which the objects begin, where a form has blocks of them.
    begun: [Option<u64>; 2],
    /// The object of which is being read.
    current: Option<Role>,
    noted: Option<Noted>,
}

impl Draft {
    /// A message that begins in that line.
    pub(super) fn new(line: u64, names: &'static Names) -> Draft {
        Draft { line, names, tca: None, objects: [None; 2], begun: [None; 2], current: None, noted: None }
    }

    /// The time of closest approach.
    pub(super) fn tca(&mut self, line: u64, text: &str) -> Result<(), CdmError> {
        let refuse = |reason, message: String| Err(CdmError::of(line, self.names.tca, reason, message));
        if let Some((_, first)) = self.tca {
            return refuse("duplicate_key", format!("it stands in line {first} already"));
        }
        let Ok(tca) = UnixTime::from_utc_text(text) else {
            let what = "is no time of the CCSDS calendar or day-of-year form";
            return refuse("bad_timestamp", format!("{} {what}", quoted(text)));
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
                let message = format!("{} is neither OBJECT1 nor OBJECT2", quoted(text));
                return Err(CdmError::of(line, "OBJECT", "report_form", message));
            }
        };
        if let Some(first) = self.begun[place_of(role)] {
            let message = format!("{text} stands in line {first} already");
            return Err(CdmError::of(line, "OBJECT", "duplicate_key", message));
        }
        self.begun[place_of(role)] = Some(line);
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

    /// The number of an object.
    pub(super) fn object(&mut self, role: Role, line: u64, text: &str) -> Result<(), CdmError> {
        let refuse = |reason, message| Err(CdmError::of(line, self.names.objects[place_of(role)], reason, message));
        if let Some((_, first)) = self.objects[place_of(role)] {
            return refuse("duplicate_key", format!("it stands in line {first} already"));
        }
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            let what = "is no catalogue number, which has decimal digits only";
            return refuse("wrong_type", format!("{} {what}", quoted(text)));
        }
        // Digits only, so it can only be too great.
        let Ok(number) = text.parse() else {
            return refuse("out_of_range", format!("{} is greater than any catalogue number", quoted(text)));
        };
        self.objects[place_of(role)] = Some((number, line));
        Ok(())
    }

    /// The text of a comment: the id of the conjunction, or anything else.
    pub(super) fn comment(&mut self, line: u64, text: &str) -> Result<(), CdmError> {
        let rest = text.trim_ascii().strip_prefix(EVENT_ID_KEY).map(str::trim_ascii_start);
        match rest.and_then(|rest| rest.strip_prefix('=')) {
            Some(id) => self.note(line, id.trim_ascii()),
            None => Ok(()),
        }
    }

    /// The id of the conjunction.
    pub(super) fn note(&mut self, line: u64, id: &str) -> Result<(), CdmError> {
        if id.is_empty() {
            return Err(CdmError::of(line, EVENT_ID_KEY, "another_id", "there is no id"));
        }
        match &self.noted {
            None => {
                self.noted = Some(Noted { line, id: id.to_owned() });
                Ok(())
            }
            Some(noted) if noted.id == id => Ok(()),
            Some(noted) => {
                let message = format!("{} stands here and {} in line {}", quoted(id), quoted(&noted.id), noted.line);
                Err(CdmError::of(line, EVENT_ID_KEY, "another_id", message))
            }
        }
    }

    /// The whole message.
    pub(super) fn finish(self, place: Place) -> Result<Message, CdmError> {
        let lacks = |line, name: &str, what: &str| Err(CdmError::of(line, name, "missing_field", what));
        let Some((tca, tca_line)) = self.tca else {
            return lacks(self.line, self.names.tca, "the message that begins here has none");
        };
        let mut found = [(0, 0); 2];
        for (at, object) in self.objects.into_iter().enumerate() {
            found[at] = match (object, self.begun[at]) {
                (Some(object), _) => object,
                (None, Some(begun)) => {
                    return lacks(begun, self.names.objects[at], "the object that begins here has none");
                }
                (None, None) if self.names == &CCSDS => {
                    let what = format!("the message that begins here has no OBJECT{}", at + 1);
                    return lacks(self.line, "OBJECT", &what);
                }
                (None, None) => {
                    return lacks(self.line, self.names.objects[at], "the message that begins here has none");
                }
            };
        }
        let [(primary, primary_line), (secondary, secondary_line)] = found;
        let message = |report| Message {
            report,
            noted: self.noted,
            line: self.line,
            tca_line,
            object_lines: [primary_line, secondary_line],
            names: self.names,
            place,
        };
        Report::new(tca, primary, secondary).map(message).map_err(|error| {
            // Of two that are the same, the second is one too many.
            let at = if let ReportError::ObjectZero { role } = &error { place_of(*role) } else { 1 };
            CdmError::of(found[at].1, self.names.objects[at], error.reason(), error)
        })
    }
}
