//! A decoded id drawn for people: its digits field by field, what each field says, and all its spellings.

use super::decode::{DecodeAnswer, MatchReading};
use crate::id::{Field, FieldKind, Layout, Width};

/// Rows of digits, and the names below them, end here unless a single name is longer.
const COLUMNS_MAX: usize = 100;

const INDENT: usize = 2;

/// Digits in a row of a field that is too long for one row.
const PIECE_LEN: usize = 64;

const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// The colours that fields take in turn, as ECMA-48 numbers them (SGR).
const COLOURS: [&str; 6] = ["36", "33", "32", "35", "34", "31"];
const BOLD: &str = "1";
const DIM: &str = "2";

/// Whether a drawing has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Text and nothing else.
    Plain,
    /// Escape sequences: a field has one colour for its digits, its name and its value.
    Colour,
}

impl Style {
    fn paint(self, ink: &str, text: &str) -> String {
        match self {
            Style::Colour if !text.is_empty() => format!("\x1b[{ink}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }
}

/// The best reading in full and every other in one line; for a text of no format, why not.
///
/// Shape: lines that end in LF. Rows of digits have at most 100 columns; tables are as wide as what stands in them.
///
/// ```
/// use idmint::id::{Decoder, FormatDefinition, PRESETS, DecodeFilter};
/// use idmint::time::UnixNanos;
/// use idmint::wire::{AnswerParts, DecodeAnswer, KnownDomains, Style, ruler};
///
/// let payment = PRESETS.iter().find(|preset| preset.name == "payment").expect("a built-in format");
/// let format = FormatDefinition::from_toml(payment.name, payment.toml)?.compile(payment.name)?;
/// let decoder = Decoder::new(vec![format.into()]);
/// let parts = AnswerParts::new(decoder.formats(), KnownDomains::new());
/// let decoder = decoder.at(UnixNanos::from_seconds(1_800_000_000));
/// let answer = DecodeAnswer::new("1I9ZC1002", &decoder, DecodeFilter::default(), &parts);
/// let drawing = ruler(&answer, Style::Plain);
/// assert!(drawing.contains("\n  1I9ZC1 0 02\n  └time┘ │ ├┘\n         │ └─ sequence\n         └─ worker\n"));
/// # Ok::<(), idmint::id::FormatError>(())
/// ```
pub fn ruler(answer: &DecodeAnswer<'_>, style: Style) -> String {
    let mut out = String::new();
    let mut readings = answer.readings();
    let Some(reading) = readings.next() else {
        no_match(&mut out, answer, style);
        return out;
    };
    let best = Drawing { reading, style };
    line(&mut out, &style.paint(BOLD, answer.id));
    best.head(&mut out, answer.decoded.is_ambiguous());
    line(&mut out, "");
    best.digits(&mut out);
    line(&mut out, "");
    best.fields(&mut out);
    line(&mut out, "");
    best.spellings(&mut out);
    let others: Vec<_> = readings.map(|reading| (None, short(&reading))).collect();
    if !others.is_empty() {
        line(&mut out, "");
        line(&mut out, "or");
        table(&mut out, style, others);
    }
    out
}

fn no_match(out: &mut String, answer: &DecodeAnswer<'_>, style: Style) {
    line(out, &style.paint(BOLD, &harmless(answer.id)));
    line(out, "an id of no format");
    line(out, "");
    let reasons = answer.rejected().map(|rejected| (None, [rejected.format.to_owned(), rejected.reason.to_owned()]));
    table(out, style, reasons.collect());
    if !answer.did_you_mean.is_empty() {
        line(out, "");
        line(out, "did you mean");
        table(out, style, answer.did_you_mean.iter().map(|text| (None, [text.clone()])).collect());
    }
}

/// Anything may stand in a text of no format, also what would move the cursor of a terminal.
fn harmless(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '"' | '\'' => out.push(letter),
            _ => out.extend(letter.escape_debug()),
        }
    }
    out
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// Texts below each other in columns. An ink colours the first two of its row.
fn table<const COLUMNS: usize>(out: &mut String, style: Style, rows: Vec<(Option<&str>, [String; COLUMNS])>) {
    let len = |text: &String| text.chars().count();
    let lens: [usize; COLUMNS] =
        std::array::from_fn(|column| rows.iter().map(|(_, texts)| len(&texts[column])).max().unwrap_or_default());
    for (ink, texts) in &rows {
        let mut gap = INDENT;
        for (column, text) in texts.iter().enumerate() {
            if !text.is_empty() {
                out.push_str(&" ".repeat(gap));
                out.push_str(&ink.filter(|_| column < 2).map_or_else(|| text.clone(), |ink| style.paint(ink, text)));
                gap = 0;
            }
            gap += lens[column] - len(text) + 2;
        }
        out.push('\n');
    }
}

/// Format and spelling, instant, evidence, doubt.
fn short(reading: &MatchReading<'_>) -> [String; 4] {
    [
        format!("{} ({})", reading.found.format().name, reading.found.encoding().name()),
        instant(reading).unwrap_or_default(),
        format!("{:.1} bits of evidence", reading.evidence_bits()),
        if reading.found.is_plausible() { String::new() } else { "not plausible".to_owned() },
    ]
}

fn instant(reading: &MatchReading<'_>) -> Option<String> {
    let far = || reading.unix_seconds().map(|seconds| format!("{seconds} s since 1970"));
    reading.time().as_deref().map(str::to_owned).or_else(far)
}

/// One reading in full.
struct Drawing<'a> {
    reading: MatchReading<'a>,
    style: Style,
}

impl Drawing<'_> {
    fn head(&self, out: &mut String, is_ambiguous: bool) {
        let [name, instant, evidence, doubt] = short(&self.reading);
        let ambiguous = if is_ambiguous { "ambiguous" } else { "" };
        let rest = [instant.as_str(), &evidence, &doubt, ambiguous].into_iter().filter(|part| !part.is_empty());
        line(out, &rest.fold(self.style.paint(BOLD, &name), |head, part| head + "  " + part));
    }

