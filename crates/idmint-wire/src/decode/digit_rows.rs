//! Draws the digits of an id in groups, one for each field, with the name of the field below.

use super::match_reading::MatchReading;
use super::style::{COLOURS, INDENT, Style, line};
use idmint_core::id::{Field, Layout, Width};

/// The maximum width of a row of digits and of the names below it, in columns. A single long name
/// may exceed it.
pub(super) const COLUMNS_MAX: usize = 100;

/// The maximum number of digits in a chunk. A field that is too long for one row is split into
/// chunks.
const PIECE_LEN: usize = 64;

const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Draws the digits of an id in rows. The names of the fields are drawn below each row.
///
/// ```text
/// 1I9ZC1 0 02          digits
/// └time┘ │ ├┘          brackets, with the name inside where it fits
///        │ └─ sequence  the other names hang below, the rightmost first
///        └─ worker
/// ```
pub(super) fn draw_digits(out: &mut String, reading: &MatchReading<'_>, style: Style) {
    for (at, row) in rows(cells(reading)).iter().enumerate() {
        if at > 0 {
            line(out, "");
        }
        draw_line(
            out,
            style,
            row.iter()
                .map(|cell| (cell.column, cell.ink, cell.digits.clone())),
        );
        draw_line(
            out,
            style,
            row.iter()
                .map(|cell| (cell.column, cell.ink, cell.bracket())),
        );
        let hanging: Vec<_> = row.iter().filter(|cell| !cell.holds_name()).collect();
        // Draw the rightmost name first, so that no name crosses the line of another name.
        for last in (0..hanging.len()).rev() {
            let lines = hanging[..last].iter().map(|cell| (cell, "│".to_owned()));
            let name = (&hanging[last], format!("{TIE}{}", hanging[last].name));
            let texts = lines.chain([name]);
            draw_line(
                out,
                style,
                texts.map(|(cell, text)| (cell.column + cell.knot(), cell.ink, text)),
            );
        }
    }
}

/// Draws `texts` in one line. Each item has the column at which its text begins, a colour and the
/// text. The columns must be ascending.
fn draw_line<'t>(
    out: &mut String,
    style: Style,
    texts: impl Iterator<Item = (usize, &'t str, String)>,
) {
    let mut end = 0;
    for (column, ink, text) in texts {
        out.push_str(&" ".repeat(column - end));
        out.push_str(&style.paint(ink, &text));
        end = column + text.chars().count();
    }
    out.push('\n');
}

fn cells<'a>(reading: &'a MatchReading<'_>) -> Vec<Cell<'a>> {
    let layout = reading.parts.layout;
    let mut cells = Vec::new();
    for (field, value) in layout.fields().iter().zip(&reading.parts.values) {
        let digits = digits_of(layout, field, *value);
        let piece_len = if digits.len() > COLUMNS_MAX - INDENT {
            PIECE_LEN
        } else {
            digits.len()
        };
        let pieces = digits.chars().collect::<Vec<_>>();
        cells.extend(pieces.chunks(piece_len).map(|piece| Cell {
            digits: piece.iter().collect(),
            name: &field.name,
            ink: ink_of(layout, field),
            column: INDENT,
        }));
    }
    cells
}

/// The digits of a field, or a chunk of them if the field is too long for one row. `column` is the
/// column at which the digits begin.
struct Cell<'a> {
    digits: String,
    name: &'a str,
    ink: &'static str,
    column: usize,
}

/// The line that leads to a field's name below its bracket.
const TIE: &str = "└─ ";

