//! Definitions of formats.

use idmint::id::FormatDefinition;

/// A definition that makes a format makes one whose example can be written, read, and taken apart.
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
