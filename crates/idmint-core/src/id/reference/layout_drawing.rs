//! A drawing of a layout as boxes, for documents and terminals.

use std::fmt;

use crate::id::layout::{Field, Layout, Width};

/// Draws a layout as boxes, one for each field, most significant first. A box shows the field's
/// name, width and position.
///
/// The position is the range of bits that the field fills, where 0 is the lowest bit. If the field
/// does not fill whole bits, the position is the factor by which the field's value is multiplied.
/// The box of a constant field also shows the constant.
///
/// ```
/// use idmint_core::id::{FieldKind, Layout, LayoutDrawing, Width};
///
/// let layout = Layout::builder()
///     .field("time", FieldKind::Time, Width::Bits(41))
///     .field("sequence", FieldKind::Sequence, Width::Bits(12))
///     .build()?;
/// let drawing = "\
/// +---------+----------+
/// | time    | sequence |
/// | 41 bits | 12 bits  |
/// | 52..12  | 11..0    |
/// +---------+----------+
/// ";
/// assert_eq!(LayoutDrawing(&layout).to_string(), drawing);
/// # Ok::<(), idmint_core::id::LayoutError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct LayoutDrawing<'a>(pub &'a Layout);

impl fmt::Display for LayoutDrawing<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let boxes: Vec<[String; 3]> = self.0.fields().iter().map(lines_of).collect();
        let widths: Vec<usize> = boxes
            .iter()
            .map(|lines| lines.iter().map(String::len).max().unwrap_or(0))
            .collect();
        let edge: String = widths
            .iter()
            .map(|width| format!("+{}", "-".repeat(width + 2)))
            .collect();
        writeln!(out, "{edge}+")?;
        for line in 0..3 {
            for (lines, width) in boxes.iter().zip(&widths) {
                write!(out, "| {:<width$} ", lines[line])?;
            }
            writeln!(out, "|")?;
        }
        writeln!(out, "{edge}+")
    }
}

fn lines_of(field: &Field) -> [String; 3] {
    let constant = field
        .constant
        .map(|value| format!(" = {value}"))
        .unwrap_or_default();
    [
        field.name.clone(),
        format!("{}{constant}", field.width),
        place_of(field),
    ]
}

fn place_of(field: &Field) -> String {
    match field.width {
        Width::Bits(bits) if field.stride.is_power_of_two() => {
            let lowest = field.stride.ilog2();
            if bits == 1 {
                lowest.to_string()
            } else {
                format!("{}..{lowest}", lowest + bits - 1)
            }
        }
        _ => format!("x {}", field.stride),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::preset;

    #[test]
    fn digits_and_gaps_say_what_one_unit_adds() {
        let drawing = LayoutDrawing(&preset("payment-wide").variants[0].layout).to_string();
        let expected = "\
+---------------------+-----------+-------------+
| time                | worker    | sequence    |
| 6 digits of base 36 | 45 values | 1024 values |
| x 46656             | x 1024    | x 1         |
+---------------------+-----------+-------------+
";
        assert_eq!(drawing, expected);
    }

    #[test]
    fn a_constant_says_its_value() {
        let drawing = LayoutDrawing(&preset("siq").variants[0].layout).to_string();
        assert!(drawing.contains("| 5 bits = 0 |"), "{drawing}");
    }
}
