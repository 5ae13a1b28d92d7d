//! Numbers without gaps. A series gives the numbers 1, 2, 3 and so on, each of them once. A number
//! can also be written as text in a configured form.
//!
//! This module does no I/O and reads no clock. It computes a plan from a request and the last
//! number of its series. If the idempotency key of the request already got numbers, the request
//! gets the same numbers again.

mod close_plan;
mod former_template;
mod number_check;
mod number_form;
mod number_plan;
mod number_rules;
mod number_template;
mod resumption;
mod series_name;
mod series_pattern;
mod template_history;
mod text_automaton;
mod text_conflict;
mod text_field;
mod text_form;
mod void_plan;

pub use close_plan::{ClosePlan, CloseRequest, ClosedSeries};
pub use former_template::FormerTemplate;
pub use number_check::NumberCheck;
pub use number_form::{FormChange, NumberForm};
pub use number_plan::{
    CALLER_LEN_MAX, COUNT_MAX, GivenNumbers, NUMBER_MAX, NumberBounds, NumberPlan, NumberRefusal,
    NumberRequest, SeriesHead,
};
pub use number_rules::{
    FormerConflict, NumberKind, NumberKinds, NumberReading, NumberRule, NumberRules,
    NumberRulesError, SeriesRefusal,
};
pub use number_template::{NumberTemplate, TemplateError};
pub use resumption::ResumeRequest;
pub use series_name::{SeriesName, SeriesNameError};
pub use series_pattern::SeriesPattern;
pub use template_history::{KeptTemplates, TemplateHistory};
pub use text_conflict::TextConflict;
pub use text_field::Years;
pub use void_plan::{REASON_LEN_MAX, VoidPlan, VoidReason, VoidRefusal, VoidRequest, VoidedNumber};
