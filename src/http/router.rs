//! Every route of the API, in one table.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::Method;
use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Router};

use super::edge::with_fallbacks;
use crate::http::routes::documents::SheetHost;
use crate::http::routes::{
    decode, decode_many, documents, formats, health, ledgers, metrics, mint, problem_page, verify,
};
use crate::service::Service;

/// Path, method and handler of every route.
fn routes(sheet_host: SheetHost) -> Vec<(&'static str, Method, MethodRouter<Arc<Service>>)> {
    vec![
        (mint::ROUTE, Method::POST, post(mint::route)),
        (decode::ROUTE, Method::GET, get(decode::decode)),
        (decode::EMPTY_ROUTE, Method::GET, get(decode::decode)),
        ("/decode", Method::POST, post(decode_many::decode_many)),
        ("/formats", Method::GET, get(formats::list)),
        (formats::ROUTE, Method::GET, get(formats::one)),
        (formats::RANGE_ROUTE, Method::GET, get(formats::range)),
        ("/ledgers", Method::POST, post(ledgers::create)),
        ("/ledgers", Method::GET, get(ledgers::list)),
        (ledgers::ROUTE, Method::GET, get(ledgers::one)),
        (ledgers::IDS_ROUTE, Method::GET, get(ledgers::ids)),
        (ledgers::ID_ROUTE, Method::GET, get(ledgers::id)),
        (verify::ROUTE, Method::POST, post(verify::verify)),
        ("/health/live", Method::GET, get(health::live)),
        ("/health/ready", Method::GET, get(health::ready)),
        ("/metrics", Method::GET, get(metrics::metrics)),
        ("/openapi.yaml", Method::GET, get(documents::openapi)),
        (problem_page::ROUTE, Method::GET, get(problem_page::problem_page)),
        ("/", Method::GET, get(documents::cheat_sheet).layer(Extension(sheet_host))),
    ]
}

/// Path and method of every route.
pub fn paths() -> Vec<(Method, &'static str)> {
    routes(SheetHost::of(None)).into_iter().map(|(path, method, _)| (method, path)).collect()
}

/// The table of routes, of a service that listens at this address.
pub(super) fn router(service: Arc<Service>, address: Option<SocketAddr>) -> Router {
    let routes = routes(SheetHost::of(address))
        .into_iter()
        .fold(Router::new(), |router, (path, _, handler)| router.route(path, handler));
    with_fallbacks(routes.with_state(service))
}
