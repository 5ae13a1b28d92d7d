//! Messages as lines of `KEYWORD = value`: CCSDS 508.0-B-1, section 3.

use super::draft::{CCSDS, Draft, Message};
use super::error::{CdmError, quote};
use super::insertion::Insertion;
use super::lines::{lines, text_of};
use super::outcomes::{Outcomes, ReadRule};

/// The first keyword of every message.
const VERSION: &str = "CCSDS_CDM_VERS";

/// The keywords behind which a comment still belongs to the header. Behind MESSAGE_ID, its last keyword, a comment belongs
/// to the relative metadata.
const HEADER: [&str; 3] = ["CREATION_DATE", "ORIGINATOR", "MESSAGE_FOR"];

/// A message that is being read, and the insertion for its comment so far.
struct Open<'a> {
    draft: Draft<'a>,
    insertion: Insertion,
    is_in_header: bool,
}

impl Open<'_> {
    fn finish(self) -> Result<Message, CdmError> {
        self.draft.finish(self.insertion)
    }
}

/// Reads every message of a text.
pub(super) fn read<'a>(document: &[u8], rule: ReadRule<'a>) -> Result<Outcomes<'a>, CdmError> {
    let text = text_of(document)?;
    let begin = document.len() - text.len();
    let mut outcomes = Outcomes::new(rule);
    // `None` before the first message, and in one that was refused.
    let mut open: Option<Open<'_>> = None;
    let mut is_begun = false;
    for (number, line) in (1..).zip(lines(text)) {
        // Inserted behind this line, which has a line end: a message does not end in its header.
        let insertion = || Insertion::Line { at: begin + line.next, line_end: begin + line.end..begin + line.next };
        match Statement::of(number, line.text) {
            Ok(Statement::Blank) => {}
            Ok(Statement::KeyAndValue(VERSION, value)) => {
                is_begun = true;
                if let Some(before) = open.take() {
                    outcomes.add(before.finish())?;
                }
                if value == "1.0" {
                    let draft = Draft::new(number, &CCSDS, rule.objects);
                    open = Some(Open { draft, insertion: insertion(), is_in_header: true });
                } else {
                    let message = format!("{} is a version that is not known, 1.0 is", quote(value));
                    outcomes.add(Err(CdmError::of(number, VERSION, "bad_version", message)))?;
                }
            }
            statement if !is_begun => {
                let message = format!("a message begins with {VERSION}, and this stands before it");
                return Err(CdmError::of(number, statement?.keyword(), "report_form", message));
            }
            statement => {
                let Some(current) = &mut open else { continue };
                if let (Ok(Statement::Comment(_)), true) = (&statement, current.is_in_header) {
                    current.insertion = insertion();
                }
                if let Err(error) = statement.and_then(|statement| current.take(number, &statement)) {
                    open = None;
                    outcomes.add(Err(error))?;
                }
            }
        }
    }
    if !is_begun {
        return Err(CdmError::of(1, VERSION, "missing_field", "there is no message"));
    }
    if let Some(last) = open {
        outcomes.add(last.finish())?;
    }
    Ok(outcomes)
}

impl Open<'_> {
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
            "CATALOG_NAME" => self.draft.catalog_name(number, value),
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
