//! Draws a decoded id for people: the digits and the meaning of each field, and the id in all
//! encodings.

use super::decode_answer::DecodeAnswer;
use super::digit_rows::{draw_digits, ink_of};
use super::match_reading::MatchReading;
use super::style::{BOLD, DIM, INDENT, Style, line, paragraph};
use idmint_core::id::{FieldKind, Width};

/// Draws the best reading in detail, and every other reading in one line. If the text has no
/// reading, draws the reasons why the formats reject it.
///
/// Each line ends with a line feed. Rows of digits have at most 100 columns, but tables are as wide
/// as their content.
///
/// ```
/// use idmint_core::id::{Decoder, FormatDefinition, PRESETS, DecodeFilter};
/// use idmint_core::time::UnixNanos;
/// use idmint_wire::{AnswerParts, DecodeAnswer, KnownDomains, Style, ruler};
///
/// let payment = PRESETS.iter().find(|preset| preset.name == "payment").expect("a built-in format");
/// let format = FormatDefinition::from_toml(payment.name, payment.toml)?.compile(payment.name)?;
/// let decoder = Decoder::new(vec![format.into()]);
/// let parts = AnswerParts::new(decoder.formats(), KnownDomains::new());
/// let decoder = decoder.at(UnixNanos::from_seconds(1_800_000_000));
/// let answer = DecodeAnswer::new("1I9ZC1002", &decoder, DecodeFilter::default(), &parts);
/// let drawing = ruler(&answer, Style::Plain);
/// assert!(drawing.contains("\n  1I9ZC1 0 02\n  └time┘ │ ├┘\n         │ └─ sequence\n         └─ worker\n"));
/// # Ok::<(), idmint_core::id::FormatError>(())
/// ```
pub fn ruler(answer: &DecodeAnswer<'_>, style: Style) -> String {
    let mut out = String::new();
    let mut readings = answer.readings();
    let Some(reading) = readings.next() else {
        match answer.numbers.is_empty() {
            true => draw_no_match(&mut out, answer, style),
            false => line(&mut out, &style.paint(BOLD, &escape_controls(answer.id))),
        }
        draw_numbers(&mut out, answer);
        return out;
    };
    line(&mut out, &style.paint(BOLD, &escape_controls(answer.id)));
    let mark = match answer.read_as() {
        None => "as given",
        Some(text) => {
            line(
                &mut out,
                &format!("no format reads the text as given; this is a reading of {text}"),
            );
            "as read"
        }
    };
    Drawing {
        reading,
        mark,
        style,
    }
    .draw(&mut out, answer.decoded.is_ambiguous());
    draw_notes(&mut out, answer);
    let others: Vec<_> = readings.map(|reading| (None, summary(&reading))).collect();
    if !others.is_empty() {
        paragraph(&mut out, "or");
        draw_table(&mut out, style, others);
    }
    draw_numbers(&mut out, answer);
    draw_near(&mut out, answer, style);
    out
}

fn draw_notes(out: &mut String, answer: &DecodeAnswer<'_>) {
    for note in &answer.notes {
        paragraph(out, &format!("note: {}", note.detail));
    }
}

/// Draws the readings of the text as a number of a series, such as an invoice number.
fn draw_numbers(out: &mut String, answer: &DecodeAnswer<'_>) {
    for reading in &answer.numbers {
        let (number, rule) = (reading.number, &reading.rule);
        let mut text = format!("number {number}");
        if let Some(series) = &reading.series {
            text += &format!(" of the series {series}");
        }
        text += &format!(", as numbers.{rule} writes it");
        if let Some(check) = &reading.check {
            text += &format!("; its check {check} is right");
        }
        line(out, &text);
    }
}