impl Cell<'_> {
    fn len(&self) -> usize {
        self.digits.len()
    }

    /// Returns `true` if the name of the field fits into the bracket below its digits, as in
    /// `└time┘`.
    fn holds_name(&self) -> bool {
        self.len() >= self.name.len() + 2
    }

    /// Returns the position in a field's bracket from which a line leads down to the field's name.
    /// It is counted in characters from the left. For example, it is 0 in `├┘` and 1 in `└┬┘`.
    fn knot(&self) -> usize {
        (self.len() - 1) / 2
    }

    /// Returns the width of the field in columns, which is the width of its digits or of its name
    /// below them, whichever is wider.
    fn room(&self) -> usize {
        let hanging_len = self.knot() + TIE.chars().count() + self.name.len();
        if self.holds_name() {
            self.len()
        } else {
            self.len().max(hanging_len)
        }
    }

    fn bracket(&self) -> String {
        let (len, name) = (self.len(), self.name);
        match len {
            _ if len >= name.len() + 4 => format!("└{:─^1$}┘", format!(" {name} "), len - 2),
            _ if self.holds_name() => format!("└{name:─^0$}┘", len - 2),
            1 => "│".to_owned(),
            2 => "├┘".to_owned(),
            _ => format!(
                "└{}┬{}┘",
                "─".repeat(self.knot() - 1),
                "─".repeat(len - self.knot() - 2)
            ),
        }
    }
}

/// Distributes the cells over rows of at most [`COLUMNS_MAX`] columns.
fn rows(cells: Vec<Cell<'_>>) -> Vec<Vec<Cell<'_>>> {
    let mut rows: Vec<Vec<Cell<'_>>> = Vec::new();
    for mut cell in cells {
        let row = rows
            .last_mut()
            .and_then(|row| Some((row.last().map(|last| last.column + last.len() + 1)?, row)));
        match row.filter(|(column, _)| column + cell.room() <= COLUMNS_MAX) {
            Some((column, row)) => {
                cell.column = column;
                row.push(cell);
            }
            None => rows.push(vec![cell]),
        }
    }
    rows
}

/// Returns the colour of a field, as the code of an escape sequence. Fields with the same name have
/// the same colour.
pub(super) fn ink_of(layout: &Layout, field: &Field) -> &'static str {
    let place = layout
        .fields()
        .iter()
        .position(|other| other.name == field.name);
    COLOURS[place.expect("a field of this layout") % COLOURS.len()]
}

/// Returns the digits of a field's value. They are binary if all fields of the layout consist of
/// whole bits. If all fields consist of whole digits of one base, they are digits of that base.
///
/// In any other layout, a digit of the id may belong to several fields, so the value is written in
/// decimal.
fn digits_of(layout: &Layout, field: &Field, value: u128) -> String {
    match field.width {
        Width::Bits(bits) if is_positional(layout, 2) => pad(value, 2, bits),
        Width::Digits { digits, radix } if radix <= 36 && is_positional(layout, radix) => {
            pad(value, radix, digits)
        }
        _ => pad(value, 10, field.max.checked_ilog10().unwrap_or(0) + 1),
    }
}

/// Returns `value` as exactly `len` digits in the base `radix`. It must not need more digits.
fn pad(value: u128, radix: u32, len: u32) -> String {
    let digit = |place: u32| value / u128::from(radix).pow(place) % u128::from(radix);
    let places = (0..len)
        .rev()
        .map(|place| usize::try_from(digit(place)).expect("a digit is below 36"));
    places.map(|digit| char::from(DIGITS[digit])).collect()
}

/// Returns `true` if the width of every field is a number of digits in base `base`, and every field
/// begins at a whole digit.
///
/// Bits count only as digits of base 2. For example, a layout with fields of 4 and 8 bits is not
/// positional in base 16. A layout with a field of [`Width::Cardinality`] is not positional in any
/// base.
fn is_positional(layout: &Layout, base: u32) -> bool {
    layout.fields().iter().all(|field| {
        let is_in_base = match field.width {
            Width::Bits(_) => base == 2,
            Width::Digits { radix, .. } => radix == base,
            Width::Cardinality(_) => false,
        };
        is_in_base && u128::from(base).pow(field.stride.ilog(u128::from(base))) == field.stride
    })
}
