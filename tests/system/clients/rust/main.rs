//! Uses the client that OpenAPI Generator makes from `openapi-3.0.yaml`. The arguments are the URL
//! of the service, a ledger, and a file with a chain.

use std::collections::HashMap;
use std::fmt::Debug;

use ids::apis::configuration::Configuration;
use ids::apis::ids_api::MintError;
use ids::apis::{Error, conjunctions_api, formats_api, ids_api, ledgers_api, operation_api};
use ids::models::{AppendRequest, Event, MintRequest, Report, Slug};
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use serde_json::json;

fn step(name: &str, ok: bool, seen: impl Debug) {
    assert!(ok, "failed: {name}: {seen:?}");
    println!("step: {name}");
}

fn gap(name: &str, ok: bool, seen: impl Debug) {
    assert!(ok, "failed: {name}: {seen:?}");
    println!("gap: {name}");
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [url, known, chain] = std::env::args().skip(1).collect::<Vec<_>>().try_into().expect("three arguments");
    let client = &Configuration { base_path: url, ..Configuration::new() };

    let one = ids_api::mint(client, "snowflake", None, None, None, None, None, None, None).await?;
    step("an id without a body", one.ids.len() == 1, &one);
    let body = MintRequest { count: Some(3) };
    let three = ids_api::mint(client, "snowflake", None, None, None, None, None, None, Some(body)).await?;
    step("ids with a body", three.ids.len() == 3, &three);
    let many = ids_api::mint(client, "payment", Some(1000), None, None, None, None, None, None).await?;
    step("a batch", many.count == 1000 && many.ids.len() == 1000, many.count);
    let typed = ids_api::mint(client, "typeid", None, None, Some("user"), None, None, None, None).await?;
    step("an id of a type", typed.ids.len() == 1 && typed.ids[0].starts_with("user_"), typed);
    let read = ids_api::decode(client, &one.ids[0], Some("snowflake"), None, None, None).await?;
    step("a decode", read.matches[0].canonical == one.ids[0], read);
    let bulk = ids_api::decode_many(client, three.ids, None, None, None, None, None, None).await?;
    let is_read = bulk.iter().all(|reading| reading.format.as_ref().unwrap().as_deref() == Some("snowflake"));
    step("decodes", bulk.len() == 3 && is_read, bulk);
    let opened = Event::new(HashMap::new(), "Opened".to_owned());
    let ledger = ledgers_api::create_ledger(client, opened, None, Some("create"), None).await?;
    step("a ledger", ledger.events == 1, &ledger);
    let ordered = Event::new(HashMap::from([("order".to_owned(), json!(["1"]))]), "Ordered".to_owned());
    let append = || {
        let order = AppendRequest::new(vec![ordered.clone()]);
        ledgers_api::append(client, &ledger.ledger, order, None, None, Some("append"), None)
    };
    let first = append().await?;
    step("an append", first.ids.len() == 1, &first);
    let again = append().await?;
    step("its replay", again.ids == first.ids, again);
    // For a successful request, the client returns only the body, so the status cannot be checked.
    gap("told apart by status", true, ());
    let checked = ledgers_api::verify_ledger(client, &known, chain.into(), None, None).await;
    let is_untyped = matches!(&checked, Err(Error::ResponseError(refusal)) if refusal.status == 415);
    gap("a chain checked", is_untyped, checked);
    let report = Report::new(25544, 48274, "2024-02-01T00:00:00Z".to_owned());
    let reports = conjunctions_api::report(client, vec![report.clone()], None, None, None, None, None, None).await?;
    step("a report", reports.ids == ["zwwqlzz-pjjmxmd-lkpvwq"], &reports);
    let tca = "2024-02-01T01:00:00Z".to_owned();
    let later = Report { conjunction_event_id: reports.ids.first().cloned(), tca, ..report.clone() };
    let moved = conjunctions_api::report(client, vec![later], None, None, None, Some("keep"), None, None).await?;
    step("a report that moved by an hour", moved.details[0].tca_delta_us == Some(3_600_000_000), moved);
    let wrong = Report { secondary: report.primary, ..report.clone() };
    let some = conjunctions_api::report(client, vec![wrong, report], None, None, None, None, Some(true), None).await;
    // The lists of the client cannot contain null, but a refused report has a null id.
    let is_null_refused = matches!(&some, Err(Error::Serde(error)) if error.to_string().contains("null"));
    gap("reports, one of them wrong", is_null_refused, some);
    let refusal = ids_api::mint(client, "siq", None, None, Some("unknown"), None, None, None, None).await;
    let Err(Error::ResponseError(refusal)) = refusal else { panic!("failed: a refusal: {refusal:?}") };
    step("a refusal", refusal.status == 422, &refusal);
    let Some(MintError::Status400(problem) | MintError::Status422(problem)) = refusal.entity else {
        panic!("failed: its problem: {refusal:?}")
    };
    let is_of_type = problem.reason.as_deref() == Some("type");
    step("its problem", is_of_type && problem.r#type == "/problems/invalid-parameter", &problem);
    let slug: Slug = serde_json::from_value(json!(problem.r#type.trim_start_matches("/problems/")))?;
    // The client accepts any content type, and the service sends this page as text unless the
    // client requests JSON.
    let unset = operation_api::explain_problem(client, slug, None).await;
    let is_text = matches!(&unset, Err(Error::Serde(error)) if error.to_string().contains("text/plain"));
    let asking = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
    let asking = reqwest::Client::builder().default_headers(asking).build()?;
    let asking = Configuration { client: asking, ..client.clone() };
    let page = operation_api::explain_problem(&asking, slug, None).await?;
    gap("the page of its slug", is_text && page.status == 422 && !page.safe_action.is_empty(), unset);
    let formats = formats_api::list_formats(client, None, None, None, None).await?.formats;
    step("formats", formats.iter().any(|format| format.name == "snowflake"), formats);
    Ok(())
}
