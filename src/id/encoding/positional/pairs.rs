//! A table of the letters of an alphabet two at a time, which halves the steps of writing a text.

/// The texts of all numbers of two digits, in their order: `"00"`, `"01"`, … for decimal.
#[derive(Debug, Clone)]
pub(in crate::id::encoding) struct Pairs {
    letters: Box<[[u8; 2]]>,
}

impl Pairs {
    /// The pairs of an alphabet of 2 to 94 letters.
    pub(in crate::id::encoding) fn of_letters(letters: &[u8]) -> Self {
        Self {
            letters: letters
                .iter()
                .flat_map(|upper| letters.iter().map(|lower| [*upper, *lower]))
                .collect(),
        }
    }

    /// All pairs.
    pub(in crate::id::encoding) fn letters(&self) -> &[[u8; 2]] {
        &self.letters
    }

    /// A function from a number to its two letters.
    #[inline(always)]
    pub(in crate::id::encoding) fn two(&self) -> impl Fn(u64) -> [u8; 2] + Copy {
        |number| self.letters[lowest_14_bits(number)]
    }

    /// The same where the compiler knows that there are `COUNT` pairs, and so need not check that a number is below it.
    #[inline(always)]
    pub(in crate::id::encoding) fn two_of<const COUNT: usize>(
        &self,
    ) -> impl Fn(u64) -> [u8; 2] + Copy {
        let letters: &[[u8; 2]; COUNT] = (&*self.letters)
            .try_into()
            .expect("the square of the radix");
        move |number| letters[lowest_14_bits(number)]
    }
}

/// An index into pairs, of which there are fewer than 2^14.
fn lowest_14_bits(number: u64) -> usize {
    (number & 0x3fff) as usize
}
