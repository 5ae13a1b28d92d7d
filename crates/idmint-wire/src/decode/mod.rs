//! The responses of `GET /decode/{id}`, `POST /decode` and `GET /encode/{format}`. They are written
//! as JSON, as lines of text, or as a drawing for people.

mod answer_parts;
mod brief_reading;
mod decode_answer;
mod digit_rows;
mod encode_answer;
mod json_text;
mod match_reading;
mod ruler;
mod style;
mod written_ids;

pub use answer_parts::{AnswerParts, KnownDomains};
pub use brief_reading::{BriefReading, ColumnIds, RowReading};
pub use decode_answer::{DECODED_LEN_MAX, DecodeAnswer, RejectedFormat};
pub use encode_answer::EncodeAnswer;
pub use match_reading::{FieldReading, Label, MatchReading};
pub use ruler::ruler;
pub use style::Style;
