//! Checks the regular expression of each encoding against the published texts: it must accept those
//! that are ids and refuse the others.

use idmint_core::id::Encoding;
use regex_lite::Regex;

use crate::laws::DECODER;
use idmint_testing::cases;

fn encoding(format: &str, encoding: &str) -> &'static Encoding {
    let format = DECODER
        .formats()
        .iter()
        .find(|known| known.name == format)
        .unwrap();
    format.encoding(encoding).unwrap()
}

#[test]
fn a_pattern_accepts_every_published_text_and_nothing_around_it() {
    let cases = cases::valid();
    let texts = cases.iter().flat_map(|case| {
        case.encodings
            .iter()
            .map(|(name, text)| (&case.format, name, text))
    });
    let accepted = texts.map(|(format, name, text)| {
        let pattern = Regex::new(&encoding(format, name).pattern()).unwrap();
        assert!(
            pattern.is_match(text),
            "{pattern} refuses {text:?}, {name} of {format}"
        );
        for around in [
            format!("{text}\n"),
            format!("{text}\r\n"),
            format!("\n{text}"),
            format!("{text}\n{text}"),
            format!("{text} "),
            format!(" {text}"),
            format!("{text}\0"),
        ] {
            assert!(
                !pattern.is_match(&around),
                "{pattern} accepts {around:?}, {name} of {format}"
            );
        }
    });
    assert_eq!(accepted.count(), 1_554);
}

#[test]
fn a_pattern_refuses_every_published_text_of_another_length_or_with_another_letter() {
    let cases = cases::unreadable();
    let of_form = cases
        .iter()
        .filter(|case| matches!(case.reason.as_str(), "wrong_length" | "bad_alphabet"));
    let refused = of_form.map(|case| {
        let pattern = Regex::new(&encoding(&case.format, &case.encoding).pattern()).unwrap();
        assert!(
            !pattern.is_match(&case.text),
            "{pattern} accepts {:?}: {}",
            case.text,
            case.name
        );
    });
    assert_eq!(refused.count(), 121);
}
