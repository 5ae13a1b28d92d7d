//! Fuzzes the definitions of formats.

use idmint_core::id::FormatDefinition;

/// Compiles a definition. The example id of a valid definition must be written in every encoding,
/// read again, and split into its fields.
pub(super) fn compile(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(format) = FormatDefinition::from_toml("fuzzed", text)
        .and_then(|definition| definition.compile("fuzzed"))
    else {
        return;
    };
    let example = format.example();
    format.split(example).unwrap();
    for encoding in &format.encodings {
        assert_eq!(
            encoding.read(&encoding.to_text(example)),
            Ok(example),
            "{}",
            encoding.name()
        );
    }
    assert!(format.least() <= format.greatest());
    assert!(!format.identity().is_empty());
    let _ = (format.end(), format.byte_width());
}
