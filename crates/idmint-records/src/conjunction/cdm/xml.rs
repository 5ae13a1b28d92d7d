//! Reads messages that are written as XML: a single `cdm` element, or several in an `ndm` element.
//! Source: CCSDS 508.0-B-1, section 4, its draft 508.0-P-1.1, and CCSDS 505.0.
//!
//! The reader never loads external entities. A document type declaration is refused, and only the
//! predefined entities of XML are known.

use quick_xml::events::{BytesDecl, BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

use super::draft::{CCSDS, Draft};
use super::error::{CdmError, quote};
use super::insertion::Insertion;
use super::lines::{LineCounter, text_of};
use super::outcomes::Outcomes;
use super::outcomes::ReadRule;
use super::transcoded::{Origin, refuse_declared};
use super::version::{CdmVersion, NoteForm, unknown_version};
use crate::conjunction::sent_report::CONJUNCTION_ID_KEY;

/// The maximum nesting depth of elements. Messages of the CCSDS standard have seven levels.
const DEPTH_MAX: usize = 64;

/// The maximum number of attributes of a `cdm` element.
const ATTRIBUTES_MAX: usize = 64;

/// The meaning of an XML element, which depends on its position in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Ndm,
    Cdm,
    Header,
    Body,
    Relative,
    Segment,
    Metadata,
    Leaf(Leaf),
    /// An element whose content is ignored.
    Other,
}

/// An XML element whose text is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaf {
    Comment,
    /// A comment in the section after the header, which CCSDS calls the relative metadata.
    RelativeComment,
    ConjunctionId,
    Tca,
    Object,
    Designator,
    Catalog,
}

impl Element {
    fn of(parent: Option<Element>, name: &str, is_in_message: bool) -> Element {
        match (parent, name) {
            (None, "ndm") => Element::Ndm,
            (None | Some(Element::Ndm), "cdm") => Element::Cdm,
            (Some(Element::Cdm), "header") => Element::Header,
            (Some(Element::Cdm), "body") => Element::Body,
            (Some(Element::Body), "relativeMetadataData") => Element::Relative,
            (Some(Element::Body), "segment") => Element::Segment,
            (Some(Element::Segment), "metadata") => Element::Metadata,
            (Some(Element::Relative), "COMMENT") => Element::Leaf(Leaf::RelativeComment),
            (Some(Element::Relative), CONJUNCTION_ID_KEY) => Element::Leaf(Leaf::ConjunctionId),
            (Some(Element::Relative), "TCA") => Element::Leaf(Leaf::Tca),
            (Some(Element::Metadata), "OBJECT") => Element::Leaf(Leaf::Object),
            (Some(Element::Metadata), "OBJECT_DESIGNATOR") => Element::Leaf(Leaf::Designator),
            (Some(Element::Metadata), "CATALOG_NAME") => Element::Leaf(Leaf::Catalog),
            (Some(_), "COMMENT") if is_in_message => Element::Leaf(Leaf::Comment),
            _ => Element::Other,
        }
    }
}

/// Reads every message of an XML document, which was converted to UTF-8. `origin` is the encoding
/// that the document had before the conversion.
pub(super) fn read<'a>(
    document: &'a [u8],
    origin: Origin,
    rule: ReadRule<'a>,
) -> Result<Outcomes<'a>, CdmError> {
    let text = text_of(document)?;
    let mut reader = Reader::from_str(text);
    let mut tree = Tree {
        text,
        origin,
        begin: document.len() - text.len(),
        at: 0,
        lines: LineCounter::default(),
        is_begun: false,
        open: Vec::new(),
        outcomes: Outcomes::new(rule),
        begun_at: None,
        refused_at: None,
        depth: 0,
        message: None,
        relative: None,
        leaf: (0, String::new()),
    };
    loop {
        tree.at = index_in(text, reader.buffer_position());
        match reader.read_event() {
            Ok(Event::Eof) => return tree.finish(),
            Ok(event) => tree.go_on(&event, index_in(text, reader.buffer_position()))?,
            Err(error) => {
                tree.at = tree.at.max(index_in(text, reader.error_position()));
                return Err(tree.refuse(format!("this is not XML: {error}")));
            }
        }
    }
}

