//! Every route of the API, in one table.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::Method;
use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Router};

use super::edge::with_fallbacks;
use crate::http::access::{Need, Scope};
use crate::http::routes::documents::SheetOrigin;
use crate::http::routes::{
    conjunctions, decode, decode_many, documents, formats, health, ledger_events, ledgers, metrics, mint, problem_page,
    verify,
};
use crate::service::Service;

/// One route: its path and method, what a caller must be permitted, and what answers.
type Row = (&'static str, Method, Need, MethodRouter<Arc<Service>>);

/// Every route.
fn routes(sheet_origin: SheetOrigin) -> Vec<Row> {
    const DECODE: Need = Need::Scope(Scope::Decode);
    vec![
        (mint::ROUTE, Method::POST, Need::MintFormat, post(mint::route)),
        (decode::ROUTE, Method::GET, DECODE, get(decode::decode)),
        (decode::EMPTY_ROUTE, Method::GET, DECODE, get(decode::decode)),
        ("/decode", Method::POST, DECODE, post(decode_many::decode_many)),
        ("/formats", Method::GET, DECODE, get(formats::list)),
        (formats::ROUTE, Method::GET, Need::Format(Scope::Decode), get(formats::one)),
        (formats::RANGE_ROUTE, Method::GET, Need::Format(Scope::Decode), get(formats::range)),
        ("/ledgers", Method::POST, Need::AnyLedger, post(ledgers::create)),
        ("/ledgers", Method::GET, Need::Ledgers, get(ledgers::list)),
        (ledgers::ROUTE, Method::GET, Need::Ledger, get(ledgers::one)),
        (ledger_events::ROUTE, Method::POST, Need::Ledger, post(ledger_events::append)),
        (ledgers::IDS_ROUTE, Method::GET, Need::Ledger, get(ledgers::ids)),
        (ledgers::ID_ROUTE, Method::GET, Need::Ledger, get(ledgers::id)),
        ("/conjunctions", Method::POST, Need::Scope(Scope::Mint), post(conjunctions::report)),
        ("/conjunctions", Method::GET, Need::Conjunctions, get(conjunctions::list)),
        (conjunctions::ROUTE, Method::GET, Need::Conjunctions, get(conjunctions::one)),
        (verify::ROUTE, Method::POST, Need::Ledger, post(verify::verify)),
        ("/health/live", Method::GET, Need::Nothing, get(health::live)),
        ("/health/ready", Method::GET, Need::Nothing, get(health::ready)),
        ("/metrics", Method::GET, Need::Everything(Scope::Metrics), get(metrics::metrics)),
        ("/openapi.yaml", Method::GET, Need::Nothing, get(documents::openapi)),
        ("/openapi-3.0.yaml", Method::GET, Need::Nothing, get(documents::openapi_3_0)),
        (problem_page::ROUTE, Method::GET, Need::Nothing, get(problem_page::problem_page)),
        ("/", Method::GET, Need::Nothing, get(documents::cheat_sheet).layer(Extension(sheet_origin))),
    ]
}

/// Path and method of every route.
pub fn paths() -> Vec<(Method, &'static str)> {
    routes(SheetOrigin::of(None)).into_iter().map(|(path, method, ..)| (method, path)).collect()
}

/// What a caller must be permitted on each path, by method.
pub(super) fn needs() -> Vec<(&'static str, Method, Need)> {
    routes(SheetOrigin::of(None)).into_iter().map(|(path, method, need, _)| (path, method, need)).collect()
}

/// The table of routes, of a service that listens at this address by this scheme.
pub(super) fn router(service: Arc<Service>, address: Option<(&str, SocketAddr)>) -> Router {
    let routes = routes(SheetOrigin::of(address))
        .into_iter()
        .fold(Router::new(), |router, (path, .., handler)| router.route(path, handler));
    with_fallbacks(routes.with_state(service))
}
