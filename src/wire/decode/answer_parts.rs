//! The parts of answers that are the same for every id of a format, written once.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::json_text::JsonText;
use crate::id::{Field, Format, Layout, Parts, Width};

/// The parts of answers about each format in JSON, and the names of domains.
///
/// Most of an answer is names of formats, fields and encodings, so these are prepared once.
/// Belongs to a [`Decoder`](crate::id::Decoder) of the same formats.
#[derive(Debug)]
pub struct AnswerParts {
    pub(super) formats: Vec<FormatParts>,
    pub(super) domains: KnownDomains,
}

/// The parts of one format.
#[derive(Debug)]
pub(super) struct FormatParts {
    /// For each encoding the first members, `"format":"…","encoding":"…"`.
    pub(super) heads: Vec<String>,
    /// For each encoding its name before the id, `"…":`, after a comma if it is not the first.
    pub(super) names: Vec<String>,
    /// The fields of each layout.
    pub(super) layouts: Vec<Vec<FieldParts>>,
}

/// The JSON around the value of a field.
#[derive(Debug)]
pub(super) struct FieldParts {
    /// `[{"name":"…","kind":"…","value":"`, or a comma for the bracket.
    pub(super) before: String,
    /// `","width":{…},"label":`.
    pub(super) after: String,
}

/// The domains that a deployment knows, by their hashes.
pub type KnownDomains = BTreeMap<u32, String>;

impl AnswerParts {
    /// The parts for the formats of a decoder, in its order.
    pub fn new(formats: &[Arc<Format>], domains: KnownDomains) -> AnswerParts {
        AnswerParts {
            formats: formats
                .iter()
                .map(|format| FormatParts::new(format))
                .collect(),
            domains,
        }
    }
}

impl FormatParts {
    fn new(format: &Format) -> FormatParts {
        let names = || format.encodings.iter().map(|encoding| encoding.name());
        let head = |name| {
            json(|json| {
                json.raw(r#""format":"#)
                    .string(&format.name)
                    .raw(r#","encoding":"#)
                    .string(name);
            })
        };
        let name = |(at, name)| {
            json(|json| {
                json.raw(if at == 0 { "" } else { "," })
                    .string(name)
                    .raw(":");
            })
        };
        FormatParts {
            heads: names().map(head).collect(),
            names: names().enumerate().map(name).collect(),
            layouts: format
                .variants
                .iter()
                .map(|variant| FieldParts::all(&variant.layout))
                .collect(),
        }
    }
}

impl FieldParts {
    fn all(layout: &Layout) -> Vec<FieldParts> {
        // All ids of a layout have the same fields.
        let any = Parts {
            layout,
            values: vec![0; layout.fields().len()],
            time: None,
        };
        any.numbers()
            .enumerate()
            .map(|(at, (field, _, width))| FieldParts::new(at, field, width))
            .collect()
    }

    fn new(at: usize, field: &Field, width: Width) -> FieldParts {
        let before = json(|json| {
            json.raw(if at == 0 { "[" } else { "," })
                .raw(r#"{"name":"#)
                .string(&field.name);
            json.raw(r#","kind":""#)
                .raw(field.kind.name())
                .raw(r#"","value":""#);
        });
        let width = match width {
            Width::Bits(bits) => format!(r#""bits":{bits}"#),
            Width::Digits { digits, radix } => format!(r#""digits":{digits},"radix":{radix}"#),
            Width::Cardinality(cardinality) => format!(r#""cardinality":"{cardinality}""#),
        };
        FieldParts {
            before,
            after: format!(r#"","width":{{{width}}},"label":"#),
        }
    }
}

fn json(write: impl FnOnce(&mut JsonText<'_>)) -> String {
    let mut out = Vec::new();
    write(&mut JsonText(&mut out));
    String::from_utf8(out).expect("texts in quotes")
}
