//! Checks that bytes which are not a request do not disturb other callers.

use idmint_testing::http1::Client;
use idmint_testing::service::Home;

/// Returns `len` pseudorandom bytes, which depend only on `seed`.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn garbage_and_half_requests_leave_the_service_minting() {
    let home = Home::new();
    let mut service = home.start();
    service.wait_until_ready();
    let whole = "POST /ids/snowflake?count=2 HTTP/1.1\r\nhost: localhost\r\ncontent-length: 11\r\n\r\n{\"count\":2}";
    let mut held = Vec::new();
    for seed in 0..40 {
        let mut client = Client::connect(service.address());
        client.send(noise(seed, 1 << (seed % 15)));
        held.push(client);
    }
    for end in 0..whole.len() {
        let mut client = Client::connect(service.address());
        client.send(&whole[..end]);
        // Keep half of the connections open, and close the others immediately.
        if end % 2 == 0 {
            held.push(client);
        }
    }
    assert_eq!(service.mint("snowflake?count=100").len(), 100);
    assert!(service.is_running());
    assert!(!service.log().contains("panic"), "{}", service.log());
    drop(held);
    assert_eq!(service.get("/health/ready").status, 200);
}

#[test]
fn requests_sent_without_waiting_are_answered_in_their_order() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let mut client = Client::connect(service.address());
    let requests: String = (1..=50)
        .map(|count| {
            format!("POST /ids/snowflake?count={count} HTTP/1.1\r\nhost: localhost\r\n\r\n")
        })
        .collect();
    client.send(requests);
    for count in 1..=50 {
        let answer = client.receive();
        assert_eq!(answer.json()["ids"].as_array().unwrap().len(), count);
    }
}
