//! Checks the drawings of ids that `GET /decode/{id}` returns as `text/plain`.

use crate::service::{Service, in_path};
use idmint_testing::http1::Answer;

async fn drawn(service: &Service, id: &str, query: &str) -> Answer {
    let path = format!("/decode/{}{query}", in_path(id));
    service
        .exchange(&format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: text/plain\r\n\r\n"
        ))
        .await
}

/// Asserts that the id, read as an id of this format, is drawn exactly as `expected`.
async fn assert_drawn(format: &str, id: &str, expected: &str) {
    let answer = drawn(&Service::start("").await, id, &format!("?format={format}")).await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("text/plain; charset=utf-8"))
    );
    assert!(
        answer.text() == expected.trim_start_matches('\n'),
        "{}\nand not{expected}",
        answer.text()
    );
}

#[tokio::test]
async fn a_snowflake() {
    let expected = "
175928847299117063
snowflake (decimal)  2016-04-30T11:18:25.796Z  good evidence, 6.7 bits

  000000100111000100000110010110101100000100 00001 00000 000000000111
  └───────────────── time ─────────────────┘ └─┬─┘ └─┬─┘ └ sequence ┘
                                               │     └─ shard
                                               └─ worker

  time      41944705796  42 bits  2016-04-30T11:18:25.796Z = 2015-01-01T00:00:00Z + 41944705796 × 1ms
  worker    1            5 bits
  shard     0            5 bits
  sequence  7            12 bits

  decimal     175928847299117063  canonical, as given
  hex         271065ac1020007
  hex_padded  0271065ac1020007
  base64      AAJxBlrBAgAH
  b32l        e4igllaqeaah
  cb32        09RGCPP10800E
  hashids     GM2JYYV2RVL7
  sqids       rYvbGzf0BK7
";
    assert_drawn("snowflake", "175928847299117063", expected).await;
}

#[tokio::test]
async fn a_payment_id_in_digits_of_base_36() {
    let expected = "
1I9ZC1002
payment (base36)  2026-11-21T03:36:01Z  fair evidence, -3.4 bits

  1I9ZC1 0 02
  └time┘ │ ├┘
         │ └─ sequence
         └─ worker

  time      91164961  6 digits  2026-11-21T03:36:01Z = 2024-01-01T00:00:00Z + 91164961 × 1s
  worker    0         1 digit
  sequence  2         2 digits

  base36   1I9ZC1002      canonical, as given
  decimal  4253392420418
";
    assert_drawn("payment", "1I9ZC1002", expected).await;
}

#[tokio::test]
async fn a_flax_id() {
    let expected = "
0RdKJcxqVBiAiQr0
flax (base64_lex)  2015-10-15T20:10:25.807Z  weak evidence, -6.3 bits

  0000010111001010010101010101001010001111 01110110100000001100101110001011101110011011110111000001
  └──────────────── time ────────────────┘ └─────────────────────── random ───────────────────────┘

  time    24869425807        40 bits  2015-10-15T20:10:25.807Z = 2015-01-01T00:00:00Z + 24869425807 × 1ms
  random  33355658962779585  56 bits

  base64_lex  0RdKJcxqVBiAiQr0              canonical, as given
  hex_padded  05ca55528f7680cb8bb9bdc1
  decimal     1792030988790530007327423937
";
    assert_drawn("flax", "0RdKJcxqVBiAiQr0", expected).await;
}

#[tokio::test]
async fn a_conjunction_in_groups_of_letters() {
    let expected = "
zwwqlzz-pjjmxmd-lkpvwq
conjunction (hashids)  2024-02-01T00:00:00Z  strong evidence, 28.6 bits

  001100101101110101101111100000000 0000000110001111001000 0000001011110010010010
  └──────────── time ─────────────┘ └───── primary ──────┘ └──── secondary ─────┘

  time       1706745600  33 bits  2024-02-01T00:00:00Z = 1970-01-01T00:00:00Z + 1706745600 × 1s
  primary    25544       22 bits  object
  secondary  48274       22 bits  object

  hashids     zwwqlzz-pjjmxmd-lkpvwq   canonical, as given
  decimal     30025386125795551919250
  hex_padded  065badf00018f200bc92
";
    assert_drawn("conjunction", "zwwqlzz-pjjmxmd-lkpvwq", expected).await;
}

