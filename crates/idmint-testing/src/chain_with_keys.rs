//! A chain in the form that Evently used until 2022.

/// The first two events of the ledger e95bff80 (a chain of events), which the authors of Evently
/// published in 2022. Each event has an `entity` and a `key`.
pub const WITH_KEYS: [&str; 2] = [
    r#"{"eventId":"0005d5813bf9c4498e2a8b74e95bff80","timestamp":"2022-01-14T02:05:17.275209Z","event":"tested","entity":"test","key":"first-event-key","meta":{"actor":"Evently CLI Tester"},"data":{"tested":true,"description":"This first event is for validating ledger downloads."}}"#,
    r#"{"eventId":"0005d5814ce488843dc5de3ee95bff80","timestamp":"2022-01-14T02:10:01.096324Z","event":"tested","entity":"test","key":"second-event-key","meta":{"actor":"Evently CLI Tester"},"data":{"tested":true,"description":"This is a second event after the initial download."}}"#,
];
