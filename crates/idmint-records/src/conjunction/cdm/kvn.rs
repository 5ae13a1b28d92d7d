//! Reads messages that are written as lines of `KEYWORD = value`. Source: CCSDS 508.0-B-1, section
//! 3, and the draft CCSDS 508.0-P-1.1.

use super::draft::{CCSDS, Draft, Message};
use super::error::CdmError;
use super::insertion::Insertion;
use super::lines::{lines, text_of};
use super::outcomes::Outcomes;
use super::outcomes::ReadRule;
use super::version::{CdmVersion, NoteForm, unknown_version};
use crate::conjunction::sent_report::CONJUNCTION_ID_KEY;

/// The first keyword of every message.
const VERSION: &str = "CCSDS_CDM_VERS";

/// The keywords in the header of a message, without the last one, [`LAST_OF_HEADER`]. A comment
/// after one of these keywords belongs to the header, but a comment after the last one does not.
const HEADER: [&str; 4] = [
    "CLASSIFICATION",
    "CREATION_DATE",
    "ORIGINATOR",
    "MESSAGE_FOR",
];

/// The last keyword of the header. A comment after it belongs to the next section, which CCSDS
/// calls the relative metadata.
const LAST_OF_HEADER: &str = "MESSAGE_ID";

/// A message whose end has not been reached yet.
struct Open<'a> {
    draft: Draft<'a>,
    /// The place to insert a comment with the id: after the last header comment read so far, or
    /// after the first line of the message if no such comment was read.
    comment: Insertion,
    /// The place to insert the keyword CONJUNCTION_ID: before the first keyword after the header of
    /// the message. Comments between the header and that first keyword come before CONJUNCTION_ID.
    keyword: Option<Insertion>,
    is_in_header: bool,
}

impl Open<'_> {
    fn finish(self) -> Result<Message, CdmError> {
        self.draft.finish(self.comment, self.keyword)
    }
}

/// Reads every message of a KVN document.
pub(super) fn read<'a>(document: &[u8], rule: ReadRule<'a>) -> Result<Outcomes<'a>, CdmError> {
    let text = text_of(document)?;
    let begin = document.len() - text.len();
    let mut outcomes = Outcomes::new(rule);
    // The message that is being read. `None` before the first message. After an error in a message,
    // `None` until the next message begins.
    let mut open: Option<Open<'_>> = None;
    let mut is_begun = false;
    for (number, line) in (1..).zip(lines(text)) {
        // Creates an insertion at this line: a comment with the id after it, or the keyword
        // CONJUNCTION_ID before it. The line always has a line end, because more lines must follow.
        let insertion = |note| {
            let at = match note {
                NoteForm::Comment => line.next,
                NoteForm::ConjunctionId => line.end - line.text.len(),
            };
            Insertion::Line {
                note,
                at: begin + at,
                line_end: begin + line.end..begin + line.next,
            }
        };
        match Statement::of(number, line.text) {
            Ok(Statement::Blank) => {}
            Ok(Statement::KeyAndValue(VERSION, value)) => {
                is_begun = true;
                if let Some(before) = open.take() {
                    outcomes.add(before.finish())?;
                }
                match CdmVersion::of(value) {
                    Some(version) => {
                        let draft = Draft::new(number, version, &CCSDS, rule);
                        let comment = insertion(NoteForm::Comment);
                        open = Some(Open {
                            draft,
                            comment,
                            keyword: None,
                            is_in_header: true,
                        });
                    }
                    None => {
                        outcomes.add(Err(CdmError::of(
                            number,
                            VERSION,
                            "bad_version",
                            unknown_version(value),
                        )))?;
                    }
                }
            }
            statement if !is_begun => {
                let message = format!(
                    "this line comes before the first message; begin each message with {VERSION}"
                );
                return Err(CdmError::of(
                    number,
                    statement?.keyword(),
                    "report_form",
                    message,
                ));
            }
            statement => {
                let Some(current) = &mut open else { continue };
                match &statement {
                    Ok(Statement::Comment(_)) if current.is_in_header => {
                        current.comment = insertion(NoteForm::Comment)
                    }
                    Ok(Statement::KeyAndValue(key, _))
                        if current.keyword.is_none() && !is_of_header(key) =>
                    {
                        current.keyword = Some(insertion(NoteForm::ConjunctionId));
                    }
                    _ => {}
                }
                if let Err(error) = statement.and_then(|statement| current.take(number, &statement))
                {
                    open = None;
                    outcomes.add(Err(error))?;
                }
            }
        }
    }
    if !is_begun {
        return Err(CdmError::of(
            1,
            VERSION,
            "missing_field",
            "the document has no message, which begins with this keyword",
        ));
    }
    if let Some(last) = open {
        outcomes.add(last.finish())?;
    }
    Ok(outcomes)
}

fn is_of_header(key: &str) -> bool {
    HEADER.contains(&key) || key == LAST_OF_HEADER
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
            "TCA" if self.draft.is_in_object() => Err(CdmError::of(
                number,
                key,
                "report_form",
                "this keyword comes after an OBJECT, but must come before the first one",
            )),
            "TCA" => self.draft.tca(number, value),
            CONJUNCTION_ID_KEY if !self.draft.is_in_object() => {
                self.draft.conjunction_id(number, value)
            }
            "OBJECT" => self.draft.begin_object(number, value),
            "OBJECT_DESIGNATOR" => self.draft.designator(number, value),
            "CATALOG_NAME" => self.draft.catalog_name(number, value),
            _ => Ok(()),
        }
    }
}

/// A line of a KVN document, classified by its content.
enum Statement<'a> {
    Blank,
    Comment(&'a str),
    KeyAndValue(&'a str, &'a str),
}

impl<'a> Statement<'a> {
    fn of(number: u64, line: &'a str) -> Result<Statement<'a>, CdmError> {
        // Concatenated documents have byte order marks in the middle.
        let line = line.trim_start_matches('\u{feff}').trim_ascii();
        if line.is_empty() {
            return Ok(Statement::Blank);
        }
        let first = line.split([' ', '\t', '=']).next().unwrap_or_default();
        if first == "COMMENT" {
            let text = line[first.len()..].trim_ascii_start();
            return Ok(Statement::Comment(text.strip_prefix('=').unwrap_or(text)));
        }
        match line
            .split_once('=')
            .map(|(key, value)| (key.trim_ascii_end(), value.trim_ascii_start()))
        {
            Some((key, value)) if !key.is_empty() => Ok(Statement::KeyAndValue(key, value)),
            Some(_) => Err(CdmError::at(
                number,
                "report_form",
                "the line has no keyword before its `=`; write KEYWORD = value",
            )),
            None => Err(CdmError::of(
                number,
                first,
                "report_form",
                "the line has no `=` after the keyword; write KEYWORD = value",
            )),
        }
    }

    fn keyword(&self) -> &'a str {
        match self {
            Statement::KeyAndValue(key, _) => key,
            _ => "COMMENT",
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::conjunction::cdm::document::Document;
    use crate::conjunction::cdm::form::CdmForm;

    #[test]
    fn a_byte_order_mark_before_a_later_message_is_ignored() {
        let message = "\u{feff}CCSDS_CDM_VERS = 1.0\nTCA = 2024-032T00:00:00\n\
            OBJECT = OBJECT1\nOBJECT_DESIGNATOR = 1\nOBJECT = OBJECT2\nOBJECT_DESIGNATOR = 2\n";
        let document = Document::read(CdmForm::Kvn, message.repeat(3)).expect("three messages");
        assert_eq!(document.messages().len(), 3);
    }
}
