//! Draws `chart.svg`, which shows ids per second on a logarithmic scale. It has one bar for each
//! way to get ids.

use std::fmt::Write;

use super::number::{middle, number};
use crate::scenario::{Scenario, find};

/// The bars of the chart. Each has the key of a scenario, a label, and `true` if it belongs to
/// idmint.
const BARS: [(&str, &str, bool); 8] = [
    ("nextval", "PostgreSQL, nextval", false),
    ("incr", "Redis, INCR", false),
    ("one", "idmint, one id", true),
    ("one-pipelined", "idmint, one id, pipelined", true),
    ("incr-pipelined", "Redis, INCR, pipelined", false),
    ("json-1000", "idmint, 1 000 ids as JSON", true),
    ("json-10000", "idmint, 10 000 ids as JSON", true),
    ("packed-10000", "idmint, 10 000 ids as bytes", true),
];

const WIDTH: f64 = 760.0;
const LEFT: f64 = 210.0;
const RIGHT: f64 = 100.0;
const TOP: f64 = 56.0;
const BAR: f64 = 22.0;
const STEP: f64 = 32.0;

/// The colours of the chart, for a light page and for a dark page.
const STYLE: &str = "
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-size: 15px; font-weight: 600 }
  .unit { fill: #57606a }
  .grid { stroke: #d0d7de }
  .other { fill: #8c959f }
  .ours { fill: #0969da }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .unit { fill: #9198a1 }
    .grid { stroke: #3d444d }
    .other { fill: #6e7681 }
    .ours { fill: #4493f8 }
  }
";

pub(super) fn render(scenarios: &[Scenario]) -> String {
    let bars = BARS.map(|(key, name, is_ours)| {
        (
            name,
            is_ours,
            middle(&find(scenarios, key).figures(|round| round.ids_per_second)),
        )
    });
    let mut bars: Vec<_> = bars.into_iter().filter(|(.., rate)| *rate >= 1.0).collect();
    bars.sort_by(|(.., a), (.., b)| a.total_cmp(b));
    let rates = bars.iter().map(|(.., rate)| rate.log10());
    let (low, high) = rates.fold((f64::MAX, f64::MIN), |(low, high), rate| {
        (low.min(rate), high.max(rate))
    });
    // Start the scale one power of ten below the smallest rate, so that the smallest bar is
    // visible.
    let (low, high) = ((low.floor() - 1.0).max(0.0), high.ceil());
    let x = |power: f64| LEFT + (power - low) / (high - low) * (WIDTH - LEFT - RIGHT);
    let bottom = TOP + STEP * bars.len() as f64;
    let height = bottom + 34.0;
    let mut svg = String::new();
    let mut add =
        |line: std::fmt::Arguments<'_>| writeln!(svg, "{line}").expect("a String takes everything");
    add(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"title\">"
    ));
    add(format_args!(
        "<title id=\"title\">Ids a second from one server on one CPU, logarithmic scale</title>"
    ));
    add(format_args!("<style>{STYLE}</style>"));
    add(format_args!(
        "<text class=\"title\" x=\"12\" y=\"24\">Ids a second from one server on one CPU</text>"
    ));
    add(format_args!(
        "<text class=\"unit\" x=\"12\" y=\"43\">16 connections, logarithmic scale</text>"
    ));
    let mut power = low;
    while power <= high {
        let at = x(power);
        add(format_args!(
            "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>"
        ));
        let (scale, unit) = match power {
            power if power >= 9.0 => (1e9, " G"),
            power if power >= 6.0 => (1e6, " M"),
            power if power >= 3.0 => (1e3, " k"),
            _ => (1.0, ""),
        };
        let label = format!("{:.0}{unit}", 10_f64.powf(power) / scale);
        add(format_args!(
            "<text class=\"unit\" x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
            bottom + 20.0
        ));
        power += 1.0;
    }
    for (at, (name, is_ours, rate)) in bars.iter().enumerate() {
        let (y, end) = (TOP + STEP * at as f64 + (STEP - BAR) / 2.0, x(rate.log10()));
        let (class, text_y) = (if *is_ours { "ours" } else { "other" }, y + BAR * 0.7);
        add(format_args!(
            "<text x=\"{}\" y=\"{text_y:.1}\" text-anchor=\"end\">{name}</text>",
            LEFT - 8.0
        ));
        add(format_args!(
            "<rect class=\"{class}\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"2\"/>",
            end - LEFT
        ));
        add(format_args!(
            "<text x=\"{:.1}\" y=\"{text_y:.1}\">{}</text>",
            end + 6.0,
            number(*rate)
        ));
    }
    add(format_args!("</svg>"));
    svg
}