fn draw_no_match(out: &mut String, answer: &DecodeAnswer<'_>, style: Style) {
    line(out, &style.paint(BOLD, &escape_controls(answer.id)));
    line(out, "no format reads this text");
    draw_notes(out, answer);
    let unlikely: Vec<_> = answer
        .unlikely()
        .map(|reading| (None, summary(&reading)))
        .collect();
    if !unlikely.is_empty() {
        paragraph(
            out,
            "unlikely readings, because the text is more likely a word or a number",
        );
        draw_table(out, style, unlikely);
    }
    line(out, "");
    let reasons = answer.rejected().map(|rejected| {
        (
            None,
            [rejected.format.to_owned(), rejected.reason.to_owned()],
        )
    });
    draw_table(out, style, reasons.collect());
    if let Some((text, reading)) = answer.nearest() {
        paragraph(out, "a similar text that is an id");
        line(out, &style.paint(BOLD, text));
        Drawing {
            reading,
            mark: "",
            style,
        }
        .draw(out, false);
    }
    draw_near(out, answer, style);
}

/// Draws the ids that the caller may have meant. A text with a plausible reading has none.
fn draw_near(out: &mut String, answer: &DecodeAnswer<'_>, style: Style) {
    // If the text has no reading, `draw_no_match` has already drawn the first suggested id in
    // detail. Skip that id here.
    let drawn = usize::from(answer.readings().next().is_none());
    let rows: Vec<_> = answer
        .did_you_mean()
        .skip(drawn)
        .map(|text| (None, [text.to_owned()]))
        .collect();
    if !rows.is_empty() {
        paragraph(out, if drawn == 0 { "did you mean" } else { "or" });
        draw_table(out, style, rows);
    }
    if let Some(shape) = answer.shape() {
        paragraph(out, &shape);
    }
}

/// Escapes the control characters in a text that is not an id. Such a text may contain anything,
/// even escape sequences for the terminal.
fn escape_controls(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '"' | '\'' => out.push(letter),
            _ => out.extend(letter.escape_debug()),
        }
    }
    out
}

/// Draws rows of texts, aligned in columns. The colour of a row, if it has one, applies to its
/// first two texts.
fn draw_table<const COLUMNS: usize>(
    out: &mut String,
    style: Style,
    rows: Vec<(Option<&str>, [String; COLUMNS])>,
) {
    let len = |text: &String| text.chars().count();
    let lens: [usize; COLUMNS] = std::array::from_fn(|column| {
        rows.iter()
            .map(|(_, texts)| len(&texts[column]))
            .max()
            .unwrap_or_default()
    });
    for (ink, texts) in &rows {
        let mut gap = INDENT;
        for (column, text) in texts.iter().enumerate() {
            if !text.is_empty() {
                out.push_str(&" ".repeat(gap));
                out.push_str(
                    &ink.filter(|_| column < 2)
                        .map_or_else(|| text.clone(), |ink| style.paint(ink, text)),
                );
                gap = 0;
            }
            gap += lens[column] - len(text) + 2;
        }
        out.push('\n');
    }
}

/// Returns the texts of a table row for one reading: format and encoding, time, evidence, and a
/// warning if the reading is doubtful.
fn summary(reading: &MatchReading<'_>) -> [String; 4] {
    let (format, encoding) = (reading.found.format(), reading.found.encoding());
    let (evidence, bits) = (reading.evidence(), reading.evidence_bits());
    let doubt = match reading.found.is_plausible() {
        true => "",
        false => "not plausible",
    };
    [
        format!("{} ({})", format.name, encoding.name()),
        instant(reading).unwrap_or_default(),
        format!("{evidence} evidence, {bits:.1} bits"),
        doubt.to_owned(),
    ]
}

fn instant(reading: &MatchReading<'_>) -> Option<String> {
    let far = || {
        reading
            .unix_seconds()
            .map(|seconds| format!("{seconds} s since 1970"))
    };
    reading.time().as_deref().map(str::to_owned).or_else(far)
}

/// Draws one reading in detail.
struct Drawing<'a> {
    reading: MatchReading<'a>,
    /// A remark next to the encoding in which the text was read, such as `as given`. Nothing is
    /// drawn if it is empty.
    mark: &'static str,
    style: Style,
}

