//! Checks that the id of a conjunction depends only on its second and its two objects.

use std::sync::Arc;

use idmint_core::id::{Format, FormatDefinition, PRESETS};
use idmint_core::time::UnixTime;
use idmint_records::conjunction::{GroupedMinter, PairOrder, Report, ReportError, Role};
use proptest::prelude::*;
use serde_json::Value;

use idmint_testing::cases::{self, digits, file, rows};

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const LAST_SECOND: i128 = (1 << 33) - 1;
const LAST_OBJECT: u64 = (1 << 22) - 1;

fn conjunction() -> Arc<Format> {
    let preset = PRESETS
        .iter()
        .find(|preset| preset.name == "conjunction")
        .unwrap();
    Arc::new(
        FormatDefinition::from_toml(preset.name, preset.toml)
            .unwrap()
            .compile(preset.name)
            .unwrap(),
    )
}

fn minter(pair_order: PairOrder) -> GroupedMinter {
    GroupedMinter::new(conjunction(), pair_order)
}

fn id_of(
    minter: &GroupedMinter,
    nanos: i128,
    primary: u64,
    secondary: u64,
) -> Result<u128, ReportError> {
    minter.id_of(&Report::new(
        UnixTime::from_nanos(nanos),
        primary,
        secondary,
    )?)
}

/// Returns the code that the vectors use for this error.
fn reason(error: &ReportError) -> &'static str {
    match error {
        ReportError::TcaTooEarly { .. } => "before_epoch",
        ReportError::TcaTooLate { .. } => "overflow",
        ReportError::ObjectTooGreat { .. } => "out_of_range",
        other => panic!("{other}"),
    }
}

#[test]
fn every_report_of_the_vectors_gets_its_id() {
    let (format, minter) = (conjunction(), minter(PairOrder::Reported));
    let mut minted = 0;
    for case in cases::valid()
        .iter()
        .filter(|case| case.format == "conjunction")
    {
        let [primary, secondary] =
            [1, 2].map(|at: usize| u64::try_from(case.fields[at].1).unwrap());
        let id = id_of(&minter, case.unix_nanos, primary, secondary);
        if primary == 0 || secondary == 0 || primary == secondary {
            assert!(
                matches!(
                    id,
                    Err(ReportError::ObjectZero { .. } | ReportError::SameObject { .. })
                ),
                "{case:?}"
            );
            continue;
        }
        let id = id.unwrap();
        let tca = UnixTime::from_utc_text(case.utc.as_ref().unwrap()).unwrap();
        assert_eq!(
            id_of(&minter, tca.nanos(), primary, secondary),
            Ok(id),
            "{case:?}"
        );
        for (encoding, text) in &case.encodings {
            assert_eq!(
                format.encoding(encoding).unwrap().to_text(id),
                *text,
                "{case:?}"
            );
        }
        minted += 1;
    }
    // Eight of the 28 rows get no id, because they lack an object or name the greatest number
    // twice.
    assert_eq!(minted, 28 - 8);
}

#[test]
fn every_report_of_the_vectors_that_makes_no_id_is_refused_with_its_reason() {
    let (file, minter) = (file("conjunction"), minter(PairOrder::Reported));
    let is_report = |row: &&Value| row["operation"] == "encode" && row["layout"] == "v2";
    let refused = rows(&file["invalid"]).iter().filter(is_report).map(|row| {
        let number = |key: &str| digits(&row["input"][key]).parse::<i128>().unwrap();
        let objects =
            ["primary_norad_id", "secondary_norad_id"].map(|key| u64::try_from(number(key)));
        // A negative number is not a catalogue number, so a report cannot contain it.
        let ([Ok(primary), Ok(secondary)], reason_given) =
            (objects, row["reason"].as_str().unwrap())
        else {
            assert_eq!(row["reason"], "out_of_range");
            return;
        };
        let id = id_of(
            &minter,
            number("tca_unix_s") * NANOS_PER_SECOND,
            primary,
            secondary,
        );
        assert_eq!(id.as_ref().map_err(reason), Err(reason_given), "{row}");
    });
    assert_eq!(refused.count(), 6);
}

