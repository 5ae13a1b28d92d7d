//! `GET /openapi.yaml` and `GET /`: what this service is and how to ask it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Response, header};

use super::problem::Problem;
use super::query::no_query;
use super::representation::{MediaType, choose};
use super::service::Service;

const OPENAPI: &str = include_str!("../../openapi.yaml");

/// The description of the interface.
///
/// # Errors
/// 406, 422.
pub(super) async fn openapi(request: Request) -> Result<Response<Body>, Problem> {
    let media = choose(request.headers(), &[MediaType::Yaml, MediaType::Text])?;
    no_query(request.uri())?;
    Ok(document(media, OPENAPI.to_owned()))
}

/// The few requests that one needs to know.
///
/// # Errors
/// 406, 422.
pub(super) async fn cheat_sheet(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    choose(request.headers(), &[MediaType::Text, MediaType::Html])?;
    no_query(request.uri())?;
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost:8080");
    Ok(document(MediaType::Text, sheet(&service, host)))
}

fn sheet(service: &Service, host: &str) -> String {
    let names: Vec<_> = service.mint.formats().map(|(format, ..)| format.name.as_str()).collect();
    let version = env!("CARGO_PKG_VERSION");
    let names = names.join(" ");
    format!(
        "idmint {version}: mints ids and reads them back. Formats here: {names}\n\
         \n\
         one id           curl -X POST http://{host}/ids/snowflake\n\
         many             curl -X POST 'http://{host}/ids/payment?count=5'\n\
         one a line       curl -X POST -H 'Accept: text/plain' 'http://{host}/ids/flax?count=5'\n\
         another spelling curl -X POST 'http://{host}/ids/snowflake?encoding=hex_padded'\n\
         a type of SIQ    curl -X POST 'http://{host}/ids/siq?type=message'\n\
         what is this id  curl http://{host}/decode/175928847299117063\n\
         all formats      curl http://{host}/formats\n\
         the interface    curl http://{host}/openapi.yaml\n"
    )
}

fn document(media: MediaType, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media.content_type()));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