/// Converts a position of the XML reader to an index into `text`.
fn index_in(text: &str, position: u64) -> usize {
    usize::try_from(position).map_or(text.len(), |position| position.min(text.len()))
}

/// A message whose end tag has not been read yet.
struct Open<'a> {
    draft: Draft<'a>,
    /// The place to insert a comment with the conjunction id: at the beginning of the header.
    comment: Option<Insertion>,
    /// The place to insert the element CONJUNCTION_ID: after the comments at the beginning of the
    /// relative metadata, which is the section of the message after the header.
    keyword: Option<Insertion>,
}

/// The open XML elements, and the messages read so far.
struct Tree<'a> {
    text: &'a str,
    origin: Origin,
    /// The length in bytes of the byte order mark before the text.
    begin: usize,
    /// The byte offset at which the current XML event begins.
    at: usize,
    lines: LineCounter,
    /// `true` after a root element was read.
    is_begun: bool,
    open: Vec<Element>,
    outcomes: Outcomes<'a>,
    /// The nesting depth of the current XML event.
    depth: usize,
    /// The nesting depth of the current message's XML element, or `None` outside of a message.
    begun_at: Option<usize>,
    /// The nesting depth of a refused message while its remaining elements are skipped, or `None`
    /// outside of a refused message.
    refused_at: Option<usize>,
    message: Option<Open<'a>>,
    /// The place to insert the element CONJUNCTION_ID in the relative metadata, the section after
    /// the message's header. `None` once an element other than a comment was read in this section.
    relative: Option<Insertion>,
    /// The current leaf, which is an element whose text is needed: the line number at which the
    /// leaf begins, and its text so far.
    leaf: (u64, String),
}

