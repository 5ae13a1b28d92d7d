//! Converts ids from numbers to texts in the client, without a request.

use super::options::IdsOptions;
use idmint_wire::FormatInfo;

/// The digits of all supported radixes.
const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// A way to write ids as texts: in plain decimal, hexadecimal or base 36.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NumberText {
    radix: u8,
    is_upper: bool,
    length_min: usize,
}

impl NumberText {
    /// Returns the way to write ids of this format as texts, or `None` if only the service can
    /// write the texts.
    pub(super) fn of(format: &FormatInfo, options: &IdsOptions) -> Option<NumberText> {
        // The service returns numbers only for sequenced formats.
        if format.rule != "sequenced" || !format.minted || options.asked("prefix").is_some() {
            return None;
        }
        let is_asked = |name: &str| options.asked("encoding").is_none_or(|asked| asked == name);
        let encoding = format
            .encodings
            .iter()
            .find(|encoding| is_asked(&encoding.name))?;
        let length = encoding.length.unwrap_or(0);
        let spans = [
            (10, "", false),
            (16, "a-f", false),
            (16, "A-F", true),
            (36, "a-z", false),
            (36, "A-Z", true),
        ];
        let (radix, _, is_upper) = spans.into_iter().find(|(_, span, _)| {
            let free = format!("^(?:0|[1-9{span}][0-9{span}]{{0,");
            let free_max = encoding
                .pattern
                .strip_prefix(&free)
                .and_then(|rest| rest.strip_suffix("})$"));
            encoding.pattern == format!("^[0-9{span}]{{{length}}}$")
                || free_max.is_some_and(|max| max.parse::<u8>().is_ok())
        })?;
        let number_text = NumberText {
            radix,
            is_upper,
            length_min: length.max(1),
        };
        // The regular expression of the encoding does not show the order of the alphabet's digits.
        // Therefore check also that the example id gives the text that the service returned for it.
        let is_same = Some(&number_text.text_of(format.example.value.parse().ok()?))
            == format.example.encodings.get(&encoding.name);
        is_same.then_some(number_text)
    }

    pub(super) fn text_of(self, id: u128) -> String {
        let mut digits = Vec::with_capacity(40);
        let mut rest = id;
        while rest > 0 {
            let (quotient, digit) = match u64::try_from(rest) {
                // Most numbers fit into 64 bits, and 64-bit divisions are many times faster.
                Ok(short) => (
                    u128::from(short / u64::from(self.radix)),
                    short % u64::from(self.radix),
                ),
                Err(_) => {
                    let digit = u64::try_from(rest % u128::from(self.radix))
                        .expect("a digit is less than 36");
                    (rest / u128::from(self.radix), digit)
                }
            };
            let digit = DIGITS[usize::try_from(digit).expect("a digit is less than 36")];
            digits.push(if self.is_upper {
                digit.to_ascii_uppercase()
            } else {
                digit
            });
            rest = quotient;
        }
        digits.resize(digits.len().max(self.length_min), b'0');
        digits.reverse();
        String::from_utf8(digits).expect("digits are ASCII")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number_text(radix: u8, is_upper: bool, length_min: usize) -> NumberText {
        NumberText {
            radix,
            is_upper,
            length_min,
        }
    }

    #[test]
    fn numbers_are_spelled_in_each_radix_and_filled_up_with_zeros() {
        assert_eq!(number_text(10, false, 1).text_of(0), "0");
        assert_eq!(
            number_text(10, false, 1).text_of(u128::MAX),
            u128::MAX.to_string()
        );
        assert_eq!(
            number_text(16, false, 28).text_of(0x6b_06d0_662b_3800),
            format!("{:028x}", 0x6b_06d0_662b_3800_u64)
        );
        assert_eq!(number_text(16, true, 1).text_of(0xabc), "ABC");
        assert_eq!(
            number_text(36, true, 9).text_of(4_270_959_197_568),
            "1II1UU000"
        );
        assert_eq!(number_text(36, false, 9).text_of(35), "00000000z");
    }
}