    /// Rows of digits, each with the names of its fields below.
    fn digits(&self, out: &mut String) {
        for (at, row) in rows(self.cells()).iter().enumerate() {
            if at > 0 {
                line(out, "");
            }
            self.place(out, row.iter().map(|cell| (cell.column, cell.ink, cell.digits.clone())));
            self.place(out, row.iter().map(|cell| (cell.column, cell.ink, cell.bracket())));
            let hanging: Vec<_> = row.iter().filter(|cell| !cell.holds_name()).collect();
            // The rightmost name comes first, so that no name crosses the line down to another.
            for last in (0..hanging.len()).rev() {
                let lines = hanging[..last].iter().map(|cell| (cell, "│".to_owned()));
                let name = (&hanging[last], format!("{TIE}{}", hanging[last].name));
                let texts = lines.chain([name]);
                self.place(out, texts.map(|(cell, text)| (cell.column + cell.knot(), cell.ink, text)));
            }
        }
    }

    /// One line with these texts at their columns, which rise.
    fn place<'t>(&self, out: &mut String, texts: impl Iterator<Item = (usize, &'t str, String)>) {
        let mut end = 0;
        for (column, ink, text) in texts {
            out.push_str(&" ".repeat(column - end));
            out.push_str(&self.style.paint(ink, &text));
            end = column + text.chars().count();
        }
        out.push('\n');
    }

    fn cells(&self) -> Vec<Cell<'_>> {
        let layout = self.reading.parts.layout;
        let mut cells = Vec::new();
        for (field, value) in layout.fields().iter().zip(&self.reading.parts.values) {
            let digits = digits_of(layout, field, *value);
            let piece_len = if digits.len() > COLUMNS_MAX - INDENT { PIECE_LEN } else { digits.len() };
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

    /// Name, value, width and meaning of each field; those of one name as the number that they carry together.
    fn fields(&self, out: &mut String) {
        let rows = self.reading.fields().map(|read| {
            let field = read.field;
            let time = if field.kind == FieldKind::Time { self.time_sum() } else { None };
            let kind = || if field.name == field.kind.name() { String::new() } else { field.kind.name().to_owned() };
            let meaning = read.label.map(str::to_owned).or(time).unwrap_or_else(kind);
            let texts = [field.name.clone(), read.value.to_string(), width(read.width), meaning];
            (Some(ink_of(self.reading.parts.layout, field)), texts)
        });
        table(out, self.style, rows.collect());
    }

    /// How the instant comes about.
    fn time_sum(&self) -> Option<String> {
        let format = self.reading.found.format();
        let ticks = self.reading.parts.layout.sum_of(FieldKind::Time, &self.reading.parts.values)?;
        Some(format!("{} = {} + {ticks} × {}", instant(&self.reading)?, format.epoch.to_text(0)?, format.tick?))
    }

    /// Every spelling, the canonical one first.
    fn spellings(&self, out: &mut String) {
        let rows = self.reading.found.format().encodings.iter().enumerate().map(|(at, encoding)| {
            let text = encoding.to_text(self.reading.found.id());
            let marks = match (at == 0, encoding.name() == self.reading.found.encoding().name()) {
                (true, true) => "canonical, as given",
                (true, false) => "canonical",
                (false, true) => "as given",
                (false, false) => "",
            };
            (None, [encoding.name().to_owned(), text, self.style.paint(DIM, marks)])
        });
        table(out, self.style, rows.collect());
    }
}

