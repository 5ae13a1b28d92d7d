//! Fuzzes events, and chains of events.

use idmint_records::ledger::{ChainChecker, Event, EventTime, LedgerId, canonical_json};

/// Converts an event to canonical JSON. Converting the result again must not change it, and it must
/// parse to the same event.
pub(super) fn read_event(bytes: &[u8]) {
    if let Ok(canonical) = canonical_json(bytes) {
        assert_eq!(
            canonical_json(canonical.as_bytes()).as_deref(),
            Ok(&*canonical)
        );
        serde_json::from_str::<serde::de::IgnoredAny>(&canonical).unwrap();
    }
    let Ok(event) = Event::from_json(bytes) else {
        return;
    };
    let canonical = canonical_json(bytes).unwrap();
    let again = Event::from_json(canonical.as_bytes()).unwrap();
    assert_eq!(
        (event.digest(), event.content()),
        (again.digest(), again.content())
    );
    let time = event
        .timestamp()
        .unwrap_or(EventTime::from_micros(1).unwrap());
    let ledger = LedgerId::of_genesis(&event, time);
    assert_eq!(ledger, LedgerId::of_genesis(&again, time));
}

/// Checks a chain of events. If every line is valid, the chain must have as many events as lines.
pub(super) fn check_chain(bytes: &[u8]) {
    let mut checker = ChainChecker::from_genesis();
    let mut lines = 0;
    for line in bytes.split(|byte| *byte == b'\n') {
        let _ = ChainChecker::from_genesis().explain(line);
        if checker.check(line).is_err() {
            return;
        }
        lines += 1;
        assert_eq!(checker.events(), lines);
        assert!(checker.head().is_some() && checker.ledger().is_some());
    }
}
