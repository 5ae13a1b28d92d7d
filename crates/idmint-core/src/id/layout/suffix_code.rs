//! Suffix codes: binary words of various lengths, which stand for the types of things that ids
//! name. The qualifier, one field of an id, ends in the word of the id's type.

/// One word of a [`SuffixCode`], with the type of id that the word stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodeWord {
    /// The bits of the word as a number.
    pub suffix: u128,
    /// The number of bits in the word, 1 to 16.
    pub bits: u32,
    /// The name of the type. `None` means that the word is unassigned: ids with this word are
    /// decoded but never minted.
    pub name: Option<String>,
}

/// A complete suffix-free code: every number ends in exactly one of its words. For example, the
/// words 0, 01 and 11 form such a code.
///
/// Each word has 1 to 16 binary digits. Shorter words leave more bits for the serial number.
/// Source: the qualifier of a SIQ id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SuffixCode {
    words: Vec<CodeWord>,
    /// A mask and a value for each word. A number ends in the binary digits of the word if
    /// `number & mask` is the value.
    endings: Vec<(u16, u16)>,
}

/// The reason why words do not form a complete suffix-free code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SuffixCodeError {
    /// A suffix is not 1 to `limit` binary digits.
    #[error("`{suffix}` is not a suffix: write 1 to {limit} digits 0 or 1")]
    NotBinary {
        /// The suffix as written in the definition.
        suffix: String,
        /// The maximum number of binary digits in a suffix: one less than the bits of the field, so
        /// that a bit is left for the serial number, but at most 16.
        limit: u32,
    },
    /// One suffix ends in another, so a number could end in both.
    #[error(
        "suffix `{longer}` ends in suffix `{shorter}`, so an id could be read both ways; change one of them"
    )]
    Ambiguous {
        /// The word that ends in the word `shorter`.
        longer: String,
        /// The word in which `longer` ends.
        shorter: String,
    },
    /// Some numbers do not end in any word.
    #[error(
        "the suffixes do not cover all ids: add the missing suffixes; omit the name of a suffix whose ids have no type"
    )]
    Incomplete,
    /// Two words have the same name.
    #[error("two suffixes are named `{name}`; rename one of them")]
    NameTwice {
        /// The name that both words have.
        name: String,
    },
}

impl SuffixCode {
    /// The maximum number of bits in a word.
    pub(crate) const BITS_MAX: u32 = 16;

    /// Creates a code for a field of `field_bits` bits. Each item of `words` is a suffix in binary
    /// digits and the name of its type.
    ///
    /// # Errors
    /// Returns [`SuffixCodeError`] if a word is malformed, or if the words do not form a complete
    /// suffix-free code.
    pub(crate) fn new(
        words: &[(String, Option<String>)],
        field_bits: u32,
    ) -> Result<SuffixCode, SuffixCodeError> {
        let limit = field_bits.saturating_sub(1).min(SuffixCode::BITS_MAX);
        let parsed: Vec<CodeWord> = words
            .iter()
            .map(|(suffix, name)| code_word(suffix, name.clone(), limit))
            .collect::<Result<_, _>>()?;
        for (at, (longer, name)) in words.iter().enumerate() {
            if let Some((_, (shorter, _))) = words
                .iter()
                .enumerate()
                .find(|(other, (shorter, _))| *other != at && longer.ends_with(shorter.as_str()))
            {
                return Err(SuffixCodeError::Ambiguous {
                    longer: longer.clone(),
                    shorter: shorter.clone(),
                });
            }
            if let Some(name) = name.as_ref().filter(|name| {
                words[..at]
                    .iter()
                    .any(|(_, other)| other.as_ref() == Some(name))
            }) {
                return Err(SuffixCodeError::NameTwice { name: name.clone() });
            }
        }
        // A word of n bits is the ending of 2^(16 - n) numbers of 16 bits. No number ends in two
        // words, so every number ends in one if the sum is 2^16 (Kraft's equality).
        let shared_out: u32 = parsed
            .iter()
            .map(|word| 1 << (SuffixCode::BITS_MAX - word.bits))
            .sum();
        if shared_out == 1 << SuffixCode::BITS_MAX {
            let lowest_16 = |bits: u128| u16::try_from(bits).expect("words have 16 bits at most");
            let ending =
                |word: &CodeWord| (lowest_16((1 << word.bits) - 1), lowest_16(word.suffix));
            Ok(SuffixCode {
                endings: parsed.iter().map(ending).collect(),
                words: parsed,
            })
        } else {
            Err(SuffixCodeError::Incomplete)
        }
    }

    /// Returns the words in the order of their definition.
    pub(crate) fn words(&self) -> &[CodeWord] {
        &self.words
    }

    /// Returns the index of the word in which `number` ends.
    pub(crate) fn index_of(&self, number: u128) -> usize {
        let last_bits = u16::try_from(number & u128::from(u16::MAX)).expect("16 bits");
        self.endings
            .iter()
            .position(|(mask, suffix)| last_bits & mask == *suffix)
            .expect("the code is complete, checked when it was made")
    }
}

fn code_word(suffix: &str, name: Option<String>, limit: u32) -> Result<CodeWord, SuffixCodeError> {
    let bits = u32::try_from(suffix.len()).unwrap_or(u32::MAX);
    let binary = suffix.bytes().all(|byte| matches!(byte, b'0' | b'1'));
    match u128::from_str_radix(suffix, 2) {
        Ok(number) if binary && (1..=limit).contains(&bits) => Ok(CodeWord {
            suffix: number,
            bits,
            name,
        }),
        _ => Err(SuffixCodeError::NotBinary {
            suffix: suffix.to_owned(),
            limit,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(words: &[&str]) -> Result<SuffixCode, SuffixCodeError> {
        let words: Vec<_> = words
            .iter()
            .map(|suffix| ((*suffix).to_owned(), None))
            .collect();
        SuffixCode::new(&words, 16)
    }

    #[test]
    fn a_number_has_the_word_that_it_ends_in() {
        let words = [("1", "user"), ("10", "post"), ("00", "file")];
        let words = words.map(|(suffix, name)| (suffix.to_owned(), Some(name.to_owned())));
        let code = SuffixCode::new(&words, 16).expect("a valid parameter");
        let word = &code.words()[code.index_of(0b0110)];
        assert_eq!((word.bits, word.name.as_deref()), (2, Some("post")));
    }

    #[test]
    fn every_number_ends_in_exactly_one_word() {
        let code = code(&["1", "10", "100", "000"]).expect("complete");
        for number in 0..=u128::from(u16::MAX) {
            let matching = code
                .words()
                .iter()
                .filter(|word| number % (1 << word.bits) == word.suffix)
                .count();
            assert_eq!(matching, 1);
            let word = &code.words()[code.index_of(number)];
            assert_eq!(number % (1 << word.bits), word.suffix);
        }
    }

    #[test]
    fn a_code_with_a_hole_or_with_two_readings_is_refused() {
        assert_eq!(code(&["1", "10"]), Err(SuffixCodeError::Incomplete));
        assert_eq!(
            code(&["1", "11", "0"]),
            Err(SuffixCodeError::Ambiguous {
                longer: "11".to_owned(),
                shorter: "1".to_owned()
            })
        );
        for bad in ["", "2", "+1", "01010101010101010"] {
            assert_eq!(
                code(&[bad]),
                Err(SuffixCodeError::NotBinary {
                    suffix: bad.to_owned(),
                    limit: 15
                })
            );
        }
    }
}
