//! Where each letter stands in some order of an alphabet.

const NO_PLACE: u8 = u8::MAX;

/// The place of each letter.
#[derive(Debug, Clone)]
pub(in crate::id::encoding) struct Places([u8; 128]);

impl Places {
    /// Of these letters, each of which is ASCII and there once.
    pub(in crate::id::encoding) fn of(letters: &[u8]) -> Places {
        let mut places = [NO_PLACE; 128];
        for (place, letter) in (0..).zip(letters) {
            places[usize::from(*letter)] = place;
        }
        Places(places)
    }

    /// The place of a letter; `None` where it is none of them.
    #[inline]
    pub(in crate::id::encoding) fn of_letter(&self, letter: u8) -> Option<u8> {
        self.0
            .get(usize::from(letter))
            .copied()
            .filter(|place| *place != NO_PLACE)
    }
}
