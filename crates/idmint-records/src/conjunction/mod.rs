//! Conjunctions are close approaches of two objects. All reports of the same close approach get the
//! same id.
//!
//! This module does no I/O and reads no clock. An id is made from the time of closest approach and
//! the two objects.
//!
//! If conjunctions are stored, the first report of a conjunction is its anchor. Later reports
//! within one second of the anchor get the anchor's id. If conjunctions are not stored, each report
//! gets the id of its own time.
//!
//! ```
//! use std::sync::Arc;
//! use idmint_records::conjunction::{CdmForm, Document, GroupRequest, GroupedMinter, PairOrder};
//! use idmint_core::id::{FormatDefinition, PRESETS};
//!
//! let preset = PRESETS.iter().find(|preset| preset.name == "conjunction").expect("a built-in format");
//! let format = Arc::new(FormatDefinition::from_toml(preset.name, preset.toml)?.compile(preset.name)?);
//! let minter = Arc::new(GroupedMinter::new(Arc::clone(&format), PairOrder::Reported));
//!
//! // A document in, its reports out.
//! let sent = "CCSDS_CDM_VERS = 1.0\nCREATION_DATE = 2024-01-30T12:00:00\nTCA = 2024-032T00:00:00.25\n\
//!     OBJECT = OBJECT1\nOBJECT_DESIGNATOR = 25544\nOBJECT = OBJECT2\nOBJECT_DESIGNATOR = 48274\n";
//! let document = Document::read(CdmForm::of(sent.as_bytes()), sent)?;
//! let sent_reports = document.sent_reports(&minter, 0)?;
//!
//! // Reports in, ids out: without storage, each of its own time.
//! let outcomes = GroupRequest::new(Arc::clone(&minter), &sent_reports).and_then(|request| request.decide_ungrouped());
//! let outcomes = outcomes.map_err(|refusal| document.explain(&refusal, format.canonical()))?;
//!
//! // Ids in, the document out.
//! let ids: Vec<String> = outcomes.iter().map(|outcome| format.canonical().to_text(outcome.id)).collect();
//! let annotated = String::from_utf8(document.annotate(&sent_reports, &ids))?;
//! assert!(annotated.contains("\nCOMMENT CONJUNCTION_EVENT_ID = zwwqlzz-pjjmxmd-lkpvwq\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod anchor;
pub mod cdm;
mod external_id;
mod group_request;
mod grouped_minter;
mod object_rules;
mod report;
mod report_count;
mod reports;
mod sent_report;

pub use anchor::{Anchor, AnchorPlan, Pair, Tca};
pub use cdm::{
    CdmError, CdmForm, CdmVersion, Document, ExistingId, Message, NoteForm, ReadRule, without_bom,
};
pub use external_id::ExternalId;
pub use group_request::{GroupError, GroupRefusal, GroupRequest, Grouped, NewAnchors};
pub use grouped_minter::{GroupedMinter, PairOrder};
pub use object_rules::ObjectRules;
pub use report::{Report, ReportError, Role};
pub use report_count::{ReportCount, Seen};
pub use reports::{PlainKind, PlainReport, Reports, ReportsError, SortedReports, WrittenReport};
pub use sent_report::{CONJUNCTION_ID_KEY, EVENT_ID_KEY, NotedFault, NotedRule, SentReport};
