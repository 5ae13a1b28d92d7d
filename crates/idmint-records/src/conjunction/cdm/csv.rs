//! Reads messages from CSV whose first line names the columns, such as the CSV of space-track.org's
//! class `cdm_public` and of SOCRATES. Every other line is one message.
//!
//! Cells may be quoted as in RFC 4180. The separator is a comma, a semicolon, a tab or a bar. This
//! module has its own parser, because it needs the byte offset of every cell: an id is inserted at
//! such an offset, and all other bytes of the document stay unchanged.

use std::borrow::Cow;
use std::ops::Range;

use super::draft::Draft;
use super::error::CdmError;
use super::flat::{self, FlatNames, MIXED, Part};
use super::insertion::Insertion;
use super::lines::{LineCounter, is_line_end, text_of};
use super::outcomes::{Outcomes, ReadRule};
use super::version::CdmVersion;

/// The maximum number of columns in a CSV document. It limits the use of memory, because the parsed
/// cells of a row take many times the memory of the row's text.
const COLUMNS_MAX: usize = 1_024;

/// The accepted separators of cells. If the first line of a document fits several separators, the
/// first of them in this list is used.
const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Returns `true` if the first line of a document has the form of a CSV heading: it contains a
/// separator and no `=`. In KVN, the form with lines of `KEYWORD = value`, every such line contains
/// `=`.
pub(super) fn has_heading(document: &[u8]) -> bool {
    let mut lines = document.split(|byte| is_line_end(*byte));
    let first = lines.find(|line| !line.trim_ascii().is_empty());
    first.is_some_and(|line| {
        !line.contains(&b'=') && line.iter().any(|byte| SEPARATORS.contains(byte))
    })
}

/// Reads every message of a CSV document.
pub(super) fn read<'a>(document: &[u8], rule: ReadRule<'a>) -> Result<Outcomes<'a>, CdmError> {
    let text = text_of(document)?;
    let begin = document.len() - text.len();
    let separator = separator_of(text);
    let mut lines = LineCounter::default();
    let (mut columns, mut outcomes) = (None, Outcomes::new(rule));
    for Row { at, cells, count } in rows(text, separator) {
        let line = lines.line_at(text.as_bytes(), at);
        // A quoted cell without a closing quote hides the end of its row, so no later row can be
        // read.
        let cells = cells.ok_or_else(|| {
            let what = "a quoted value in the row that begins in this line has no closing quote; add it, and double \
                        each quote inside a value";
            CdmError::at(line, "report_form", what)
        })?;
        let Some(columns) = &columns else {
            if count > COLUMNS_MAX {
                let what = format!(
                    "the first line names {count} columns, but can name {COLUMNS_MAX} at most; leave out the others"
                );
                let error = CdmError::at(line, "report_form", what);
                return Err(error.with_limit(Some(COLUMNS_MAX.to_string())));
            }
            let found = Columns::of(&cells, line)?;
            if found.index_of(Part::EventId).is_none() {
                outcomes.heading = Some(new_cell(&cells, separator, begin));
            }
            columns = Some(found);
            continue;
        };
        if outcomes.are_full() {
            outcomes.count_only();
            continue;
        }
        let outcome = columns.draft(&cells, count, line, rule).and_then(|draft| {
            let event_id = columns.index_of(Part::EventId).map(|at| &cells[at]);
            let insertion = match event_id {
                Some(cell) => cell.insertion(begin),
                None => new_cell(&cells, separator, begin),
            };
            draft.finish(insertion, None)
        });
        outcomes.add(outcome)?;
    }
    if outcomes.len() == 0 {
        let what = "the document has no message; its first line must name the columns, and each other line is a \
                    message";
        return Err(CdmError::at(1, "missing_field", what));
    }
    Ok(outcomes)
}

/// Returns the separator of the cells in a CSV text. The first line is split by each of the
/// [`SEPARATORS`] until one of its cells names an object's column, such as `SAT_1_ID`. If no
/// separator yields such a cell, returns the comma.
fn separator_of(text: &str) -> u8 {
    let names_object = |separator: &u8| {
        let heading = rows(text, *separator).next();
        let cells = heading.and_then(|heading| heading.cells);
        cells.is_some_and(|cells| FlatNames::of(cells.iter().map(Cell::value)).is_some())
    };
    let found = SEPARATORS.into_iter().find(names_object);
    found.unwrap_or(SEPARATORS[0])
}

