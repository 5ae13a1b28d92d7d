//! `POST /inspect`: what is a column of ids, all of it together?

use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::Response;

use super::decode::{decode_filter, outcome_of};
use super::decode_many::{MEDIA_TYPES, NANOS_TO_READ_A_BYTE, Tried, nanos, read_texts};
use crate::http::answer::{
    MediaType, Problem, json_bytes, media_type_of_body, negotiate, no_store,
};
use crate::http::request::{DecodeInput, payer_of, strict_query};
use crate::id::{Fingerprint, IdColumn};
use crate::service::{Charge, Service};
use crate::time::UnixNanos;

/// A request that works.
const EXAMPLE: &str = r#"POST /inspect ["175928847299117063","175928847299117064"]"#;

/// About what all readings of a line take, and what the verdict takes for each line of the sample.
const NANOS_FOR_A_LINE: u64 = 4_000;
const NANOS_TO_JUDGE_A_LINE: u64 = 20_000;

/// So many lines are read before others have their turn.
const PIECE_LINES: usize = 512;

/// One verdict on all texts together. Never touches what is minted, and works while nothing can be.
///
/// # Errors
/// 400, 413, 415, 422 as for `POST /decode`. That it cannot be told what they are is no error.
pub(in crate::http) async fn inspect(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let answer = read(&service, request)
        .await
        .map_err(|problem| problem.or_example(|| EXAMPLE.to_owned()));
    service.counters().count_decode(outcome_of(&answer));
    answer
}

async fn read(service: &Arc<Service>, request: Request) -> Result<Response<Body>, Problem> {
    let (parts, body) = request.into_parts();
    negotiate(&parts.headers, &[MediaType::Json])?;
    let query = strict_query(
        parts.uri.query().unwrap_or_default(),
        &["format", "encoding"],
    )?;
    let filter = decode_filter(&query, &parts.extensions)?;
    service.decoding().check(filter)?;
    let tried = Tried::of(filter);
    let media_of_body = media_type_of_body(&parts.headers, body.is_end_stream(), &MEDIA_TYPES)?;
    let (payer, requests) = (
        payer_of(service, &parts.extensions),
        &service.load().requests,
    );
    let (pass, body, paid_body) = read_texts(service, body, &payer).await?;
    let lines_max = DecodeInput::count_max(&body, media_of_body);
    let estimate = nanos(NANOS_TO_READ_A_BYTE, body.len())
        .saturating_add(nanos(NANOS_FOR_A_LINE, lines_max))
        .saturating_add(nanos(
            NANOS_TO_JUDGE_A_LINE,
            lines_max.min(IdColumn::SAMPLE_MAX),
        ));
    let paid_lines = payer.pay(lines_max * Fingerprint::LEN).await?;
    let pass = requests.go_on(pass, estimate)?;
    let now = service.clock().now();
    let begin = {
        let service = Arc::clone(service);
        move || -> Result<Inspection, Problem> {
            let input = DecodeInput::read(body, media_of_body)?;
            Ok(Inspection::new(
                service,
                input,
                tried,
                now,
                (paid_body, paid_lines),
            ))
        }
    };
    let json = match pass {
        None => {
            let mut inspection = begin()?;
            while inspection.read_lines() {}
            inspection.verdict()
        }
        // Held to the end.
        Some(_pass) => {
            let mut inspection = requests.work_aside(begin).await?;
            loop {
                let (more, rest) = requests
                    .work_aside(move || (inspection.read_lines(), inspection))
                    .await;
                inspection = rest;
                if !more {
                    break requests.work_aside(move || inspection.verdict()).await;
                }
            }
        }
    };
    Ok(no_store(MediaType::Json, json))
}

/// A column that is being read.
struct Inspection {
    service: Arc<Service>,
    input: DecodeInput,
    tried: Tried,
    /// When the request came.
    now: UnixNanos,
    column: IdColumn,
    /// Of every line that is not blank.
    fingerprints: Vec<Fingerprint>,
    /// What is paid for the texts and for the fingerprints.
    _paid: (Option<Charge>, Charge),
}

impl Inspection {
    fn new(
        service: Arc<Service>,
        input: DecodeInput,
        tried: Tried,
        now: UnixNanos,
        paid: (Option<Charge>, Charge),
    ) -> Inspection {
        Inspection {
            service,
            input,
            tried,
            now,
            column: IdColumn::default(),
            fingerprints: Vec::new(),
            _paid: paid,
        }
    }

    /// Reads the next lines, and says whether there may be more.
    fn read_lines(&mut self) -> bool {
        let decoding = self.service.decoding().at(self.now);
        for _ in 0..PIECE_LINES {
            let Some(line) = self.input.next() else {
                return false;
            };
            self.fingerprints.extend(decoding.inspect(
                &mut self.column,
                &line,
                self.tried.filter(),
            ));
        }
        true
    }

    fn verdict(&mut self) -> Vec<u8> {
        let duplicates = Fingerprint::count_repeated(&mut self.fingerprints);
        let decoding = self.service.decoding().at(self.now);
        json_bytes(&decoding.verdict(&self.column, duplicates, self.tried.filter()))
    }
}