#[test]
fn the_bounds_of_a_report_are_those_of_the_fields() {
    let minter = minter(PairOrder::Reported);
    let last = LAST_SECOND * NANOS_PER_SECOND + NANOS_PER_SECOND - 1;
    assert_eq!(
        id_of(&minter, 0, 1, LAST_OBJECT),
        Ok(1 << 22 | u128::from(LAST_OBJECT))
    );
    assert_eq!(
        id_of(&minter, last, LAST_OBJECT, 1),
        Ok(((1 << 33) - 1) << 44 | u128::from(LAST_OBJECT) << 22 | 1)
    );
    let too_late = id_of(&minter, last + 1, 1, 2).unwrap_err();
    assert_eq!(
        too_late.to_string(),
        "tca is 2242-03-16T12:56:32.000Z, but must be before 2242-03-16T12:56:32.000Z, when `conjunction` ends"
    );
    let too_early = id_of(&minter, -1, 1, 2).unwrap_err();
    assert_eq!(
        too_early.to_string(),
        "tca is 1969-12-31T23:59:59.999Z, but must not be before 1970-01-01T00:00:00.000Z, when `conjunction` begins"
    );
    let too_great = id_of(&minter, 0, LAST_OBJECT + 1, 2).unwrap_err();
    assert_eq!(
        too_great.to_string(),
        "primary is 4194304, but must be a catalogue number from 1 to 4194303 in format `conjunction`"
    );
}

#[test]
fn a_pair_without_order_is_refused_by_the_name_it_was_reported_under() {
    let error = id_of(&minter(PairOrder::Unordered), 0, LAST_OBJECT + 1, 2).unwrap_err();
    assert!(
        matches!(
            error,
            ReportError::ObjectTooGreat {
                role: Role::Primary,
                object: 4_194_304,
                ..
            }
        ),
        "{error}"
    );
}

proptest! {
    #[test]
    fn an_id_holds_the_second_and_the_objects_of_its_report(
        seconds in 0..=LAST_SECOND, nanos in 0..NANOS_PER_SECOND,
        primary in 1..=LAST_OBJECT, secondary in 1..=LAST_OBJECT,
    ) {
        prop_assume!(primary != secondary);
        let format = conjunction();
        let id = id_of(&minter(PairOrder::Reported), seconds * NANOS_PER_SECOND + nanos, primary, secondary).unwrap();
        let parts = format.split(id).unwrap();
        prop_assert_eq!(parts.time, Some(UnixTime::from_nanos(seconds * NANOS_PER_SECOND)));
        prop_assert_eq!(&parts.values[1..], [u128::from(primary), u128::from(secondary)]);
    }

    #[test]
    fn the_order_of_a_pair_counts_or_not_as_configured(
        seconds in 0..=LAST_SECOND, one in 1..LAST_OBJECT, more in 1..LAST_OBJECT,
    ) {
        let other = (one + more).min(LAST_OBJECT);
        prop_assume!(one != other);
        let nanos = seconds * NANOS_PER_SECOND;
        let both = |order| [id_of(&minter(order), nanos, one, other), id_of(&minter(order), nanos, other, one)];
        let [as_reported, swapped] = both(PairOrder::Reported);
        prop_assert_ne!(&as_reported, &swapped);
        prop_assert_eq!(both(PairOrder::Unordered), [as_reported.clone(), as_reported]);
    }

    #[test]
    fn an_instant_is_read_back_from_each_of_its_texts(seconds in -62_167_219_200_i128..253_402_207_200, micros in 0..1_000_000_i128) {
        let instant = UnixTime::from_nanos(seconds * NANOS_PER_SECOND + micros * 1_000);
        let text = instant.to_text(6).unwrap();
        let read = |text: &str| UnixTime::from_utc_text(text).map(UnixTime::nanos).ok();
        prop_assert_eq!(read(&text), Some(instant.nanos()));
        prop_assert_eq!(read(text.trim_end_matches('Z')), Some(instant.nanos()));
        prop_assert_eq!(read(&format!("{}999999Z", text.trim_end_matches('Z'))), Some(instant.nanos() + 999));
        let date: jiff::civil::Date = text[..10].parse().unwrap();
        let of_year = format!("{}-{:03}{}", &text[..4], date.day_of_year(), &text[10..]);
        prop_assert_eq!(read(&of_year), Some(instant.nanos()));
    }

    #[test]
    fn no_text_panics_and_what_is_read_is_in_range(text in "[0-9TZ:.+ -]{0,32}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{0,13})?Z?|\\PC{0,24}") {
        if let Ok(instant) = UnixTime::from_utc_text(&text) {
            prop_assert!(instant.to_text(6).is_some());
        }
    }
}
