//! Checks that ids from the documentation of common standards are decoded as the documentation
//! says.

use std::sync::Arc;

use idmint_core::id::{DecodeFilter, Decoder, FormatDefinition, PRESETS};

use crate::NOW;

/// A published id: the format, the text, the instant, and the numbers that the documentation gives.
type Published = (
    &'static str,
    &'static str,
    Option<&'static str>,
    &'static [(&'static str, u128)],
);

const PUBLISHED: &[Published] = &[
    // Source: RFC 9562, appendix A. All of these have the same instant.
    (
        "uuid1",
        "c232ab00-9414-11ec-b3c8-9f6bdeced846",
        Some("2022-02-22T19:22:22.000000000Z"),
        &[("clock_sequence", 0x33c8), ("node", 0x9f6b_dece_d846)],
    ),
    (
        "uuid6",
        "1ec9414c-232a-6b00-b3c8-9f6bdeced846",
        Some("2022-02-22T19:22:22.000000000Z"),
        &[("clock_sequence", 0x33c8), ("node", 0x9f6b_dece_d846)],
    ),
    (
        "uuid7",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
        Some("2022-02-22T19:22:22.000Z"),
        &[("random_a", 0xcc3), ("random_b", 0x18c4_dc0c_0c07_398f)],
    ),
    (
        "uuid4",
        "919108f7-52d1-4320-9bac-f847db4148a8",
        None,
        &[("random_a", 0x9191_08f7_52d1), ("random_b", 0x320)],
    ),
    // Source: RFC 9562, appendices A.2, A.4 and B.1, and sections 5.9 and 5.10.
    (
        "uuid3",
        "5df41881-3aed-3515-88a7-2f4a814cf09e",
        None,
        &[("hash_high", 0x5df4_1881_3aed), ("hash_mid", 0x515)],
    ),
    (
        "uuid5",
        "2ed6657d-e927-568b-95e1-2665a8aea6a2",
        None,
        &[("hash_high", 0x2ed6_657d_e927), ("hash_mid", 0x68b)],
    ),
    (
        "uuid8",
        "2489e9ad-2ee2-8e00-8ec9-32d5f69181c0",
        None,
        &[("custom_a", 0x2489_e9ad_2ee2), ("custom_b", 0xe00)],
    ),
    (
        "uuid-nil",
        "00000000-0000-0000-0000-000000000000",
        None,
        &[],
    ),
    (
        "uuid-max",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        None,
        &[],
    ),
    // Source: the example of the entity Status in Mastodon's documentation. Its created_at is 52 ms
    // later than the time in its id.
    (
        "mastodon",
        "103270115826048975",
        Some("2019-12-08T03:48:33.849Z"),
        &[("sequence_data", 40_911)],
    ),
    // Source: the README of f4b6a3/tsid-creator.
    (
        "tsid",
        "01226N0640J7Q",
        Some("2020-04-15T20:22:07.665Z"),
        &[],
    ),
    // Source: the README of rs/xid.
    (
        "xid",
        "9m4e2mr0ui3e8a215n4g",
        Some("2011-03-22T17:50:19Z"),
        &[
            ("machine", 0x60_f486),
            ("process", 0xe428),
            ("counter", 4_271_561),
        ],
    ),
    // Source: the example in the MongoDB manual.
    (
        "objectid",
        "507f1f77bcf86cd799439011",
        Some("2012-10-17T21:13:27Z"),
        &[("counter", 0x43_9011)],
    ),
    // Source: the example in the ULID specification.
    (
        "ulid",
        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        Some("2016-07-30T23:54:10.259Z"),
        &[],
    ),
    // Source: Instagram Engineering, "Sharding & IDs at Instagram". User 31341 is on shard 1341,
    // and the counter is 5001.
    (
        "instagram",
        "11637205501278089",
        Some("2011-09-09T22:28:04.721Z"),
        &[
            ("time", 1_387_263_000),
            ("shard", 1341),
            ("sequence", 5001 % 1024),
        ],
    ),
    // Source: the example of a push id in the Firebase documentation.
    (
        "firebase",
        "-JhLeOlGIEjaIOFHR0xd",
        Some("2015-02-04T22:15:31.153Z"),
        &[],
    ),
    // Source: Evently's documentation, the genesis event of ledger aa77f99c.
    (
        "evently",
        "0005cd7556b05092aecc815daa77f99c",
        Some("2021-10-03T16:32:12.816530Z"),
        &[
            ("checksum", 0xaecc_815d),
            ("ledger", 0xaa77_f99c >> 2),
            ("version", 0),
        ],
    ),
    (
        "conjunction",
        "zwwqlzz-pjjmxmd-lkpvwq",
        Some("2024-02-01T00:00:00Z"),
        &[("primary", 25_544), ("secondary", 48_274)],
    ),
];

#[test]
fn the_printed_ids_of_the_standards_have_the_printed_meaning() {
    for (name, text, time, numbers) in PUBLISHED {
        let preset = PRESETS.iter().find(|preset| preset.name == *name).unwrap();
        let format = FormatDefinition::from_toml(preset.name, preset.toml)
            .unwrap()
            .compile(preset.name)
            .unwrap();
        let digits = format.tick.map_or(0, |tick| tick.second_digits());
        let decoder = Decoder::new(vec![Arc::new(format)]);
        let decoded = decoder.at(NOW).decode(text, DecodeFilter::default());
        let found = decoded
            .matches
            .first()
            .unwrap_or_else(|| panic!("{text} is no {name}: {:?}", decoded.rejected));
        assert_eq!(
            found.encoding().name(),
            found.format().canonical().name(),
            "{text}"
        );
        let parts = found.parts();
        assert_eq!(
            parts.time.and_then(|time| time.to_text(digits)).as_deref(),
            *time,
            "{text}"
        );
        for (field, number) in *numbers {
            let read = parts
                .layout
                .fields()
                .iter()
                .zip(&parts.values)
                .find(|(read, _)| read.name == *field);
            assert_eq!(
                read.map(|(_, value)| *value),
                Some(*number),
                "{field} of {text}"
            );
        }
    }
}