impl Drawing<'_> {
    fn draw(&self, out: &mut String, is_ambiguous: bool) {
        self.draw_head(out, is_ambiguous);
        line(out, "");
        draw_digits(out, &self.reading, self.style);
        line(out, "");
        self.draw_fields(out);
        line(out, "");
        self.draw_encodings(out);
    }

    fn draw_head(&self, out: &mut String, is_ambiguous: bool) {
        let [name, instant, evidence, doubt] = summary(&self.reading);
        let ambiguous = if is_ambiguous { "ambiguous" } else { "" };
        let beginning = match self.reading.beginning() {
            None => String::new(),
            Some((name, "")) => format!("no {name}"),
            Some((name, value)) => format!("{name} {value}"),
        };
        let mut head = self.style.paint(BOLD, &name);
        for part in [beginning.as_str(), &instant, &evidence, &doubt, ambiguous] {
            if !part.is_empty() {
                head += "  ";
                head += part;
            }
        }
        line(out, &head);
    }

    /// Draws a table with the name, value, width and meaning of each field. Fields with the same
    /// name are parts of one number, so they have a row in common.
    fn draw_fields(&self, out: &mut String) {
        let rows = self.reading.fields().map(|read| {
            let field = read.field;
            let (name, kind) = (field.name.clone(), field.kind.name());
            let label = read.label.map(|label| label.as_str().to_owned());
            let meaning = match field.kind {
                FieldKind::Time => label.or_else(|| self.time_sum()),
                _ => label,
            };
            let kind = if kind == name { "" } else { kind };
            let meaning = meaning.unwrap_or_else(|| kind.to_owned());
            let (value, width) = (read.value.to_string(), width_text(read.width));
            let ink = ink_of(self.reading.parts.layout, field);
            (Some(ink), [name, value, width, meaning])
        });
        draw_table(out, self.style, rows.collect());
    }

    /// Returns a line that computes the time of the id, in the form `time = epoch + ticks × length
    /// of a tick`.
    fn time_sum(&self) -> Option<String> {
        let format = self.reading.found.format();
        let parts = &self.reading.parts;
        let ticks = parts.layout.sum_of(FieldKind::Time, &parts.values)?;
        Some(format!(
            "{} = {} + {ticks} × {}",
            instant(&self.reading)?,
            format.epoch.to_exact_text()?,
            format.tick?
        ))
    }

    /// Draws the id in every encoding, beginning with the canonical one.
    fn draw_encodings(&self, out: &mut String) {
        let found = &self.reading.found;
        let encodings = found.format().encodings.iter().enumerate();
        let rows = encodings.map(|(at, encoding)| {
            let (text, canonical) = match at {
                0 => (self.reading.canonical(), "canonical"),
                _ => (encoding.to_text(found.id()), ""),
            };
            let is_read = encoding.name() == found.encoding().name();
            let marks = match (canonical, self.mark) {
                (canonical, read) if read.is_empty() || !is_read => canonical.to_owned(),
                ("", read) => read.to_owned(),
                (canonical, read) => format!("{canonical}, {read}"),
            };
            let name = encoding.name().to_owned();
            (None, [name, text, self.style.paint(DIM, &marks)])
        });
        draw_table(out, self.style, rows.collect());
    }
}

