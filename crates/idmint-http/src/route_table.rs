//! The table of all routes of the API.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::handler::Handler;
use axum::http::Method;
use axum::{Extension, routing};

use super::route::{RouteTable, Row, not_found, row};
use crate::access::{Need, Scope};
use crate::routes::documents::SheetOrigin;
use crate::routes::{
    conjunctions, decode, decode_many, documents, formats, health, inspect, ledger_events, ledgers,
    metrics, mint, numbers, problem_page, verify,
};
use idmint_service::Service;

/// Returns the rows of the route table, one for each operation of the API. The name of an operation
/// is its `operationId` in `openapi.yaml`, and its path is a label of its metrics. If `has_page` is
/// `false`, `/` returns the cheat sheet, a text with example requests, even to browsers.
fn rows(sheet_origin: SheetOrigin, has_page: bool) -> Vec<Row<Arc<Service>>> {
    use Need::{
        AnyLedger, Conjunctions, Ledger, Ledgers, MintFormat, Nothing, ResumedSeries, Series,
    };
    const DECODE: Need = Need::Scope(Scope::Decode);
    const DECODE_ONE: Need = Need::Format(Scope::Decode);
    const MINT: Need = Need::Scope(Scope::Mint);
    const NUMBER: Need = Need::Scope(Scope::Number);
    const METRICS: Need = Need::Everything(Scope::Metrics);
    let mut front = routing::get(documents::cheat_sheet);
    let mut page_file = routing::get(not_found);
    if has_page {
        front = routing::get(documents::front);
        page_file = routing::get(documents::page_file);
    }
    let front = front.layer(Extension(sheet_origin));
    vec![
        post("mint", mint::ROUTE, MintFormat, mint::route).audited(),
        get("decode", decode::ROUTE, DECODE, decode::decode),
        get("decode", decode::EMPTY_ROUTE, DECODE, decode::decode),
        post("decodeMany", "/decode", DECODE, decode_many::decode_many),
        post("inspect", "/inspect", DECODE, inspect::inspect),
        get("encode", decode::ENCODE_ROUTE, DECODE_ONE, decode::encode),
        get("listFormats", "/formats", DECODE, formats::list),
        get("getFormat", formats::ROUTE, DECODE_ONE, formats::one),
        get("getRange", formats::RANGE_ROUTE, DECODE_ONE, formats::range),
        post("createLedger", "/ledgers", AnyLedger, ledgers::create).audited(),
        get("listLedgers", "/ledgers", Ledgers, ledgers::list),
        get("showLedger", ledgers::ROUTE, Ledger, ledgers::one),
        post(
            "append",
            ledger_events::ROUTE,
            Ledger,
            ledger_events::append,
        )
        .audited(),
        get("listLedgerIds", ledgers::IDS_ROUTE, Ledger, ledgers::ids),
        get("showLedgerId", ledgers::ID_ROUTE, Ledger, ledgers::id),
        post("report", "/conjunctions", MINT, conjunctions::report).audited(),
        get(
            "listConjunctions",
            "/conjunctions",
            Conjunctions,
            conjunctions::list,
        ),
        get(
            "showConjunction",
            conjunctions::ROUTE,
            Conjunctions,
            conjunctions::one,
        ),
        post("verifyLedger", verify::ROUTE, Ledger, verify::verify),
        post("giveNumbers", numbers::ROUTE, Series, numbers::give).audited(),
        post("makeVoid", numbers::VOID_ROUTE, Series, numbers::make_void).audited(),
        post("closeSeries", numbers::CLOSE_ROUTE, Series, numbers::close).audited(),
        post(
            "resumeSeries",
            numbers::RESUME_ROUTE,
            ResumedSeries,
            numbers::resume,
        )
        .audited(),
        get("listSeries", "/numbers", NUMBER, numbers::list_series),
        get("listNumbers", numbers::ROUTE, Series, numbers::list),
        get("live", "/health/live", Nothing, health::live),
        get("ready", "/health/ready", Nothing, health::ready),
        get("metrics", "/metrics", METRICS, metrics::metrics),
        get("describe", "/openapi.yaml", Nothing, documents::openapi),
        get(
            "describeIn30",
            "/openapi-3.0.yaml",
            Nothing,
            documents::openapi_3_0,
        ),
        get(
            "explainProblem",
            problem_page::ROUTE,
            Nothing,
            problem_page::problem_page,
        ),
        row("front", Method::GET, "/", Nothing, front),
        row(
            "pageFile",
            Method::GET,
            documents::PAGE_FILE_ROUTE,
            Nothing,
            page_file,
        ),
    ]
}

/// Returns the row of the route table for a `GET` operation.
fn get<A: 'static>(
    name: &'static str,
    path: &'static str,
    need: Need,
    handler: impl Handler<A, Arc<Service>>,
) -> Row<Arc<Service>> {
    row(name, Method::GET, path, need, routing::get(handler))
}

/// Returns the row of the route table for a `POST` operation.
fn post<A: 'static>(
    name: &'static str,
    path: &'static str,
    need: Need,
    handler: impl Handler<A, Arc<Service>>,
) -> Row<Arc<Service>> {
    row(name, Method::POST, path, need, routing::post(handler))
}

/// Returns the name, method and path of every operation.
pub fn operations() -> Vec<(&'static str, Method, &'static str)> {
    rows(SheetOrigin::of(None), true)
        .into_iter()
        .map(|row| (row.name, row.method, row.path))
        .collect()
}

/// Returns the method and path of every operation.
pub fn paths() -> Vec<(Method, &'static str)> {
    rows(SheetOrigin::of(None), true)
        .iter()
        .map(Row::operation)
        .collect()
}

/// Returns the route table of a service that listens at this address. `has_page` is `true` if the
/// service has the page for browsers.
pub(super) fn route_table(
    service: &Arc<Service>,
    address: Option<(&str, SocketAddr)>,
    has_page: bool,
) -> RouteTable {
    RouteTable::new(rows(SheetOrigin::of(address), has_page), service)
}
