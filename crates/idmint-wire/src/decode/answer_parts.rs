//! Prepares the JSON that all responses about ids of one format have in common. It is then copied
//! into each response.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::json_text::JsonText;
use idmint_core::id::{Field, Format, Layout, Parts, Width};

/// The JSON that all responses about ids of a format have in common, for each format of a decoder.
/// Also contains the names of known domains.
///
/// The names of formats, fields and encodings make up most of a response, so it saves work to
/// prepare them. Use an `AnswerParts` only with a [`Decoder`](idmint_core::id::Decoder) of the same
/// formats.
#[derive(Debug)]
pub struct AnswerParts {
    pub(super) formats: Vec<FormatParts>,
    pub(super) domains: KnownDomains,
}

/// The prepared JSON for one format.
#[derive(Debug)]
pub(super) struct FormatParts {
    /// For each encoding, the first members of a JSON object: `"format":"…","encoding":"…"`.
    pub(super) heads: Vec<String>,
    /// For each encoding, the JSON key before an id in this encoding, such as `"hex":`. Every key
    /// except the first begins with a comma.
    pub(super) names: Vec<String>,
    /// For each layout of the format, the JSON around the value of each field. A layout is a list
    /// of fields.
    pub(super) layouts: Vec<Vec<FieldParts>>,
}

/// The JSON before and after the value of a field.
#[derive(Debug)]
pub(super) struct FieldParts {
    /// The JSON before the value. For the first field it is `[{"name":"…","kind":"…","value":"`,
    /// and for later fields it begins with a comma instead of the bracket.
    pub(super) before: String,
    /// The JSON after the value: `","width":{…},"label":`.
    pub(super) after: String,
}

/// The domains in the configuration of a service, such as `example.com`. Each key is the hash that
/// ids contain, and its value is the name of the domain.
pub type KnownDomains = BTreeMap<u32, String>;

impl AnswerParts {
    /// Prepares the constant parts of the JSON for each format, such as `"format":"…"`. `formats`
    /// must be in the same order as in the decoder.
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
        // The values of the fields do not matter. Only the names and widths of the fields are used,
        // which are the same for all ids of a layout.
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