#[tokio::test]
async fn a_siq_as_did_in_two_rows() {
    let expected = "
did:siq:iuxvojaaf4c6s6aaaaaaaaaaaaaah
siq (did)  2019-12-31T23:00:00.000000Z  strong evidence, 132.5 bits

  00000000010111100000101111010010111100000000000000000000 00000000 00000000000000000000000000000000
  └──────────────────────── time ────────────────────────┘ └shard─┘ └─────────── domain ───────────┘

  0000000000000 111
  └─ serial ──┘ └┬┘
                 └─ qualifier

  time       103404876595200  56 bits  2019-12-31T23:00:00.000000Z = 1970-01-01T00:00:00Z + 103404876595200 × 1s/65536
  shard      0                8 bits   worker
  domain     0                32 bits  development
  serial     0                13 bits  sequence
  qualifier  7                3 bits   content

  hex_padded   005e0bd2f0000000000000000007           canonical
  decimal      7451106619238957490390643507207
  hex          5e0bd2f0000000000000000007
  base64       AABeC9LwAAAAAAAAAAAH
  crockford    5W2YJY000000000000007
  b32l         aaaf4c6s6aaaaaaaaaaaaaah
  did          did:siq:iuxvojaaf4c6s6aaaaaaaaaaaaaah  as given
  bytes16_hex  0000005e0bd2f0000000000000000007
  uuid8        005e0bd2-f000-8000-8000-000000001c00
";
    assert_drawn("siq", "did:siq:iuxvojaaf4c6s6aaaaaaaaaaaaaah", expected).await;
}

#[tokio::test]
async fn a_uuid7() {
    let expected = "
018f2b3c-4d5e-7abc-9def-0123456789ab
uuid7 (uuid)  2024-04-29T19:02:03.358Z  strong evidence, 33.0 bits

  000000011000111100101011001111000100110101011110 0111 101010111100 10
  └──────────────────── time ────────────────────┘ └┬─┘ └ random_a ┘ ├┘
                                                    │                └─ variant
                                                    └─ version

  01110111101111000000010010001101000101011001111000100110101011
  └───────────────────────── random_b ─────────────────────────┘

  time      1714417323358        48 bits  2024-04-29T19:02:03.358Z = 1970-01-01T00:00:00Z + 1714417323358 × 1ms
  version   7                    4 bits   constant
  random_a  2748                 12 bits  random
  variant   2                    2 bits   constant
  random_b  2156943997533653419  62 bits  random

  uuid        018f2b3c-4d5e-7abc-9def-0123456789ab  canonical, as given
  hex_padded  018f2b3c4d5e7abc9def0123456789ab
";
    assert_drawn("uuid7", "018f2b3c-4d5e-7abc-9def-0123456789ab", expected).await;
}

#[tokio::test]
async fn a_uuid1_whose_time_is_in_three_pieces() {
    let expected = "
6ba7b810-9dad-11d1-80b4-00c04fd430c8
uuid1 (uuid)  1998-02-04T22:13:53.151182400Z  strong evidence, 30.3 bits

  01101011101001111011100000010000 1001110110101101 0001 000111010001 10 00000010110100
  └──────────── time ────────────┘ └──── time ────┘ └┬─┘ └── time ──┘ ├┘ └─────┬──────┘
                                                     │                │        └─ clock_sequence
                                                     │                └─ variant
                                                     └─ version

  000000001100000001001111110101000011000011001000
  └──────────────────── node ────────────────────┘

  time            131059232331511824  60 bits  1998-02-04T22:13:53.151182400Z = 1582-10-15T00:00:00Z + 131059232331511824 × 100ns
  version         1                   4 bits   constant
  variant         2                   2 bits   constant
  clock_sequence  180                 14 bits  sequence
  node            825973027016        48 bits  worker

  uuid        6ba7b810-9dad-11d1-80b4-00c04fd430c8  canonical, as given
  hex_padded  6ba7b8109dad11d180b400c04fd430c8
";
    assert_drawn("uuid1", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", expected).await;
}

#[tokio::test]
async fn other_readings_get_a_line_each() {
    let service = Service::start("").await;
    let drawing = drawn(&service, "175928847299117063", "").await.text();
    let (_, others) = drawing
        .split_once("\nor\n")
        .unwrap_or_else(|| panic!("{drawing}"));
    let json = service.get("/decode/175928847299117063").await.json();
    let read = json["matches"]
        .as_array()
        .unwrap()
        .iter()
        .skip(1)
        .map(|found| {
            format!(
                "  {} ({})",
                found["format"].as_str().unwrap(),
                found["encoding"].as_str().unwrap()
            )
        });
    let read: Vec<_> = read.collect();
    assert_eq!(others.lines().count(), read.len(), "{drawing}");
    assert!(
        others
            .lines()
            .zip(&read)
            .all(|(line, start)| line.starts_with(start)),
        "{read:?}: {drawing}"
    );
}

#[tokio::test]
async fn a_text_of_no_format_is_a_problem_also_for_people() {
    let answer = drawn(&Service::start("").await, "not-an-id", "").await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (404, Some("application/problem+json"))
    );
}
