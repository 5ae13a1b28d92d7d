//! Every route of the API, in one table.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Extension;
use axum::http::Method;
use axum::routing::{get, post};

use super::fallback::not_found;
use super::route_table::{RouteTable, Row, row};
use crate::http::access::{Need, Scope};
use crate::http::routes::decoding::{decode, decode_many, inspect};
use crate::http::routes::documents::SheetOrigin;
use crate::http::routes::{
    conjunctions, documents, formats, health, ledger_events, ledgers, metrics, mint, numbers,
    problem_page, verify,
};
use crate::service::Service;

/// Every operation. Its name is its `operationId` in `openapi.yaml`, its path the label by which it is counted. Without the page
/// browsers are answered as anybody else is.
fn rows(sheet_origin: SheetOrigin, has_page: bool) -> Vec<Row<Arc<Service>>> {
    const DECODE: Need = Need::Scope(Scope::Decode);
    const MINT: Need = Need::Scope(Scope::Mint);
    let (front, page_file) = if has_page {
        (get(documents::front), get(documents::page_file))
    } else {
        (get(documents::cheat_sheet), get(not_found))
    };
    vec![
        row(
            "mint",
            Method::POST,
            mint::ROUTE,
            Need::MintFormat,
            post(mint::route),
        )
        .audited(),
        row(
            "decode",
            Method::GET,
            decode::ROUTE,
            DECODE,
            get(decode::decode),
        ),
        row(
            "decode",
            Method::GET,
            decode::EMPTY_ROUTE,
            DECODE,
            get(decode::decode),
        ),
        row(
            "decodeMany",
            Method::POST,
            "/decode",
            DECODE,
            post(decode_many::decode_many),
        ),
        row(
            "inspect",
            Method::POST,
            "/inspect",
            DECODE,
            post(inspect::inspect),
        ),
        row(
            "encode",
            Method::GET,
            decode::ENCODE_ROUTE,
            Need::Format(Scope::Decode),
            get(decode::encode),
        ),
        row(
            "listFormats",
            Method::GET,
            "/formats",
            DECODE,
            get(formats::list),
        ),
        row(
            "getFormat",
            Method::GET,
            formats::ROUTE,
            Need::Format(Scope::Decode),
            get(formats::one),
        ),
        row(
            "getRange",
            Method::GET,
            formats::RANGE_ROUTE,
            Need::Format(Scope::Decode),
            get(formats::range),
        ),
        row(
            "createLedger",
            Method::POST,
            "/ledgers",
            Need::AnyLedger,
            post(ledgers::create),
        )
        .audited(),
        row(
            "listLedgers",
            Method::GET,
            "/ledgers",
            Need::Ledgers,
            get(ledgers::list),
        ),
        row(
            "showLedger",
            Method::GET,
            ledgers::ROUTE,
            Need::Ledger,
            get(ledgers::one),
        ),
        row(
            "append",
            Method::POST,
            ledger_events::ROUTE,
            Need::Ledger,
            post(ledger_events::append),
        )
        .audited(),
        row(
            "listLedgerIds",
            Method::GET,
            ledgers::IDS_ROUTE,
            Need::Ledger,
            get(ledgers::ids),
        ),
        row(
            "showLedgerId",
            Method::GET,
            ledgers::ID_ROUTE,
            Need::Ledger,
            get(ledgers::id),
        ),
        row(
            "report",
            Method::POST,
            "/conjunctions",
            MINT,
            post(conjunctions::report),
        )
        .audited(),
        row(
            "listConjunctions",
            Method::GET,
            "/conjunctions",
            Need::Conjunctions,
            get(conjunctions::list),
        ),
        row(
            "showConjunction",
            Method::GET,
            conjunctions::ROUTE,
            Need::Conjunctions,
            get(conjunctions::one),
        ),
        row(
            "verifyLedger",
            Method::POST,
            verify::ROUTE,
            Need::Ledger,
            post(verify::verify),
        ),
        row(
            "giveNumbers",
            Method::POST,
            numbers::ROUTE,
            Need::Series,
            post(numbers::give),
        )
        .audited(),
        row(
            "makeVoid",
            Method::POST,
            numbers::VOID_ROUTE,
            Need::Series,
            post(numbers::make_void),
        )
        .audited(),
        row(
            "listSeries",
            Method::GET,
            "/numbers",
            Need::Scope(Scope::Number),
            get(numbers::list_series),
        ),
        row(
            "listNumbers",
            Method::GET,
            numbers::ROUTE,
            Need::Series,
            get(numbers::list),
        ),
        row(
            "live",
            Method::GET,
            "/health/live",
            Need::Nothing,
            get(health::live),
        ),
        row(
            "ready",
            Method::GET,
            "/health/ready",
            Need::Nothing,
            get(health::ready),
        ),
        row(
            "metrics",
            Method::GET,
            "/metrics",
            Need::Everything(Scope::Metrics),
            get(metrics::metrics),
        ),
        row(
            "describe",
            Method::GET,
            "/openapi.yaml",
            Need::Nothing,
            get(documents::openapi),
        ),
        row(
            "describeIn30",
            Method::GET,
            "/openapi-3.0.yaml",
            Need::Nothing,
            get(documents::openapi_3_0),
        ),
        row(
            "explainProblem",
            Method::GET,
            problem_page::ROUTE,
            Need::Nothing,
            get(problem_page::problem_page),
        ),
        row(
            "front",
            Method::GET,
            "/",
            Need::Nothing,
            front.layer(Extension(sheet_origin)),
        ),
        row(
            "pageFile",
            Method::GET,
            documents::PAGE_FILE_ROUTE,
            Need::Nothing,
            page_file,
        ),
    ]
}

/// Name, method and path of every operation.
pub fn operations() -> Vec<(&'static str, Method, &'static str)> {
    rows(SheetOrigin::of(None), true)
        .into_iter()
        .map(|row| (row.name, row.method, row.path))
        .collect()
}

/// Method and path of every operation.
pub fn paths() -> Vec<(Method, &'static str)> {
    rows(SheetOrigin::of(None), true)
        .iter()
        .map(Row::operation)
        .collect()
}

/// The table of a service that listens at this address by this scheme, and has the page or not.
pub(super) fn route_table(
    service: &Arc<Service>,
    address: Option<(&str, SocketAddr)>,
    has_page: bool,
) -> RouteTable {
    RouteTable::new(rows(SheetOrigin::of(address), has_page), service)
}
