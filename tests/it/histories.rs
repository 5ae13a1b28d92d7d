//! Reports a thousand conjunctions over seven days with drifting times, and counts how many ids
//! each conjunction gets.

use std::collections::HashSet;

use idmint_core::time::UnixTime;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::service::Service;
use crate::support::post_request;

const HISTORIES: usize = 1_000;

/// The number of reports of each conjunction: three per day for seven days.
const ROUNDS: usize = 21;

/// The base time of the test, 2040-01-08T00:00:00Z, in microseconds since 1970.
const BASE: i64 = 2_209_593_600_000_000;

/// Draws the times of all reports of one conjunction. The time drifts in ever smaller steps,
/// because the orbits become better known. The first steps are seconds long, and the last ones are
/// milliseconds long. No step is as long as a minute.
fn drift(random: &mut StdRng, begins: i64) -> Vec<i64> {
    let mut at = begins;
    let step = |round: usize| 8_000_000_i64 / (1 << (round / 2));
    (0..ROUNDS)
        .map(|round| {
            at += random.random_range(-step(round)..=step(round));
            at
        })
        .collect()
}

/// Returns the times of all conjunctions, with one list for each round of reports.
fn rounds() -> Vec<Vec<i64>> {
    let mut random = StdRng::seed_from_u64(508);
    let begins = |history: usize| BASE + 97_000_003 * i64::try_from(history).unwrap();
    let histories: Vec<_> = (0..HISTORIES)
        .map(|history| drift(&mut random, begins(history)))
        .collect();
    (0..ROUNDS)
        .map(|round| histories.iter().map(|times| times[round]).collect())
        .collect()
}

/// Sends the reports of every conjunction, round by round, each round in another order. `query` is
/// added to the path. If `sends_id` is `true`, each report also contains the first id of its
/// conjunction.
///
/// Returns the responses for each conjunction.
async fn report_all(query: &str, sends_id: bool) -> Vec<Vec<Value>> {
    let service = Service::start("").await;
    let mut random = StdRng::seed_from_u64(7);
    let mut told: Vec<Vec<Value>> = vec![Vec::new(); HISTORIES];
    for times in rounds() {
        let mut order: Vec<usize> = (0..HISTORIES).collect();
        order.shuffle(&mut random);
        let report = |history: &usize| {
            let tca = UnixTime::from_nanos(i128::from(times[*history]) * 1_000)
                .to_text(6)
                .unwrap();
            // Each pair of objects has several conjunctions. In half of these, the two objects are
            // swapped.
            let (pair, is_swapped) = (history / 8, history / 4 % 2 == 1);
            let (one, other) = (2 * pair + 1, 2 * pair + 2);
            let [primary, secondary] = if is_swapped {
                [other, one]
            } else {
                [one, other]
            };
            let mut report = json!({ "tca": tca, "primary": primary, "secondary": secondary });
            if let Some(first) = told[*history].first().filter(|_| sends_id) {
                report["CONJUNCTION_EVENT_ID"] = first["id"].clone();
            }
            report
        };
        let body = Value::Array(order.iter().map(report).collect()).to_string();
        let path = format!("/ids/conjunction{query}");
        let answer = service
            .exchange(&post_request(
                &path,
                "content-type: application/json\r\n",
                &body,
            ))
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        for (history, detail) in order
            .iter()
            .zip(answer.json()["details"].as_array().unwrap())
        {
            told[*history].push(detail.clone());
        }
    }
    told
}

fn ids(told: &[Value]) -> HashSet<&str> {
    told.iter()
        .map(|detail| detail["id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn of_a_thousand_histories_that_keep_their_ids_at_most_one_in_a_hundred_is_split() {
    let told = report_all("?noted=keep", true).await;
    let split = told.iter().filter(|told| ids(told).len() > 1).count();
    assert!(split <= HISTORIES / 100, "{split} of {HISTORIES} are split");
    let distinct: HashSet<&str> = told
        .iter()
        .map(|told| told[0]["id"].as_str().unwrap())
        .collect();
    assert_eq!(distinct.len(), HISTORIES, "and no two are one");
    let moved = told
        .iter()
        .flatten()
        .filter(|detail| detail["tca_delta_us"].as_i64().unwrap().abs() > 1_000_000);
    assert!(
        moved.count() > HISTORIES,
        "many of their times have drifted out of reach"
    );
}

#[tokio::test]
async fn every_history_that_is_split_is_listed_as_near() {
    for (query, sends_id) in [("", false), ("", true)] {
        let told = report_all(query, sends_id).await;
        let mut split = 0;
        for told in &told {
            for (round, detail) in told
                .iter()
                .enumerate()
                .filter(|(_, detail)| detail["created"] == true)
                .skip(1)
            {
                split += 1;
                let before = ids(&told[..round]);
                let near = detail["near"]
                    .as_array()
                    .unwrap_or_else(|| panic!("nothing is near {detail}"));
                assert!(
                    near.iter().any(|id| before.contains(id.as_str().unwrap())),
                    "{detail}: {before:?}"
                );
            }
        }
        assert!(
            split > HISTORIES,
            "only {split} were split, so this says little"
        );
    }
}
