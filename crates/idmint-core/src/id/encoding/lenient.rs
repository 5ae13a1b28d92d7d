//! Lenient reading. If a text differs from the exact text of an id only in permitted ways, such as
//! in letter case, this file finds the exact text.

use super::definition::{EncodingKind, LetterCase};
use super::encoding::Encoding;

const URN: &str = "urn:uuid:";

impl Encoding {
    /// Returns the text of this encoding that `text` stands for. Returns `None` if `text` differs
    /// from every text of this encoding in ways that are not permitted.
    ///
    /// The permitted differences are:
    /// - the case of letters, if this encoding uses a single case
    /// - `I` and `L` for 1 and `O` for 0 in Crockford's base 32
    /// - missing hyphens
    /// - `urn:uuid:` before a UUID
    ///
    /// A text of this encoding stands for itself.
    pub(in crate::id) fn lenient_text(&self, text: &str) -> Option<String> {
        self.lenient_form(text)
            .filter(|meant| self.read_unbounded(meant).is_ok())
    }

    /// Returns `text` as this encoding would write it, for example with letters in the encoding's
    /// case, or with the hyphens that are missing in a UUID. The result may still be invalid, so
    /// the caller must check it.
    pub(in crate::id) fn lenient_form(&self, text: &str) -> Option<String> {
        let kind = self.definition().kind;
        let is_uuid = matches!(kind, EncodingKind::Uuid | EncodingKind::Uuid8);
        let text = if is_uuid { without_urn(text) } else { text };
        let len = text.len() + missing_hyphens(text, self.groups());
        if !(self.len(0)..=self.len_max()).contains(&len) || !text.is_ascii() {
            return None;
        }
        let case = self.letter_case();
        let prefix = self.definition().prefix.as_deref().unwrap_or_default();
        let (head, letters) = text.split_at_checked(prefix.len())?;
        if !(head == prefix || case.is_some() && head.eq_ignore_ascii_case(prefix)) {
            return None;
        }
        let mut meant = prefix.to_owned();
        push_grouped(&mut meant, letters, self.groups())?;
        let mut letters = meant.split_off(prefix.len());
        match case {
            Some(LetterCase::Lower) => letters.make_ascii_lowercase(),
            Some(LetterCase::Upper) => letters.make_ascii_uppercase(),
            None => {}
        }
        if matches!(kind, EncodingKind::Crockford | EncodingKind::Cb32) {
            letters = letters
                .replace(['I', 'L', 'i', 'l'], "1")
                .replace(['O', 'o'], "0");
        }
        meant.push_str(&letters);
        Some(meant)
    }
}

fn without_urn(text: &str) -> &str {
    let named = text
        .split_at_checked(URN.len())
        .filter(|(urn, _)| urn.eq_ignore_ascii_case(URN));
    named.map_or(text, |(_, rest)| rest)
}

/// Returns how many of the hyphens that separate the groups are missing in `text`.
fn missing_hyphens(text: &str, groups: &[usize]) -> usize {
    let wanted = groups.len().saturating_sub(1);
    if wanted == 0 {
        0
    } else {
        wanted.saturating_sub(text.bytes().filter(|letter| *letter == b'-').count())
    }
}

/// Appends `letters` to `out` in groups of the given lengths, with a hyphen between every two
/// groups. Hyphens that are missing in `letters` are added.
///
/// Returns `None` if `letters` has a hyphen anywhere except between two groups, or more or fewer
/// letters than the groups.
fn push_grouped(out: &mut String, letters: &str, groups: &[usize]) -> Option<()> {
    if groups.is_empty() {
        out.push_str(letters);
        return Some(());
    }
    let mut rest = letters;
    for (at, len) in groups.iter().enumerate() {
        if at > 0 {
            out.push('-');
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let (group, behind) = rest
            .split_at_checked(*len)
            .filter(|(group, _)| !group.contains('-'))?;
        out.push_str(group);
        rest = behind;
    }
    rest.is_empty().then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::encoding::EncodingDefinition;

    fn encoding(definition: &str, bits: u32) -> Encoding {
        #[derive(serde::Deserialize)]
        struct One {
            encoding: EncodingDefinition,
        }
        let one: One = toml::from_str(&format!("encoding = {definition}")).expect("a definition");
        Encoding::new(&one.encoding, u128::MAX >> (128 - bits)).expect("an encoding")
    }

    #[test]
    fn a_closed_list_of_liberties_is_read() {
        let conjunction = r#"{ kind = "hashids", alphabet = "abcdefghijklmnopqrstuvwxyz", min_length = 20, groups = [7, 7, 6] }"#;
        let hex = "0123456789abcdef";
        for (definition, bits, given, meant) in [
            (r#""hex_padded""#, 64, "0123456789ABCDEF", Some(hex)),
            (r#""hex_padded""#, 64, hex, Some(hex)),
            (
                r#"{ kind = "hex_padded", case = "upper" }"#,
                64,
                "0123456789AbcdEF",
                Some("0123456789ABCDEF"),
            ),
            (
                r#"{ kind = "base36", prefix = "inv_" }"#,
                31,
                "INV_00zz00",
                Some("inv_00ZZ00"),
            ),
            (
                r#"{ kind = "base62", prefix = "inv_" }"#,
                31,
                "INV_00zz00",
                None,
            ),
            (r#""base62""#, 31, "0A00zz", Some("0A00zz")),
            (
                r#"{ kind = "crockford", length = 13 }"#,
                64,
                "oIl0000000000",
                Some("0110000000000"),
            ),
            (r#""cb32""#, 64, "oIl0000000000", Some("0110000000000")),
            (
                r#"{ kind = "crockford", length = 13 }"#,
                64,
                "u000000000000",
                None,
            ),
            (
                r#"{ kind = "crockford", case = "lower", length = 13 }"#,
                64,
                "oIlA000000000",
                Some("011a000000000"),
            ),
            (r#""base36""#, 31, "OIL000", Some("OIL000")),
            (
                r#""uuid""#,
                128,
                "URN:uuid:017F22E279B0-7CC3-98C4DC0C0C07398F",
                Some("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"),
            ),
            (
                r#""uuid""#,
                128,
                "017f22e279b07cc398c4dc0c0c07398f",
                Some("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"),
            ),
            (r#""uuid""#, 128, "017f-22e279b07cc398c4dc0c0c07398f", None),
            (r#""uuid""#, 128, "017f22e2--79b07cc398c4dc0c0c07398f", None),
            (r#""uuid""#, 128, "017f22e279b07cc398c4dc0c0c07398", None),
            (
                r#""hex_padded""#,
                128,
                "urn:uuid:017f22e279b07cc398c4dc0c0c07398f",
                None,
            ),
            (
                conjunction,
                77,
                "ZWWQLZZPJJMXMDLKPVWQ",
                Some("zwwqlzz-pjjmxmd-lkpvwq"),
            ),
            (
                conjunction,
                77,
                "zwwqlzz-pjjmxmdlkpvwq",
                Some("zwwqlzz-pjjmxmd-lkpvwq"),
            ),
            (r#""decimal""#, 64, "0123", None),
            (r#""decimal""#, 64, "", None),
            (r#""hex_padded""#, 8, "\u{ff10}", None),
        ] {
            assert_eq!(
                encoding(definition, bits).lenient_text(given).as_deref(),
                meant,
                "{definition} {given:?}"
            );
        }
    }
}
