//! Properties of ledgers, numbers and conjunction data messages, which are tested with generated inputs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod canonical;
mod cdm;
mod cdm_documents;
mod cdm_encodings;
mod evently;
mod numbers;
mod reports;
