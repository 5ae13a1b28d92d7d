//! Mints 10^9 ids over one connection, as rows, and checks that each id occurs exactly once.

use std::time::Instant;

use idmint_wire::MintRows;

use idmint_testing::http1::{Client, request};
use idmint_testing::service::{Home, Service};

/// A format like `snowflake` with a sequence of 22 bits, which no machine can use up.
const WIDE: &str = r#"
[formats.snowflake-22]
like = "snowflake"
fields = [{ name = "time", kind = "time", bits = 42 }, { name = "sequence", kind = "sequence", bits = 22 }]
"#;

const IDS: u64 = 1_000_000_000;
const COUNT: u64 = 100_000;
/// The number of requests that are sent before the first response is read.
const DEPTH: usize = 16;

#[test]
fn a_thousand_million_ids_as_rows_are_each_there_once() {
    let home = Home::new();
    let service = Service::start(home.serve_with(WIDE));
    service.wait_until_ready();
    let accept = "accept: application/vnd.idmint.rows+json\r\n";
    let mint = request(&format!("POST /ids/snowflake-22?count={COUNT}"), accept, "");
    let mut client = Client::connect(service.address());
    let answers = usize::try_from(IDS / COUNT).unwrap();
    let (mut spans, mut bytes) = (Vec::with_capacity(2 * answers), 0);
    let begun = Instant::now();
    (0..DEPTH).for_each(|_| client.send(&mint));
    for received in 0..answers {
        let answer = client.receive();
        assert_eq!(answer.status, 200, "{answer:?}");
        if received + DEPTH < answers {
            client.send(&mint);
        }
        bytes += answer.body.len();
        let rows: MintRows = serde_json::from_slice(&answer.body).unwrap();
        spans.extend(rows.rows.iter().map(|row| {
            assert_eq!(row.step, "1", "{row:?}");
            let first: u128 = row.first.parse().unwrap();
            (first, first + u128::from(row.count))
        }));
    }
    let passed = begun.elapsed();
    spans.sort_unstable();
    assert!(
        spans.windows(2).all(|pair| pair[0].1 <= pair[1].0),
        "an id came twice"
    );
    let ids: u128 = spans.iter().map(|(first, end)| end - first).sum();
    println!(
        "{ids} ids in {} rows and {bytes} bytes, within {passed:?}",
        spans.len()
    );
    assert_eq!(ids, u128::from(IDS));
}
