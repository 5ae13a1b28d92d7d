//! Event chains: the id of each event contains a checksum of the event and the previous id. Series
//! of numbers without gaps work similarly, see [`NumberPlan`].
//!
//! ```text
//! event id (32 hexadecimal digits)   time, 64 bits    checksum, 32 bits   ledger, 32 bits
//!                                    0005cd7556b05092 aecc815d            aa77f99c
//! ```
//!
//! This module does no I/O and reads no clock. The last event of a ledger is its head. A caller
//! plans an append after the head. The caller then stores the plan, unless the head has changed in
//! the meantime. The plan also contains the new head. Anyone who has the events can check the
//! chain.
//!
//! ```
//! use idmint_records::ledger::{AppendPlan, ChainChecker, Event, EventTime, LedgerRequest, KeyHash, RequestMark, digest_of};
//!
//! let now = EventTime::from_text("2021-10-03T16:32:12.816530Z")?;
//!
//! // The first event creates the ledger.
//! let genesis = r#""event":"Ledger Created","entities":{},"timestamp":"2021-10-03T16:32:12Z""#;
//! let create = LedgerRequest::Create { genesis: Event::from_json(format!("{{{genesis}}}").as_bytes())?, mark: None, import: None };
//! let created = AppendPlan::make(&create, None, now)?;
//! let ledger = created.ledger();
//!
//! // The second is appended to the head, and gets the time `now`.
//! let opened = r#""event":"Account Opened","entities":{"account":"42"}"#;
//! let events = vec![Event::from_json(format!("{{{opened}}}").as_bytes())?];
//! let mark = RequestMark { key: KeyHash::of(Some(ledger), "request 1"), digest: digest_of(&events, None) };
//! let append = LedgerRequest::Append { ledger, events, expected_previous: Some(created.head().id), mark, import: None };
//! let appended = AppendPlan::make(&append, Some(created.head()), now)?;
//! assert_eq!((appended.previous(), appended.head().place), (created.head().id, 2));
//!
//! // The events with their ids are a chain; a changed event breaks it.
//! let mut checker = ChainChecker::from_genesis();
//! let ids = [created.head().id, appended.head().id];
//! checker.check(format!(r#"{{{genesis},"eventId":"{}"}}"#, ids[0]).as_bytes())?;
//! let second = format!(r#"{{{opened},"timestamp":"{now}","eventId":"{}"}}"#, ids[1]);
//! let error = checker.check(second.replace("42", "43").as_bytes()).expect_err("another account");
//! assert_eq!(error.reason.code(), "checksum_mismatch");
//! assert_eq!(checker.check(second.as_bytes())?, ids[1]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod append;
mod canonical;
mod chain;
mod event_error;
mod events;
mod hex;
mod numbers;

pub use append::{
    AHEAD_MAX, AppendPlan, AppendRefusal, Entry, Head, ImportPart, KeyHash, LedgerRequest, Link,
    PlaceError, RequestMark, digest_of,
};
pub use canonical::canonical_json;
pub use chain::{ChainChecker, ChainError, ChainLines, ChainVerdict, LineTooLong};
pub use event_error::EventError;
pub use events::{ChecksumStep, Event, EventId, EventTime, LedgerId};
pub use numbers::{
    CALLER_LEN_MAX, COUNT_MAX, ClosePlan, CloseRequest, ClosedSeries, FormChange, FormerConflict,
    FormerTemplate, GivenNumbers, KeptTemplates, NUMBER_MAX, NumberBounds, NumberCheck, NumberForm,
    NumberKind, NumberKinds, NumberPlan, NumberReading, NumberRefusal, NumberRequest, NumberRule,
    NumberRules, NumberRulesError, NumberTemplate, REASON_LEN_MAX, ResumeRequest, SeriesHead,
    SeriesName, SeriesNameError, SeriesPattern, SeriesRefusal, TemplateError, TemplateHistory,
    TextConflict, VoidPlan, VoidReason, VoidRefusal, VoidRequest, VoidedNumber, Years,
};