impl<'a> Tree<'a> {
    /// Handles one XML event. Events inside a refused message are skipped.
    fn go_on(&mut self, event: &Event<'_>, next: usize) -> Result<(), CdmError> {
        let outcome = if self.refused_at.is_some() {
            Ok(())
        } else {
            self.take(event, next)
        };
        match event {
            Event::Start(_) => self.depth += 1,
            Event::End(_) => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        if let Err(error) = outcome {
            let Some(begun_at) = self.begun_at else {
                return Err(error);
            };
            self.outcomes.add(Err(error))?;
            (self.message, self.refused_at) = (None, Some(begun_at));
        }
        if self.refused_at == Some(self.depth) {
            self.open.truncate(self.depth);
            (self.refused_at, self.begun_at) = (None, None);
        }
        Ok(())
    }

    fn take(&mut self, event: &Event<'_>, next: usize) -> Result<(), CdmError> {
        match event {
            Event::Start(start) => self.begin(start, next),
            Event::Empty(start) => {
                self.begin(start, next)?;
                if self.open.last() == Some(&Element::Header) {
                    return Err(self.refuse_element(
                        "header",
                        "the element is empty, so no id can be added to it",
                    ));
                }
                self.end(next)
            }
            Event::End(_) => self.end(next),
            Event::Text(text) => self.add_text(text),
            Event::CData(text) => self.add_text(text),
            Event::GeneralRef(reference) => self.add_reference(reference),
            Event::DocType(_) => Err(self.refuse("a document type is not supported; remove it")),
            Event::Decl(decl) => self.check_declaration(decl),
            Event::Comment(_) | Event::PI(_) | Event::Eof => Ok(()),
        }
    }

    fn begin(&mut self, start: &BytesStart<'_>, next: usize) -> Result<(), CdmError> {
        let parent = self.open.last().copied();
        let local = start.local_name();
        let element = Element::of(parent, local.as_ref(), self.message.is_some());
        let name = local.as_ref();
        if matches!(parent, Some(Element::Leaf(_))) {
            return Err(self.refuse_element(name, "an element is not allowed here, only text"));
        }
        if parent.is_none() && (self.is_begun || element == Element::Other) {
            let what = if self.is_begun {
                "a document must have one root"
            } else {
                "the root must be `cdm` or `ndm`"
            };
            return Err(self.refuse_element(name, what));
        }
        if self.open.len() == DEPTH_MAX {
            return Err(self.refuse_element(name, format!("nested deeper than {DEPTH_MAX} levels")));
        }
        self.is_begun = true;
        self.open.push(element);
        match element {
            Element::Cdm => {
                self.begun_at = Some(self.depth);
                let version = self.version_of(start)?;
                let draft = Draft::new(self.line(), version, &CCSDS, self.outcomes.rule);
                self.message = Some(Open {
                    draft,
                    comment: None,
                    keyword: None,
                });
            }
            Element::Header => self.begin_header(start, next)?,
            Element::Relative => {
                self.relative = Some(self.insertion_in(start, next, NoteForm::ConjunctionId))
            }
            Element::Leaf(_) => self.leaf = (self.line(), String::new()),
            _ => {}
        }
        if let (Some(Element::Relative), Some(message)) = (parent, &mut self.message)
            && element != Element::Leaf(Leaf::RelativeComment)
        {
            // The keyword CONJUNCTION_ID is inserted before the first element of
            // `relativeMetadataData` that is not a comment. If a message has this section twice,
            // the keyword is inserted into the second one.
            let found = self.relative.take();
            message.keyword = found.or(message.keyword.take());
        }
        Ok(())
    }

    /// Records the place to insert a comment with the conjunction id: after the header's start tag.
    fn begin_header(&mut self, start: &BytesStart<'_>, next: usize) -> Result<(), CdmError> {
        let insertion = self.insertion_in(start, next, NoteForm::Comment);
        match &mut self.message {
            Some(Open {
                comment: found @ None,
                ..
            }) => *found = Some(insertion),
            _ => return Err(self.refuse_element("header", "the message already has a header")),
        }
        Ok(())
    }

    /// Creates the insertion of an id after the start tag of an element.
    fn insertion_in(&self, start: &BytesStart<'_>, next: usize, note: NoteForm) -> Insertion {
        let prefix_len = start
            .name()
            .prefix()
            .map_or(0, |prefix| prefix.as_ref().len() + ":".len());
        let (at, name) = (self.begin + next, self.begin + self.at + "<".len());
        Insertion::Element {
            note,
            at,
            gap: at..at + self.gap_len(next),
            prefix: name..name + prefix_len,
        }
    }

    /// Returns the length in bytes of the white space that begins at the index `next` of the text.
    fn gap_len(&self, next: usize) -> usize {
        let rest = &self.text[next..];
        rest.len() - rest.trim_ascii_start().len()
    }

    fn end(&mut self, next: usize) -> Result<(), CdmError> {
        let element = self.open.pop();
        let behind = self.begin + next..self.begin + next + self.gap_len(next);
        let Some(Open { draft, .. }) = &mut self.message else {
            return Ok(());
        };
        match element {
            Some(Element::Leaf(leaf)) => {
                let (line, text) = (self.leaf.0, self.leaf.1.trim_ascii());
                match leaf {
                    Leaf::Comment => draft.comment(line, text),
                    Leaf::RelativeComment => {
                        if let Some(Insertion::Element { at, gap, .. }) = &mut self.relative {
                            (*at, *gap) = (behind.start, behind);
                        }
                        draft.comment(line, text)
                    }
                    Leaf::ConjunctionId => draft.conjunction_id(line, text),
                    Leaf::Tca => draft.tca(line, text),
                    Leaf::Object if draft.is_in_object() => {
                        let what = "the segment already has an OBJECT";
                        Err(CdmError::of(line, "OBJECT", "duplicate_key", what))
                    }
                    Leaf::Object => draft.begin_object(line, text),
                    Leaf::Designator => draft.designator(line, text),
                    Leaf::Catalog => draft.catalog_name(line, text),
                }
            }
            Some(Element::Segment) => {
                draft.end_object();
                Ok(())
            }
            Some(Element::Cdm) => {
                let open = self.message.take().expect("seen above");
                let Some(comment) = open.comment else {
                    let what = "the message that ends in this line does not have this element";
                    return Err(CdmError::of(self.line(), "header", "missing_field", what));
                };
                let message = open.draft.finish(comment, open.keyword)?;
                self.begun_at = None;
                self.outcomes.add(Ok(message))
            }
            _ => Ok(()),
        }
    }

    fn add_text(&mut self, text: &str) -> Result<(), CdmError> {
        match self.open.last() {
            Some(Element::Leaf(_)) => self.leaf.1.push_str(text),
            None if !text.trim_ascii().is_empty() => {
                return Err(self.refuse("there is text outside the root element; remove it"));
            }
            _ => {}
        }
        Ok(())
    }

    fn add_reference(&mut self, reference: &BytesRef<'_>) -> Result<(), CdmError> {
        let letter = match reference.resolve_char_ref() {
            Ok(Some(letter)) => Some(letter),
            Ok(None) => match reference.as_ref() {
                "lt" => Some('<'),
                "gt" => Some('>'),
                "amp" => Some('&'),
                "apos" => Some('\''),
                "quot" => Some('"'),
                _ => None,
            },
            Err(_) => None,
        };
        match letter {
            Some(letter) => self.add_text(letter.encode_utf8(&mut [0; 4])),
            None => Err(self.refuse(format!(
                "the entity {} is not defined by XML itself",
                quote(reference.as_ref())
            ))),
        }
    }

    /// Checks an XML declaration. It must be at the beginning of the document, and must say XML
    /// 1.0. If it names an encoding, that must be the encoding of the document.
    fn check_declaration(&mut self, decl: &BytesDecl<'_>) -> Result<(), CdmError> {
        if self.at != 0 {
            return Err(self.refuse("an XML declaration must come once, first in the document"));
        }
        if !matches!(decl.version(), Ok(version) if *version == *"1.0") {
            return Err(self.refuse("the XML version is not \"1.0\", the only one supported"));
        }
        match decl.encoding() {
            Some(Ok(name)) if !self.origin.is_declared_by(&name) => {
                Err(self.refuse(refuse_declared(&name)))
            }
            _ => Ok(()),
        }
    }

    /// Returns the version of a `cdm` element.
    fn version_of(&mut self, start: &BytesStart<'_>) -> Result<CdmVersion, CdmError> {
        let mut version = None;
        for (at, attribute) in start.attributes().with_checks(false).enumerate() {
            let attribute = attribute.map_err(|error| {
                self.refuse_element("cdm", format!("an attribute is malformed: {error}"))
            })?;
            if at == ATTRIBUTES_MAX {
                return Err(self.refuse_element(
                    "cdm",
                    format!("there are more than {ATTRIBUTES_MAX} attributes"),
                ));
            }
            match (attribute.key.as_ref(), attribute.value.as_ref()) {
                ("id", "CCSDS_CDM_VERS") => {}
                ("id", id) => {
                    return Err(self.refuse_element(
                        "cdm",
                        format!("id is {}, but must be CCSDS_CDM_VERS", quote(id)),
                    ));
                }
                ("version", _) if version.is_some() => {
                    return Err(self.refuse_element("cdm", "version is given twice"));
                }
                ("version", value) => version = Some(value.to_owned()),
                _ => {}
            }
        }
        let Some(version) = version else {
            return Err(CdmError::of(
                self.line(),
                "cdm",
                "missing_field",
                "the attribute version is missing; add version=\"1.0\" or \"2.0\"",
            ));
        };
        CdmVersion::of(&version).ok_or_else(|| {
            CdmError::of(self.line(), "cdm", "bad_version", unknown_version(&version))
        })
    }

    fn finish(mut self) -> Result<Outcomes<'a>, CdmError> {
        if !self.open.is_empty() {
            return Err(self.refuse("the document ends inside an element; send the whole document"));
        }
        if self.outcomes.len() == 0 {
            return Err(CdmError::of(
                self.line(),
                "cdm",
                "missing_field",
                "the document has no message, which is an element of this name",
            ));
        }
        Ok(self.outcomes)
    }

    /// Returns the line number at which the current XML event begins.
    fn line(&mut self) -> u64 {
        self.lines.line_at(self.text.as_bytes(), self.at)
    }

    fn refuse(&mut self, message: impl std::fmt::Display) -> CdmError {
        CdmError::at(self.line(), "report_form", message)
    }

    fn refuse_element(&mut self, name: &str, message: impl std::fmt::Display) -> CdmError {
        CdmError::of(self.line(), name, "report_form", message)
    }
}
