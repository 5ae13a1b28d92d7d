//! Messages as lines of `KEYWORD = value`: CCSDS 508.0-B-1, section 3.

use super::draft::{CCSDS, Draft, Message};
use super::error::{CdmError, quote};
use super::insertion::Insertion;
use super::lines::{lines, text_of};

/// The first keyword of every message.
const VERSION: &str = "CCSDS_CDM_VERS";

/// The keywords behind which a comment still belongs to the header. Behind MESSAGE_ID, its last keyword, a comment belongs
/// to the relative metadata.
const HEADER: [&str; 3] = ["CREATION_DATE", "ORIGINATOR", "MESSAGE_FOR"];

/// A message that is being read, and the insertion for its comment so far.
struct Open {
    draft: Draft,
    insertion: Insertion,
    is_in_header: bool,
}

impl Open {
    fn finish(self) -> Result<Message, CdmError> {
        self.draft.finish(self.insertion)
    }
}

/// Reads every message of a text.
pub(super) fn read(document: &[u8]) -> Result<Vec<Message>, CdmError> {
    let text = text_of(document)?;
    let begin = document.len() - text.len();
    let mut messages = Vec::new();
    let mut open: Option<Open> = None;
    for (number, line) in (1..).zip(lines(text)) {
        // Inserted behind this line, which has a line end: a message does not end in its header.
        let insertion = || Insertion::Line { at: begin + line.next, line_end: begin + line.end..begin + line.next };
        match Statement::of(number, line.text)? {
            Statement::Blank => {}
            Statement::KeyAndValue(VERSION, value) => {
                if value != "1.0" {
                    let message = format!("{} is a version that is not known, 1.0 is", quote(value));
                    return Err(CdmError::of(number, VERSION, "bad_version", message));
                }
                if let Some(before) = open.take() {
                    messages.push(before.finish()?);
                }
                open = Some(Open { draft: Draft::new(number, &CCSDS), insertion: insertion(), is_in_header: true });
            }
            statement => {
                let Some(open) = &mut open else {
                    let message = format!("a message begins with {VERSION}, and this stands before it");
                    return Err(CdmError::of(number, statement.keyword(), "report_form", message));
                };
                if let (Statement::Comment(_), true) = (&statement, open.is_in_header) {
                    open.insertion = insertion();
                }
                open.take(number, &statement)?;
            }
        }
    }
    let last = open.ok_or_else(|| CdmError::of(1, VERSION, "missing_field", "there is no message"))?;
    messages.push(last.finish()?);
    Ok(messages)
}

impl Open {
    fn take(&mut self, number: u64, statement: &Statement<'_>) -> Result<(), CdmError> {
        let (key, value) = match statement {
            Statement::Blank => return Ok(()),
            Statement::Comment(text) => return self.draft.comment(number, text),
            Statement::KeyAndValue(key, value) => (*key, *value),
        };
        self.is_in_header &= HEADER.contains(&key);
        match key {
            "TCA" if self.draft.is_in_object() => {
                Err(CdmError::of(number, key, "report_form", "it stands behind OBJECT and belongs before it"))
            }
            "TCA" => self.draft.tca(number, value),
            "OBJECT" => self.draft.begin_object(number, value),
            "OBJECT_DESIGNATOR" => self.draft.designator(number, value),
            _ => Ok(()),
        }
    }
}

/// A line by its kind.
enum Statement<'a> {
    Blank,
    Comment(&'a str),
    KeyAndValue(&'a str, &'a str),
}

impl<'a> Statement<'a> {
    fn of(number: u64, line: &'a str) -> Result<Statement<'a>, CdmError> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(Statement::Blank);
        }
        let first = line.split([' ', '\t', '=']).next().unwrap_or_default();
        if first == "COMMENT" {
            let text = line[first.len()..].trim_ascii_start();
            return Ok(Statement::Comment(text.strip_prefix('=').unwrap_or(text)));
        }
        match line.split_once('=').map(|(key, value)| (key.trim_ascii_end(), value.trim_ascii_start())) {
            Some((key, value)) if !key.is_empty() => Ok(Statement::KeyAndValue(key, value)),
            Some(_) => Err(CdmError::at(number, "report_form", "there is no keyword before the `=`")),
            None => Err(CdmError::of(number, first, "report_form", "there is no `=` behind the keyword")),
        }
    }

    fn keyword(&self) -> &'a str {
        match self {
            Statement::KeyAndValue(key, _) => key,
            _ => "COMMENT",
        }
    }
}
