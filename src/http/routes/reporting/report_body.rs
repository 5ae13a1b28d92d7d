//! A body of reports: admitted by how long it is, read, and paid for until it is dropped.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::request::Parts;
use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use super::report_order::BODY_TYPES;
use crate::http::answer::{MediaType, Problem, media_type_of_body};
use crate::http::request::{payer_of, read_paid_body, report_count_max};
use crate::service::{BulkPass, Charge, Requests, Service};

/// The longest body of reports, in bytes.
const BODY_LEN_MAX: usize = 16 * 1024 * 1024;

/// A longer body is long work whatever is in it, and admitted before it is read.
const BODY_LEN_AT_ONCE_MAX: usize = 64 * 1024;

/// What reports take once they are read, beside the bytes that they are read from, in hundredths of those. They take more; this
/// is what lets the longest body be paid for out of one peer's share.
const PARSE_PERCENT: usize = 70;

/// About what reading, grouping and answering takes for each byte.
const NANOS_FOR_A_BYTE: u64 = 25;

/// And for each report of a shorter body, where there may be much to say of little.
const NANOS_FOR_A_REPORT: u64 = 2_500;

/// Reports of a longer body are read, grouped and answered one request after the other: they take several times the body.
const LARGE_LEN: usize = 4 * 1024 * 1024;

/// The reports of a request as they came, before they are read.
pub(super) struct ReportBody {
    pub(super) bytes: Bytes,
    pub(super) media: MediaType,
    pub(super) permits: Permits,
}

/// What work on a body of reports holds until it is done.
pub(super) struct Permits {
    _memory: Option<Charge>,
    _turn: Option<OwnedSemaphorePermit>,
    bulk: Option<BulkPass>,
}

impl ReportBody {
    /// Admits and reads the body of a request.
    ///
    /// # Errors
    /// A [`Problem`]: it is too long, too slow or of another type, or there is too little of something.
    pub(super) async fn read(
        service: &Service,
        parts: &Parts,
        body: Body,
    ) -> Result<ReportBody, Problem> {
        let (payer, timeout) = (
            payer_of(service, &parts.extensions),
            service.limits().body_timeout,
        );
        let requests = &service.load().requests;
        let declared_len = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        let mut bulk = match declared_len > BODY_LEN_AT_ONCE_MAX {
            true => Some(requests.enter_bulk(estimate(declared_len))?),
            false => None,
        };
        bulk.iter_mut().for_each(BulkPass::pause);
        let paid = read_paid_body(body, BODY_LEN_MAX, timeout, &payer, PARSE_PERCENT).await?;
        let (bytes, memory) = paid.into_parts();
        let turn = if bytes.len() > LARGE_LEN {
            Some(requests.turn_of_largest().await)
        } else {
            None
        };
        let media = match bytes.is_empty() {
            true => MediaType::Json,
            false => media_type_of_body(&parts.headers, false, &BODY_TYPES)?,
        };
        let of_reports = match bytes.len() <= BODY_LEN_AT_ONCE_MAX {
            true => NANOS_FOR_A_REPORT.saturating_mul(report_count_max(&bytes, media)),
            false => 0,
        };
        let bulk = requests.go_on(
            bulk,
            estimate(bytes.len()) + Duration::from_nanos(of_reports),
        )?;
        Ok(ReportBody {
            bytes,
            media,
            permits: Permits {
                _memory: memory,
                _turn: turn,
                bulk,
            },
        })
    }
}

impl Permits {
    /// How work goes on that holds these.
    pub(super) fn way(&self, requests: &Arc<Requests>) -> Way {
        match self.bulk {
            Some(_) => Way::Aside(Arc::clone(requests)),
            None => Way::AtOnce,
        }
    }
}

/// On which thread parts of the work are done.
pub(super) enum Way {
    /// Short work, on the one that serves the connection.
    AtOnce,
    /// Long work, on one where nobody waits for it.
    Aside(Arc<Requests>),
}

impl Way {
    /// Does a part of the work.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        match self {
            Way::AtOnce => work(),
            Way::Aside(requests) => requests.work_aside(work).await,
        }
    }
}

/// About what a body of `len` bytes takes.
fn estimate(len: usize) -> Duration {
    Duration::from_nanos(NANOS_FOR_A_BYTE.saturating_mul(u64::try_from(len).unwrap_or(u64::MAX)))
}