/// Creates the insertion of a new cell at the end of a line. The new cell has quotes if another
/// cell of the line has them. Without quotes, a program that reads the CSV may parse the cell as a
/// number.
fn new_cell(cells: &[Cell<'_>], separator: u8, begin: usize) -> Insertion {
    let end = cells.last().map_or(0, |cell| cell.range.end);
    Insertion::Cell {
        at: begin + end,
        separator: Some(separator),
        is_quoted: cells.iter().any(|cell| cell.is_quoted),
        is_inside_quotes: false,
    }
}

/// The columns of a document.
struct Columns {
    kind: &'static FlatNames,
    /// The meaning of each column, such as the time of closest approach, or `None` if the column is
    /// ignored.
    parts: Vec<Option<Part>>,
}

impl Columns {
    /// Reads the names of the columns.
    fn of(heading: &[Cell<'_>], line: u64) -> Result<Columns, CdmError> {
        let names = heading.iter().map(Cell::value);
        let Some(kind) = FlatNames::of(names.clone()) else {
            let what = "no column has the catalogue numbers of objects; name these columns SAT_1_ID and SAT_2_ID, or \
                        NORAD_CAT_ID_1 and NORAD_CAT_ID_2, in capitals";
            return Err(CdmError::at(line, "missing_field", what));
        };
        if let Some(mixed) = names.clone().find(|name| kind.is_of_other_class(name)) {
            return Err(CdmError::of(line, mixed, "report_form", MIXED));
        }
        let parts: Vec<Option<Part>> = names.clone().map(|name| kind.part(name)).collect();
        for (at, (part, name)) in parts.iter().zip(names).enumerate() {
            if part.is_some() && parts[..at].contains(part) {
                let what = "the first line names this column twice; remove or rename one of them";
                return Err(CdmError::of(line, name, "duplicate_key", what));
            }
        }
        let columns = Columns { kind, parts };
        for (part, name) in kind.required() {
            if columns.index_of(part).is_none() {
                let what =
                    "the first line does not name this column; add it, with its name in capitals";
                return Err(CdmError::of(line, name, "missing_field", what));
            }
        }
        Ok(columns)
    }

    fn index_of(&self, part: Part) -> Option<usize> {
        self.parts.iter().position(|known| *known == Some(part))
    }

    /// Reads the values of a message from a row. `values` is the number of cells in the row,
    /// including the cells beyond [`COLUMNS_MAX`], which are not in `cells`.
    fn draft<'a>(
        &self,
        cells: &[Cell<'_>],
        values: usize,
        line: u64,
        rule: ReadRule<'a>,
    ) -> Result<Draft<'a>, CdmError> {
        let columns = self.parts.len();
        if values != columns {
            let noun = if values == 1 { "value" } else { "values" };
            let what = format!(
                "the row has {values} {noun}, but the first line names {columns} columns; put quotes around a value \
                 that contains the separator"
            );
            return Err(CdmError::at(line, "report_form", what));
        }
        let mut draft = Draft::new(line, CdmVersion::V1, &self.kind.names, rule);
        let read = self.parts.iter().zip(cells);
        let read = read.filter_map(|(part, cell)| Some(((*part)?, cell.value())));
        for (part, value) in read.clone() {
            if let (Part::Number(role), Some(number)) = (part, flat::number(value)) {
                draft.set_number(role, number);
            }
        }
        let is_split = self.index_of(Part::TcaFraction).is_some();
        for (part, value) in read {
            if part != Part::EventId || !value.is_empty() {
                flat::take(&mut draft, part, line, value, is_split)?;
            }
        }
        Ok(draft)
    }
}

/// A row of CSV: one line, or several lines if a quoted cell contains line ends.
struct Row<'a> {
    /// The byte offset at which the line begins.
    at: usize,
    /// The first [`COLUMNS_MAX`] cells, or `None` if a quote is not closed.
    cells: Option<Vec<Cell<'a>>>,
    /// The number of cells in the row, including the cells beyond [`COLUMNS_MAX`].
    count: usize,
}

struct Cell<'a> {
    text: Cow<'a, str>,
    /// The bytes of the cell, including quotes.
    range: Range<usize>,
    is_quoted: bool,
}

impl Cell<'_> {
    fn value(&self) -> &str {
        self.text.trim_ascii()
    }

    /// Creates the insertion of a conjunction id into this cell. The insertion is used only if the
    /// cell is empty.
    fn insertion(&self, begin: usize) -> Insertion {
        Insertion::Cell {
            at: begin + self.range.start + usize::from(self.is_quoted),
            separator: None,
            is_quoted: false,
            is_inside_quotes: self.is_quoted,
        }
    }
}

/// Splits a text into rows. Lines that are empty or have only blanks are skipped.
fn rows(text: &str, separator: u8) -> impl Iterator<Item = Row<'_>> {
    let bytes = text.as_bytes();
    let mut next = 0;
    std::iter::from_fn(move || {
        let at = row_after(bytes, next, separator)?;
        let (mut cells, mut count) = (Vec::new(), 0);
        let mut begin = at;
        loop {
            let Some(cell) = cell_at(text, begin, separator) else {
                next = bytes.len();
                let cells = None;
                return Some(Row { at, cells, count });
            };
            let end = cell.range.end;
            count += 1;
            if count <= COLUMNS_MAX {
                cells.push(cell);
            }
            if bytes.get(end) != Some(&separator) {
                next = end;
                let cells = Some(cells);
                return Some(Row { at, cells, count });
            }
            begin = end + 1;
        }
    })
}

