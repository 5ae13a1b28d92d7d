//! `GET /openapi.yaml`, `GET /openapi-3.0.yaml`, `GET /` and `GET /page/{file}`: documents that
//! describe this service and its API.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};

use crate::answer::{Answer, MediaType, Problem, Slug, negotiate, no_store};
use crate::page;
use crate::request::{no_query, path_params};
use idmint_core::id::Format;
use idmint_service::Service;

pub(crate) const PAGE_FILE_ROUTE: &str = "/page/{file}";

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The scheme and address of the service in the cheat sheet. They come from the listening address
/// and not from the request's host. Readers paste commands from the sheet into a terminal, and an
/// attacker could choose that host.
#[derive(Debug, Clone)]
pub(crate) struct SheetOrigin(Arc<str>);

impl SheetOrigin {
    /// Returns the origin for a service that listens at this address. If the address is unspecified
    /// or unknown, the origin is on `localhost`, because the reader is assumed to be on the same
    /// machine.
    pub(crate) fn of(address: Option<(&str, SocketAddr)>) -> Self {
        let origin = match address {
            Some((scheme, address)) if !address.ip().is_unspecified() => {
                format!("{scheme}://{address}")
            }
            Some((scheme, address)) => format!("{scheme}://localhost:{}", address.port()),
            None => "http://localhost:8080".to_owned(),
        };
        Self(origin.into())
    }
}

const OPENAPI: &str = include_str!("../../openapi.yaml");
/// The description in OpenAPI 3.0, for client generators that do not support a later version.
const OPENAPI_3_0: &str = include_str!("../../openapi-3.0.yaml");

/// Returns the OpenAPI description.
///
/// # Errors
/// Returns 406 or 422 if the request is not acceptable or has parameters.
pub(crate) async fn openapi(request: Request) -> Answer {
    description(&request, OPENAPI)
}

/// Returns the description in OpenAPI 3.0, for client generators that do not support a later
/// version.
///
/// # Errors
/// Returns 406 or 422 if the request is not acceptable or has parameters.
pub(crate) async fn openapi_3_0(request: Request) -> Answer {
    description(&request, OPENAPI_3_0)
}

fn description(request: &Request, text: &'static str) -> Answer {
    let media = negotiate(request.headers(), &[MediaType::Yaml, MediaType::Text])?;
    no_query(request.uri())?;
    Ok(no_store(media, text))
}

/// Returns the web page to a browser, and the cheat sheet, a text with example requests, to other
/// callers. The page ignores parameters, because other sites add some to links, such as
/// `utm_source`.
///
/// # Errors
/// Returns 406 if the request is not acceptable, and 422 if another caller sends parameters.
pub(crate) async fn front(
    service: State<Arc<Service>>,
    origin: Extension<SheetOrigin>,
    request: Request,
) -> Answer {
    match negotiate(request.headers(), &[MediaType::Text, MediaType::Html])? {
        MediaType::Html => Ok(page::answer(page::front(), request.headers())),
        _ => cheat_sheet(service, origin, request).await,
    }
}

/// Returns a file of the web page, such as a script.
///
/// # Errors
/// Returns 404 if the file does not exist, and 422 if the request has parameters.
pub(crate) async fn page_file(request: Request) -> Answer {
    let [name] = path_params(PAGE_FILE_ROUTE, request.uri())?;
    no_query(request.uri())?;
    let file = page::file_named(&name).ok_or_else(|| {
        Problem::new(Slug::NotFound, format!("the page has no file {name:?}"))
            .reason("unknown_file")
    })?;
    Ok(page::answer(file, request.headers()))
}

/// Returns the cheat sheet: the most important requests, ready to paste into a terminal.
///
/// # Errors
/// Returns 406 or 422 if the request is not acceptable or has parameters.
pub(crate) async fn cheat_sheet(
    State(service): State<Arc<Service>>,
    Extension(SheetOrigin(origin)): Extension<SheetOrigin>,
    request: Request,
) -> Answer {
    let media = negotiate(request.headers(), &[MediaType::Text])?;
    no_query(request.uri())?;
    Ok(no_store(
        media,
        sheet(service.decoding().formats(), &origin),
    ))
}

/// Returns the text of the cheat sheet, about ten lines. Each line uses a format and an encoding of
/// this service.
fn sheet(formats: &[Arc<Format>], origin: &str) -> String {
    let minted = formats.iter().filter(|format| format.is_minted());
    let names: Vec<_> = minted.map(|format| format.name.as_str()).collect();
    let counted: Vec<&Format> = formats
        .iter()
        .map(AsRef::as_ref)
        .filter(|format| format.is_minted() && format.rule.is_counted())
        .collect();
    let mut text = format!(
        "idmint {} mints ids and reads them back. Here: {}\n\n",
        VERSION,
        names.join(" ")
    );
    let ids = format!("{origin}/ids");
    let mut line = |what: &str, request: String| text += &format!("{what:<16}  curl {request}\n");
    let plain = counted
        .iter()
        .filter(|format| !format.has_types() && !format.prefixes.are_types());
    if let Some(format) = plain
        .clone()
        .find(|format| format.name == "snowflake")
        .or(plain.clone().next())
    {
        let name = &format.name;
        line("one id", format!("-X POST {ids}/{name}"));
        line("many", format!("-X POST '{ids}/{name}?count=5'"));
        line(
            "one a line",
            format!("-X POST -H 'Accept: text/plain' '{ids}/{name}?count=5'"),
        );
        let encoding = format
            .encodings
            .last()
            .expect("a format has an encoding")
            .name();
        line(
            "another encoding",
            format!("-X POST '{ids}/{name}?encoding={encoding}'"),
        );
        let id = format!("$(curl -s -X POST -H 'Accept: text/plain' {ids}/{name})");
        line("what is this id", format!("{origin}/decode/{id}"));
    }
    let types = counted.iter().flat_map(|format| {
        format
            .variants
            .iter()
            .map(move |variant| (&format.name, variant))
    });
    if let Some((name, of_type)) = types
        .filter_map(|(name, variant)| Some((name, variant.name.as_ref()?)))
        .next()
    {
        line(
            "one of a type",
            format!("-X POST '{ids}/{name}?type={of_type}'"),
        );
    }
    line("all formats", format!("{origin}/formats"));
    line("the interface", format!("{origin}/openapi.yaml"));
    text
}
