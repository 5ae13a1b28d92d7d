//! `GET /formats` and `GET /formats/{format}`: what is minted and read here.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;

use super::decode::json;
use super::mint::unknown_format;
use super::problem::Problem;
use super::query::{no_query, percent_decoded};
use super::representation::{MediaType, choose};
use super::service::Service;
use crate::id::Format;
use crate::wire::{FormatInfo, FormatList};

/// All formats, in the order in which decoding tries them.
///
/// # Errors
/// 406, 422.
pub(super) async fn list(State(service): State<Arc<Service>>, request: Request) -> Result<Response<Body>, Problem> {
    choose(request.headers(), &[MediaType::Json])?;
    no_query(request.uri())?;
    let formats = service.decoder.formats().iter().map(|format| info(&service, format)).collect();
    Ok(json(&FormatList { formats }))
}

/// One format.
///
/// # Errors
/// 404 `unknown-format`, 406, 422.
pub(super) async fn one(State(service): State<Arc<Service>>, request: Request) -> Result<Response<Body>, Problem> {
    choose(request.headers(), &[MediaType::Json])?;
    no_query(request.uri())?;
    let name = percent_decoded(request.uri().path().strip_prefix("/formats/").unwrap_or_default())?;
    let format = service.decoder.formats().iter().find(|format| format.name == name);
    let format = format.ok_or_else(|| unknown_format(&service, &name))?;
    Ok(json(&info(&service, format)))
}

fn info(service: &Service, format: &Format) -> FormatInfo {
    let configured = u64::from(service.limits.batch_max);
    let workers = service.mint.workers(&format.name);
    let batch_max = service.mint.format(&format.name).filter(|_| format.rule.is_counted()).map(|(position, _)| {
        let most = service.mint.count_max(position, 0).unwrap_or(configured);
        most.min(configured)
    });
    FormatInfo::new(format, workers, batch_max)
}
