//! The colours and the indentation for drawing a decoded id as text.

/// The colours of fields, as ANSI escape codes (SGR of ECMA-48), for example 36 for cyan. They are
/// used in turn.
pub(super) const COLOURS: [&str; 6] = ["36", "33", "32", "35", "34", "31"];
pub(super) const BOLD: &str = "1";
pub(super) const DIM: &str = "2";

/// The indentation of tables and rows of digits, in columns.
pub(super) const INDENT: usize = 2;

/// The style in which a decoded id is drawn: with or without colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Plain text without colours.
    Plain,
    /// Text with colours, written as terminal escape sequences. The digits, the name and the value
    /// of a field have the same colour.
    Colour,
}

impl Style {
    pub(super) fn paint(self, ink: &str, text: &str) -> String {
        match self {
            Style::Colour if !text.is_empty() => format!("\x1b[{ink}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }
}

/// Writes a line and its line feed.
pub(super) fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// Writes an empty line, and then a line with this text.
pub(super) fn paragraph(out: &mut String, text: &str) {
    out.push('\n');
    line(out, text);
}
