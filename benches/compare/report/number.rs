//! Numbers formatted for people.

use crate::harness::comparison::median;

/// Formats a number for people. Only its significant digits are shown, in groups of three.
pub(super) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let grouped: Vec<&str> = whole
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| str::from_utf8(group).expect("digits"))
        .collect();
    grouped.join(" ") + rest
}

/// Returns the median.
pub(super) fn middle(figures: &[f64]) -> f64 {
    if figures.is_empty() {
        f64::NAN
    } else {
        median(&mut figures.to_vec())
    }
}

/// Formats the range between the first and the last decile of the figures.
pub(super) fn spread(figures: &[f64]) -> String {
    let mut figures = figures.to_vec();
    figures.sort_by(f64::total_cmp);
    match figures[..] {
        [] => "–".to_owned(),
        [one] => number(one),
        _ => {
            let tenth = figures.len() / 10;
            format!(
                "{} .. {}",
                number(figures[tenth]),
                number(figures[figures.len() - 1 - tenth])
            )
        }
    }
}