/// Returns the byte offset of the next line that is not blank, at or after the offset `next`. A tab
/// does not count as blank if it is the separator.
fn row_after(bytes: &[u8], mut next: usize, separator: u8) -> Option<usize> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t') && *byte != separator;
    loop {
        let at = next + bytes[next..].iter().position(|byte| !is_line_end(*byte))?;
        let len = bytes[at..].iter().position(|byte| !is_blank(byte))?;
        match bytes[at + len] {
            end if is_line_end(end) => next = at + len,
            _ => return Some(at),
        }
    }
}

/// Reads the cell that begins at a byte offset. Returns `None` if the cell begins with a quote that
/// is not closed.
fn cell_at(text: &str, begin: usize, separator: u8) -> Option<Cell<'_>> {
    let ends_at = |from: usize| {
        let mut rest = text.as_bytes()[from..].iter();
        let len = rest.position(|byte| *byte == separator || is_line_end(*byte));
        len.map_or(text.len(), |len| from + len)
    };
    if !text[begin..].starts_with('"') {
        let range = begin..ends_at(begin);
        return Some(Cell {
            text: Cow::Borrowed(&text[range.clone()]),
            range,
            is_quoted: false,
        });
    }
    let mut content = Cow::Borrowed("");
    let mut from = begin + 1;
    loop {
        let quote = from + text[from..].find('"')?;
        content += &text[from..quote];
        let is_doubled = text[quote + 1..].starts_with('"');
        if !is_doubled {
            // Characters between the closing quote and the separator belong to the cell. Other
            // programs that read CSV do the same.
            let end = ends_at(quote + 1);
            content += &text[quote + 1..end];
            return Some(Cell {
                text: content,
                range: begin..end,
                is_quoted: true,
            });
        }
        content += "\"";
        from = quote + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conjunction::object_rules::ObjectRules;

    fn cells(text: &str) -> Vec<Option<Vec<String>>> {
        let texts = |cells: Vec<Cell<'_>>| {
            let texts = cells.into_iter().map(|cell| cell.text.into_owned());
            texts.collect()
        };
        rows(text, b',').map(|row| row.cells.map(texts)).collect()
    }

    #[test]
    fn cells_are_split_as_in_rfc_4180() {
        let text = "a,\"b,\"\"c\"\"\r\nd\",\r\n\r\n\"\",e\"f\n,\n\"g\"h";
        let of = |cells: &[&str]| Some(cells.iter().map(|cell| (*cell).to_owned()).collect());
        assert_eq!(
            cells(text),
            [
                of(&["a", "b,\"c\"\r\nd", ""]),
                of(&["", "e\"f"]),
                of(&["", ""]),
                of(&["gh"])
            ]
        );
        assert_eq!(cells("a,\"b\nc,d"), [None]);
        assert_eq!(cells("\n"), []);
        assert_eq!(cells(" \n\t \r\na\n  \n \t"), [of(&["a"])]);
        let tabs: Vec<_> = rows("\t\n \n", b'\t').map(|row| row.at).collect();
        assert_eq!(tabs, [0], "two empty cells");
    }

    #[test]
    fn cells_above_the_maximum_are_counted_and_not_kept() {
        let objects = ObjectRules::default();
        let rule = ReadRule {
            objects: &objects,
            note: None,
            is_partial: false,
            count_max: 9,
        };
        let document = |columns: usize, values: usize| {
            let (heading, row) = (",A".repeat(columns - 3), ",".repeat(values - 3));
            format!("TCA,SAT_1_ID,SAT_2_ID{heading}\n2024-02-01T00:00:00,1,2{row}\n")
        };
        let read = |columns, values| {
            let outcomes = read(document(columns, values).as_bytes(), rule);
            outcomes.map(|outcomes| outcomes.len())
        };
        let most = COLUMNS_MAX;
        assert_eq!((read(3, 3), read(most, most)), (Ok(1), Ok(1)));
        for (columns, values, told) in [
            (
                most + 5,
                most + 5,
                "line 1: the first line names 1029 columns",
            ),
            (most, 2 * most, "line 2: the row has 2048 values"),
        ] {
            let error = read(columns, values).expect_err(told);
            assert!(error.to_string().starts_with(told), "{error}");
        }
        let row = document(most, 9 * most);
        let row = rows(&row, b',').nth(1).expect("two rows");
        assert_eq!(row.cells.map(|cells| cells.len()), Some(most));
    }

    #[test]
    fn a_heading_has_no_equals_sign() {
        for (document, is_csv) in [
            ("\nTCA,SAT_1_ID\n", true),
            ("TCA\tA\n", true),
            ("CCSDS_CDM_VERS = 1.0\nA,B", false),
            ("COMMENT a, b = c", false),
            ("", false),
        ] {
            assert_eq!(has_heading(document.as_bytes()), is_csv, "{document}");
        }
    }
}