/// The digits of a field, or a piece of them, at their place in a row.
struct Cell<'a> {
    digits: String,
    name: &'a str,
    ink: &'static str,
    column: usize,
}

/// What stands before a name that hangs below its bracket.
const TIE: &str = "└─ ";

impl Cell<'_> {
    fn len(&self) -> usize {
        self.digits.len()
    }

    /// Whether the name fits between the corners of the bracket.
    fn holds_name(&self) -> bool {
        self.len() >= self.name.len() + 2
    }

    /// Where a name that hangs is tied to the bracket, from its left corner.
    fn knot(&self) -> usize {
        (self.len() - 1) / 2
    }

    /// How many columns digits and name need.
    fn room(&self) -> usize {
        let hanging_len = self.knot() + TIE.chars().count() + self.name.len();
        if self.holds_name() { self.len() } else { self.len().max(hanging_len) }
    }

    fn bracket(&self) -> String {
        let (len, name) = (self.len(), self.name);
        match len {
            _ if len >= name.len() + 4 => format!("└{:─^1$}┘", format!(" {name} "), len - 2),
            _ if self.holds_name() => format!("└{name:─^0$}┘", len - 2),
            1 => "│".to_owned(),
            2 => "├┘".to_owned(),
            _ => format!("└{}┬{}┘", "─".repeat(self.knot() - 1), "─".repeat(len - self.knot() - 2)),
        }
    }
}

