//! Numbers without gaps: series of 1, 2, 3 and so on, each number given once, and how they are written.
//!
//! Pure, as the rest of this folder: a request and the head of its series become a plan, or what the same key was given before.

mod number_check;
mod number_plan;
mod number_rules;
mod number_template;
mod series_name;
mod void_plan;

pub use number_check::NumberCheck;
pub use number_plan::{
    CALLER_LEN_MAX, COUNT_MAX, GivenNumbers, NUMBER_MAX, NumberBounds, NumberPlan, NumberRefusal,
    NumberRequest, SeriesHead,
};
pub use number_rules::{NumberKind, NumberReading, NumberRule, NumberRules, NumberRulesError};
pub use number_template::{NumberTemplate, TemplateError};
pub use series_name::{SeriesName, SeriesNameError, SeriesPattern};
pub use void_plan::{REASON_LEN_MAX, VoidPlan, VoidReason, VoidRefusal, VoidRequest, VoidedNumber};
