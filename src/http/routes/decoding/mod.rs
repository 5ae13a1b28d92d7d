//! What texts can be: one, many, and a column as a whole.

pub(in crate::http) mod decode;
pub(in crate::http) mod decode_many;
pub(in crate::http) mod inspect;