/// The cells in as many rows as they need.
fn rows(cells: Vec<Cell<'_>>) -> Vec<Vec<Cell<'_>>> {
    let mut rows: Vec<Vec<Cell<'_>>> = Vec::new();
    for mut cell in cells {
        let row = rows.last_mut().and_then(|row| Some((row.last().map(|last| last.column + last.len() + 1)?, row)));
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

/// Fields of one name share their colour.
fn ink_of(layout: &Layout, field: &Field) -> &'static str {
    let place = layout.fields().iter().position(|other| other.name == field.name);
    COLOURS[place.expect("a field of this layout") % COLOURS.len()]
}

/// The digits of the id that are this field: bits of a layout in bits, digits of a layout in digits of one base. In a
/// mixed radix no digit belongs to one field alone; there it is the value in decimal.
fn digits_of(layout: &Layout, field: &Field, value: u128) -> String {
    match field.width {
        Width::Bits(bits) if is_positional(layout, 2) => padded(value, 2, bits),
        Width::Digits { digits, radix } if radix <= 36 && is_positional(layout, radix) => padded(value, radix, digits),
        _ => padded(value, 10, field.max.checked_ilog10().unwrap_or(0) + 1),
    }
}

/// The last `len` digits of a number; there are no more.
fn padded(value: u128, radix: u32, len: u32) -> String {
    let digit = |place: u32| value / u128::from(radix).pow(place) % u128::from(radix);
    let places = (0..len).rev().map(|place| usize::try_from(digit(place)).expect("a digit is below 36"));
    places.map(|digit| char::from(DIGITS[digit])).collect()
}

/// Whether every field is whole digits of that base.
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

fn width(width: Width) -> String {
    let (count, unit) = match width {
        Width::Bits(bits) => (bits.to_string(), "bit"),
        Width::Digits { digits, .. } => (digits.to_string(), "digit"),
        Width::Cardinality(cardinality) => (cardinality.to_string(), "value"),
    };
    let plural = if count == "1" { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::id::{DecodeFilter, Decoder, Format, FormatDefinition, preset};
    use crate::time::UnixNanos;
    use crate::wire::answer_parts::AnswerParts;
    use crate::wire::decode::KnownDomains;

    fn drawn(format: Format, text: &str, style: Style) -> String {
        let decoder = Decoder::new(vec![Arc::new(format)]);
        let parts = AnswerParts::new(decoder.formats(), KnownDomains::new());
        let decoder = decoder.at(UnixNanos::from_seconds(1_800_000_000));
        let answer = DecodeAnswer::new(text, &decoder, DecodeFilter::default(), &parts);
        ruler(&answer, style)
    }

    fn without_escapes(text: &str) -> String {
        let mut parts = text.split("\x1b[");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.filter_map(|part| part.split_once('m')).fold(first, |text, (_, rest)| text + rest)
    }

    #[test]
    fn colours_change_nothing_but_the_colour() {
        for (format, text) in
            [("payment", "1I9ZC1002"), ("uuid7", "018f2b3c-4d5e-7abc-9def-0123456789ab"), ("siq", "?")]
        {
            let coloured = drawn(preset(format), text, Style::Colour);
            assert_eq!(without_escapes(&coloured), drawn(preset(format), text, Style::Plain));
            assert!(coloured.contains("\x1b["), "{coloured}");
        }
    }

    #[test]
    fn a_field_has_one_colour_for_digits_name_and_value() {
        let coloured = drawn(preset("payment"), "1I9ZC1002", Style::Colour);
        for text in ["1I9ZC1", "└time┘", "time", "91164961"] {
            assert!(coloured.contains(&format!("\x1b[36m{text}\x1b[0m")), "{text}: {coloured}");
        }
        for text in ["02", "├┘", "└─ sequence", "sequence", "2"] {
            assert!(coloured.contains(&format!("\x1b[32m{text}\x1b[0m")), "{text}: {coloured}");
        }
    }

    #[test]
    fn a_text_of_no_format_cannot_move_the_cursor() {
        let drawing = drawn(preset("payment"), "\x1b[2J", Style::Plain);
        assert!(drawing.starts_with("\\u{1b}[2J\nan id of no format\n\n  payment  "), "{drawing}");
    }

    #[test]
    fn a_mixed_radix_is_drawn_as_the_values_of_its_fields() {
        let drawing = drawn(preset("payment-wide"), "1I9ZD9001", Style::Plain);
        let expected =
            "\n  0091165005 00 0001\n  └─ time ─┘ ├┘ └┬─┘\n             │   └─ sequence\n             └─ worker\n";
        assert!(drawing.contains(expected), "{drawing}");
    }

    #[test]
    fn rows_end_at_100_columns_and_long_fields_are_cut() {
        let bits = |name: &str, bits| format!("{{ name = '{name}', kind = 'random', bits = {bits} }}");
        for fields in [
            vec![bits("all", 127)],
            vec![bits("first", 96), bits("a", 1), bits("b", 1), bits("last", 29)],
            (1..16).map(|at| bits(&format!("a_name_that_hangs_{at}"), 8)).collect(),
        ] {
            let toml = format!(
                "summary = ''\nrule = 'random'\nfields = [{}]\nencodings = ['decimal']\nreveals = ''",
                fields.join(", ")
            );
            let definition = FormatDefinition::from_toml("x", &toml).expect("a definition");
            let drawing = drawn(definition.compile("x").expect("sound"), "12345678901234567890", Style::Plain);
            let rows: Vec<_> = drawing.lines().skip(3).take_while(|line| !line.contains("bits")).collect();
            assert!(rows.iter().all(|row| row.chars().count() <= COLUMNS_MAX), "{drawing}");
            let digits: String = rows.iter().flat_map(|row| row.chars()).filter(|c| matches!(c, '0' | '1')).collect();
            assert!(
                digits.ends_with(&format!("{:b}", 12_345_678_901_234_567_890_u128)) || fields.len() == 15,
                "{drawing}"
            );
        }
    }
}