fn width_text(width: Width) -> String {
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
    use crate::decode::digit_rows::COLUMNS_MAX;
    use crate::{AnswerParts, KnownDomains};
    use idmint_core::id::{DecodeFilter, Decoder, Format, FormatDefinition, preset};
    use idmint_core::time::UnixNanos;

    fn draw(format: Format, text: &str, style: Style) -> String {
        let name = format.name.clone();
        let decoder = Decoder::new(vec![Arc::new(format)]);
        let parts = AnswerParts::new(decoder.formats(), KnownDomains::new());
        let decoder = decoder.at(UnixNanos::from_seconds(1_800_000_000));
        let filter = DecodeFilter {
            format: Some(&name),
            ..DecodeFilter::default()
        };
        ruler(&DecodeAnswer::new(text, &decoder, filter, &parts), style)
    }

    fn without_escapes(text: &str) -> String {
        let mut parts = text.split("\x1b[");
        let first = parts.next().unwrap_or_default().to_owned();
        parts
            .filter_map(|part| part.split_once('m'))
            .fold(first, |text, (_, rest)| text + rest)
    }

    #[test]
    fn colours_change_nothing_but_the_colour() {
        for (format, text) in [
            ("payment", "1I9ZC1002"),
            ("uuid7", "018f2b3c-4d5e-7abc-9def-0123456789ab"),
            ("siq", "?"),
        ] {
            let coloured = draw(preset(format), text, Style::Colour);
            assert_eq!(
                without_escapes(&coloured),
                draw(preset(format), text, Style::Plain)
            );
            assert!(coloured.contains("\x1b["), "{coloured}");
        }
    }

    #[test]
    fn a_field_has_one_colour_for_digits_name_and_value() {
        let coloured = draw(preset("payment"), "1I9ZC1002", Style::Colour);
        for text in ["1I9ZC1", "└time┘", "time", "91164961"] {
            assert!(
                coloured.contains(&format!("\x1b[36m{text}\x1b[0m")),
                "{text}: {coloured}"
            );
        }
        for text in ["02", "├┘", "└─ sequence", "sequence", "2"] {
            assert!(
                coloured.contains(&format!("\x1b[32m{text}\x1b[0m")),
                "{text}: {coloured}"
            );
        }
    }

    #[test]
    fn a_text_of_no_format_cannot_move_the_cursor() {
        let drawing = draw(preset("payment"), "\x1b[2J", Style::Plain);
        assert!(
            drawing.starts_with("\\u{1b}[2J\nno format reads this text\n\n  payment  "),
            "{drawing}"
        );
    }

    #[test]
    fn the_sum_of_the_time_shows_the_epoch_to_its_last_digit() {
        for (format, sum) in [
            (
                "twitter",
                "2022-09-24T05:18:57.594Z = 2010-11-04T01:42:54.657Z + 375161762937 × 1ms",
            ),
            (
                "instagram",
                "2017-08-03T22:55:03.189Z = 2011-08-24T21:07:01.721Z + 187580881468 × 1ms",
            ),
        ] {
            let drawing = draw(preset(format), "1573542482933710848", Style::Plain);
            assert!(drawing.contains(sum), "{drawing}");
        }
    }

    #[test]
    fn a_mixed_radix_is_drawn_as_the_values_of_its_fields() {
        let drawing = draw(preset("payment-wide"), "1I9ZD9001", Style::Plain);
        let expected = "\n  0091165005 00 0001\n  └─ time ─┘ ├┘ └┬─┘\n             │   └─ sequence\n             └─ worker\n";
        assert!(drawing.contains(expected), "{drawing}");
    }

    #[test]
    fn rows_end_at_100_columns_and_long_fields_are_cut() {
        let bits =
            |name: &str, bits| format!("{{ name = '{name}', kind = 'random', bits = {bits} }}");
        for fields in [
            vec![bits("all", 127)],
            vec![
                bits("first", 96),
                bits("a", 1),
                bits("b", 1),
                bits("last", 29),
            ],
            (1..16)
                .map(|at| bits(&format!("a_name_that_hangs_{at}"), 8))
                .collect(),
        ] {
            let toml = format!(
                "summary = ''\nrule = 'random'\nfields = [{}]\nencodings = ['decimal']\nreveals = ''",
                fields.join(", ")
            );
            let definition = FormatDefinition::from_toml("x", &toml).expect("a definition");
            let drawing = draw(
                definition.compile("x").expect("sound"),
                "12345678901234567890",
                Style::Plain,
            );
            let rows: Vec<_> = drawing
                .lines()
                .skip(3)
                .take_while(|line| !line.contains("bits"))
                .collect();
            assert!(
                rows.iter().all(|row| row.chars().count() <= COLUMNS_MAX),
                "{drawing}"
            );
            let digits: String = rows
                .iter()
                .flat_map(|row| row.chars())
                .filter(|c| matches!(c, '0' | '1'))
                .collect();
            assert!(
                digits.ends_with(&format!("{:b}", 12_345_678_901_234_567_890_u128))
                    || fields.len() == 15,
                "{drawing}"
            );
        }
    }
}
