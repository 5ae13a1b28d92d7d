//! Colours of drawings, and lines of text.

/// The colours that fields take in turn, as ECMA-48 numbers them (SGR).
pub(super) const COLOURS: [&str; 6] = ["36", "33", "32", "35", "34", "31"];
pub(super) const BOLD: &str = "1";
pub(super) const DIM: &str = "2";

/// The white space before each line of a table or a row of digits, in columns.
pub(super) const INDENT: usize = 2;

/// Whether a drawing has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Text and nothing else.
    Plain,
    /// Escape sequences: a field has one colour for its digits, its name and its value.
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

/// Writes a line that ends in LF.
pub(super) fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}
