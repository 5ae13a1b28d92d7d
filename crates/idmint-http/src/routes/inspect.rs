//! `POST /inspect`: identifies the format of a whole column of ids.

use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::{Request, State};

use super::decode::{decode_filter, outcome_of};
use super::decode_many::{MEDIA_TYPES, NANOS_TO_READ_A_BYTE, Tried, count_max, nanos, read_texts};
use crate::answer::{Answer, MediaType, json_bytes, media_type_of_body, negotiate, no_store};
use crate::request::{DecodeInput, bulk_of, owner_of, query_of, work_on};
use idmint_core::id::{Fingerprint, IdColumn};
use idmint_core::time::UnixNanos;
use idmint_service::{MemoryReservation, PeerBulk, Service};

/// An example request that works.
const EXAMPLE: &str = r#"POST /inspect ["175928847299117063","175928847299117064"]"#;

/// The estimated time to read one line in all formats, in nanoseconds.
const NANOS_FOR_A_LINE: u64 = 4_000;
/// The estimated time, in nanoseconds, to judge one line of the sample that determines the format.
const NANOS_TO_JUDGE_A_LINE: u64 = 20_000;

/// Returns the estimated time to determine the format of up to `lines_max` lines.
pub(super) fn time_to_judge(lines_max: usize) -> Duration {
    let sample_max = lines_max.min(IdColumn::SAMPLE_MAX);
    nanos(NANOS_FOR_A_LINE, lines_max).saturating_add(nanos(NANOS_TO_JUDGE_A_LINE, sample_max))
}

/// The number of lines that are read before the task yields to other tasks.
const PIECE_LINES: usize = 512;

/// The number of lines that are read before the thread lets other threads run.
const LINES_AT_ONCE: usize = 32;

/// Returns one verdict on the format of all texts together. Inspection mints no ids, so it works
/// even while the service cannot mint.
///
/// # Errors
/// Returns 400, 413, 415 or 422, like `POST /decode`. An undecided verdict is not an error.
pub(crate) async fn inspect(State(service): State<Arc<Service>>, request: Request) -> Answer {
    let answer = read(&service, request)
        .await
        .map_err(|problem| problem.or_example(|| EXAMPLE.to_owned()));
    service.counters().count_decode(outcome_of(&answer));
    answer
}

async fn read(service: &Arc<Service>, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    negotiate(&parts.headers, &[MediaType::Json])?;
    let query = query_of(&parts.uri, &["format", "encoding", "lenient"])?;
    let filter = decode_filter(&query, &parts.extensions)?;
    service.decoding().check(filter)?;
    let tried = Tried::of(filter, &parts.extensions);
    let media_of_body = media_type_of_body(&parts.headers, body.is_end_stream(), &MEDIA_TYPES)?;
    let owner = owner_of(service, &parts.extensions);
    let bulk = bulk_of(service, &parts.extensions);
    let (pass, body, reserved_body) = read_texts(service, body, &owner, &bulk).await?;
    let lines_max = count_max(&body, media_of_body, &bulk).await;
    let estimate = nanos(NANOS_TO_READ_A_BYTE, body.len()).saturating_add(time_to_judge(lines_max));
    let reserved_lines = owner.reserve(lines_max * Fingerprint::LEN).await?;
    let pass = bulk.go_on(pass, estimate)?;
    let now = service.clock().now();
    // Work that is long enough to need the permit `pass` runs on other threads.
    let aside = pass.is_some().then_some(&bulk);
    let input = work_on(aside, move || DecodeInput::read(body, media_of_body)).await?;
    let service = Arc::clone(service);
    let inspection = Inspection::new(service, input, tried, now, reserved_lines);
    let judged = inspection.judge(aside).await;
    // The request counts as long work until its permit is dropped.
    drop((reserved_body, pass));
    Ok(no_store(MediaType::Json, judged.verdict))
}

/// The verdict on the format of a column of texts.
#[derive(Clone)]
pub(super) struct JudgedColumn {
    /// The verdict as JSON.
    pub(super) verdict: Vec<u8>,
    /// The names of the column's format and encoding. All rows are read as ids of this format.
    /// `None` if the format is unknown.
    pub(super) ids_of: Option<(String, String)>,
    /// [`IdColumn::may_lack_digits`] of the column.
    pub(super) may_lack_digits: bool,
}

/// A column that is being read.
pub(super) struct Inspection {
    service: Arc<Service>,
    input: DecodeInput,
    tried: Tried,
    /// The time of the request.
    now: UnixNanos,
    column: IdColumn,
    /// The fingerprint of every line that is not blank.
    fingerprints: Vec<Fingerprint>,
    /// The memory reservation for the fingerprints.
    _reserved: MemoryReservation,
}

impl Inspection {
    pub(super) fn new(
        service: Arc<Service>,
        input: DecodeInput,
        tried: Tried,
        now: UnixNanos,
        reserved: MemoryReservation,
    ) -> Inspection {
        Inspection {
            service,
            input,
            tried,
            now,
            column: IdColumn::default(),
            fingerprints: Vec::new(),
            _reserved: reserved,
        }
    }

    /// Reads all lines and returns the verdict on their format. If `aside` is given, the lines are
    /// read in batches on other threads, and otherwise at once.
    pub(super) async fn judge(mut self, aside: Option<&PeerBulk>) -> JudgedColumn {
        let Some(bulk) = aside else {
            while self.read_lines() {}
            return self.verdict();
        };
        loop {
            let (more, rest) = bulk.work_aside(move || (self.read_lines(), self)).await;
            self = rest;
            if !more {
                return bulk.work_aside(move || self.verdict()).await;
            }
        }
    }

    /// Reads the next lines. Returns `true` if there may be more.
    fn read_lines(&mut self) -> bool {
        let decoding = self.service.decoding().at(self.now);
        for number in 1..=PIECE_LINES {
            if number % LINES_AT_ONCE == 0 {
                // The kernel seldom interrupts a thread before its time slice of milliseconds ends.
                std::thread::yield_now();
            }
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

    fn verdict(&mut self) -> JudgedColumn {
        let duplicates = Fingerprint::count_repeated(&mut self.fingerprints);
        let decoding = self.service.decoding().at(self.now);
        let filter = self.tried.filter();
        let ids_of = decoding.judge(&self.column, filter).format_of_rows();
        JudgedColumn {
            ids_of: ids_of.map(|(format, encoding)| (format.name.clone(), encoding.name().into())),
            may_lack_digits: self.column.may_lack_digits(),
            verdict: json_bytes(&decoding.verdict(&self.column, duplicates, filter)),
        }
    }
}
