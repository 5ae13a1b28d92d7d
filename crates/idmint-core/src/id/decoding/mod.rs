//! Decodes ids of unknown format.
//!
//! Encodings that always read the same number from a text form a group. A [`Decoder`] reads a text
//! once for each group. The decoder weighs each reading by its evidence. If no format can read the
//! text, the decoder looks for ids that the caller may have meant.

mod decode_filter;
mod decoder;
mod encoding_groups;
mod evidence;
mod first_match;
mod given_text;
mod least_bits;
mod listed_id;
mod near_ids;
mod notes;
mod packed_layout;
mod shapes;
mod spelling;

pub use decode_filter::{DecodeFilter, Liberty};
pub use decoder::{Decoded, Decoder, DecoderAt, Match};
pub use evidence::OwnNumbers;
pub(in crate::id) use evidence::{BITS_OF_A_LETTER, log2_of_values, to_f64};
pub(crate) use listed_id::ListedId;
pub use near_ids::NearId;
pub(in crate::id) use near_ids::without_wrapping;
pub use notes::{Note, NoteKind};
pub(in crate::id) use notes::{bits_of_rounded, large_number, lost_digits_note, rounded};
pub use shapes::{KSUID, Shape};
pub(in crate::id) use spelling::BITS_OF_OTHER_ENCODING;
