//! `POST /decode`: decodes many texts.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::Extensions;

use super::decode::{decode_filter, outcome_of, readings};
use super::inspect::{Inspection, JudgedColumn, time_to_judge};
use crate::access::Permit;
use crate::answer::{
    ANSWER_LEN_MAX, Answer, LongBody, MediaType, PieceThread, Pieces, Problem, Slug,
    media_type_of_body, negotiate, no_store, too_long,
};
use crate::request::{
    DecodeInput, Query, bulk_of, owner_of, query_of, read_reserved_body, work_on,
};
use idmint_core::id::{DecodeFilter, Fingerprint, Liberty};
use idmint_core::time::UnixNanos;
use idmint_service::{BudgetOwner, BulkPass, DecodingAt, MemoryReservation, PeerBulk, Service};
use idmint_storage::thread_time;
use idmint_wire::{ColumnIds, Style, ruler};

/// The maximum length of a body, in bytes.
const BODY_LEN_MAX: usize = 8 * 1024 * 1024;

/// The maximum length, in bytes, of a body that may count as short work. A request that declares
/// more needs a permit for long work before its body is read, so that callers share cores fairly.
const BODY_LEN_AT_ONCE_MAX: usize = 64 * 1024;

pub(super) const MEDIA_TYPES: [MediaType; 3] =
    [MediaType::Json, MediaType::Text, MediaType::Ndjson];

/// An example request that works.
const EXAMPLE: &str = r#"POST /decode ["175928847299117063","1I9ZC1002"]"#;

/// The estimated time per byte, in nanoseconds, to read and answer a body that has not arrived yet.
const NANOS_FOR_A_BYTE: u64 = 120;

/// The estimated time to read one byte of a body, in nanoseconds.
pub(super) const NANOS_TO_READ_A_BYTE: u64 = 5;
/// The estimated time to decode one text with `detail=brief`, in nanoseconds.
const NANOS_FOR_A_TEXT: u64 = 2_500;
/// The estimated time to decode one text with `detail=full`, in nanoseconds.
const NANOS_FOR_ALL_OF_A_TEXT: u64 = 12_000;

/// The estimated maximum length of a brief result without its text, in bytes.
const BRIEF_LEN: usize = 1024;
/// The estimated maximum length of a `detail=full` result per format, in bytes, without its text.
const FULL_LEN_BY_FORMAT: usize = 1024;
/// The estimated maximum number of bytes that a result takes for each byte of its text. One
/// character can take six bytes when escaped, and a full result repeats the text several times.
const TEXT_BYTE_LEN: usize = 24;

/// The length of a chunk of the response, in bytes. A chunk may be slightly longer, because the
/// result of decoding one text is not split between chunks.
const PIECE_LEN: usize = 64 * 1024;

/// The maximum number of texts in one chunk. It limits a chunk whose results are very short.
const PIECE_TEXTS_MAX: usize = 1024;

/// The time after which writing a chunk ends, so that the long requests of other callers can go on.
const PIECE_TIME_MAX: Duration = Duration::from_millis(5);

/// The maximum time for a request that was estimated as short work. If the first texts show that
/// all texts take longer, the rest needs a permit for long work. The estimate may be too low,
/// because a text that is not an id takes several times the estimated time.
const SHORT_TIME_MAX: Duration = Duration::from_millis(1);

/// The minimum time over which the speed of decoding is measured. A measurement over a shorter time
/// is inaccurate, so short work could be refused as long work by mistake.
const MEASURED_MIN: Duration = Duration::from_micros(100);

/// The number of texts that are decoded before the clock is read again.
const TEXTS_BY_THE_CLOCK: usize = 8;

/// The number of texts that are decoded before the thread lets other threads run. A request with at
/// least this many texts never runs on a thread that serves requests.
const TEXTS_IN_A_ROW: usize = 24;

/// Decodes each text, in the order of the request. Decoding does not use the minters, so it works
/// even while the service cannot mint.
///
/// # Errors
/// Returns 400, 413, 415 or 422 if the request is refused. No text was decoded then. A text that
/// matches no format is not an error.
pub(crate) async fn decode_many(State(service): State<Arc<Service>>, request: Request) -> Answer {
    let answer = read(&service, request)
        .await
        .map_err(|problem| problem.or_example(|| EXAMPLE.to_owned()));
    service.counters().count_decode(outcome_of(&answer));
    answer
}

/// Reads a body of texts. Returns the body with its memory reservation. If the declared length
/// exceeds [`BODY_LEN_AT_ONCE_MAX`], first gets a permit for long work, and returns it as well.
pub(super) async fn read_texts(
    service: &Service,
    body: Body,
    owner: &BudgetOwner,
    bulk: &PeerBulk,
) -> Result<(Option<BulkPass>, Bytes, Option<MemoryReservation>), Problem> {
    let declared_len = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut pass = match declared_len > BODY_LEN_AT_ONCE_MAX {
        true => Some(bulk.enter(nanos(NANOS_FOR_A_BYTE, declared_len))?),
        false => None,
    };
    pass.iter_mut().for_each(BulkPass::pause);
    let reserved =
        read_reserved_body(body, BODY_LEN_MAX, service.limits().body_timeout, owner, 0).await?;
    let (body, reserved) = reserved.into_parts();
    Ok((pass, body, reserved))
}

async fn read(service: &Arc<Service>, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    let media = negotiate(&parts.headers, &MEDIA_TYPES)?;
    let query = query_of(
        &parts.uri,
        &["format", "encoding", "detail", "lenient", "column"],
    )?;
    let detail = detail(&query)?;
    let is_column = query.flag("column")?;
    if is_column && detail == Detail::Full {
        let why = "column=true needs detail=brief";
        return Err(Problem::parameter("column", why));
    }
    let filter = decode_filter(&query, &parts.extensions)?;
    service.decoding().check(filter)?;
    let tried = Tried::of(filter, &parts.extensions);
    let media_of_body = media_type_of_body(&parts.headers, body.is_end_stream(), &MEDIA_TYPES)?;
    let owner = owner_of(service, &parts.extensions);
    let bulk = bulk_of(service, &parts.extensions);
    let (pass, body, reserved) = read_texts(service, body, &owner, &bulk).await?;
    let texts_max = count_max(&body, media_of_body, &bulk).await;
    let of_texts = nanos(
        if detail == Detail::Full {
            NANOS_FOR_ALL_OF_A_TEXT
        } else {
            NANOS_FOR_A_TEXT
        },
        texts_max,
    );
    let body_len = body.len();
    let mut estimate = nanos(NANOS_TO_READ_A_BYTE, body_len).saturating_add(of_texts);
    let reserved_lines = match is_column {
        false => None,
        true => {
            estimate = estimate.saturating_add(time_to_judge(texts_max));
            Some(owner.reserve(texts_max * Fingerprint::LEN).await?)
        }
    };
    let pass = bulk.go_on(pass, estimate)?;
    let peer_bulk = bulk.clone();
    let aside = pass.is_some().then_some(bulk);
    let input = match &aside {
        None => DecodeInput::read(body, media_of_body)?,
        Some(bulk) => {
            bulk.work_aside(move || DecodeInput::read(body, media_of_body))
                .await?
        }
    };
    let now = service.clock().now();
    let column = match reserved_lines {
        None => None,
        Some(reserved) => {
            let (service, input, tried) = (Arc::clone(service), input.clone(), tried.clone());
            let inspection = Inspection::new(service, input, tried, now, reserved);
            Some(inspection.judge(aside.as_ref()).await)
        }
    };
    let answers = Answers {
        draft: Draft {
            service: Arc::clone(service),
            input,
            tried,
            form: Form { media, detail },
            column,
            now,
            written: 0,
            is_begun: false,
        },
        aside,
        pass,
        _reserved: reserved,
    };
    if let Some(bulk) = &answers.aside
        && answers.draft.may_be_too_long(texts_max, body_len)
    {
        answers.draft.clone().check_len(bulk).await?;
    }
    Ok(no_store(
        media,
        answers.into_body(peer_bulk, texts_max).await?,
    ))
}

/// Returns the maximum number of texts in `body`. Counts those of a long body on another thread.
pub(super) async fn count_max(body: &Bytes, media: MediaType, bulk: &PeerBulk) -> usize {
    let aside = (body.len() > BODY_LEN_AT_ONCE_MAX).then_some(bulk);
    let body = body.clone();
    work_on(aside, move || DecodeInput::count_max(&body, media)).await
}

/// Returns the time for `count` items that take `nanos` nanoseconds each.
pub(super) fn nanos(nanos: u64, count: usize) -> Duration {
    Duration::from_nanos(nanos.saturating_mul(u64::try_from(count).unwrap_or(u64::MAX)))
}

/// Returns the time for `count` texts, if `measured` texts took `took`.
fn time_of(count: usize, took: Duration, measured: usize) -> Duration {
    let [count, measured] =
        [count, measured.max(1)].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    (took / measured).saturating_mul(count)
}

/// The level of detail of each result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// Only the best reading, which is the most likely format and encoding of the text.
    Brief,
    /// The full result, as of `GET /decode/{id}`.
    Full,
}

fn detail(query: &Query<'_>) -> Result<Detail, Problem> {
    match query.get("detail") {
        None | Some("brief") => Ok(Detail::Brief),
        Some("full") => Ok(Detail::Full),
        Some(other) => {
            let detail = format!("detail is {other:?}, but must be brief or full");
            Err(Problem::parameter("detail", detail).limit("brief, full"))
        }
    }
}

/// The form in which results are written.
#[derive(Debug, Clone, Copy)]
struct Form {
    media: MediaType,
    detail: Detail,
}

impl Form {
    /// Returns the text before the first result, or between two results.
    fn separator(self, is_first: bool) -> &'static str {
        match (self.media, self.detail, is_first) {
            (MediaType::Json, _, true) => "[",
            (MediaType::Json, _, false) => ",",
            (MediaType::Text, Detail::Full, false) => "\n",
            _ => "",
        }
    }

    /// Returns the closing bytes of a response of `written` results, with a verdict if `is_column`.
    fn tail(self, written: u64, is_column: bool) -> &'static str {
        match (self.media, written, is_column) {
            (MediaType::Json, 0, false) => "[]\n",
            (MediaType::Json, 0, true) => "[]}\n",
            (MediaType::Json, _, false) => "]\n",
            (MediaType::Json, _, true) => "]}\n",
            _ => "",
        }
    }

    /// Writes the verdict on all texts together, such as their likely format, before the results. A
    /// response in plain text has no verdict.
    fn write_verdict(self, out: &mut Vec<u8>, verdict: &[u8]) {
        let end: &[u8] = match self.media {
            MediaType::Json => br#","rows":"#,
            MediaType::Ndjson => b"}\n",
            _ => return,
        };
        out.extend_from_slice(br#"{"column":"#);
        out.extend_from_slice(verdict.trim_ascii_end());
        out.extend_from_slice(end);
    }

    /// Writes the result of one text.
    fn write(
        self,
        out: &mut Vec<u8>,
        text: &str,
        tried: &Tried,
        decoding: &DecodingAt<'_>,
        ids_of: Option<ColumnIds<'_>>,
    ) {
        let filter = tried.filter();
        match self.detail {
            Detail::Brief => {
                let reading = decoding.best_in_column(text, filter, ids_of);
                match self.media {
                    MediaType::Text => {
                        writeln!(out, "{reading}").expect("memory takes what is written")
                    }
                    _ => reading.write_json(out),
                }
            }
            Detail::Full => {
                let answer = readings(decoding, text, filter, tried.permit.as_deref());
                match self.media {
                    MediaType::Text => {
                        out.extend_from_slice(ruler(&answer, Style::Plain).as_bytes())
                    }
                    _ => answer.write_json(out),
                }
            }
        }
        if self.media == MediaType::Ndjson {
            out.push(b'\n');
        }
    }
}

/// The filter for the formats and encodings that are tried for each text.
#[derive(Clone)]
pub(super) struct Tried {
    format: Option<String>,
    encoding: Option<String>,
    /// The caller's permit, which may restrict the formats and series. `None` if the caller may
    /// read all of them.
    permit: Option<Arc<Permit>>,
    liberty: Liberty,
}

impl Tried {
    /// Returns an owned copy of `filter`. The permit in `extensions` replaces its list of formats.
    pub(super) fn of(filter: DecodeFilter<'_>, extensions: &Extensions) -> Tried {
        Tried {
            format: filter.format.map(str::to_owned),
            encoding: filter.encoding.map(str::to_owned),
            permit: extensions.get().cloned(),
            liberty: filter.liberty,
        }
    }

    pub(super) fn filter(&self) -> DecodeFilter<'_> {
        DecodeFilter {
            format: self.format.as_deref(),
            encoding: self.encoding.as_deref(),
            among: self.permit.as_deref().and_then(Permit::formats),
            liberty: self.liberty,
        }
    }
}

/// The results that are still to be written.
#[derive(Clone)]
struct Draft {
    service: Arc<Service>,
    input: DecodeInput,
    tried: Tried,
    form: Form,
    /// The verdict on all texts, if the caller asked for one.
    column: Option<JudgedColumn>,
    /// The time of the request. It determines which times in ids are plausible, and is the same for
    /// all texts of the request.
    now: UnixNanos,
    written: u64,
    /// `true` if the first bytes of the response have been written.
    is_begun: bool,
}

/// The results that are still to be written, with the permit and the memory that writing them
/// needs.
struct Answers {
    draft: Draft,
    /// The handle that runs the work on other threads, or `None` if the work runs at once.
    aside: Option<PeerBulk>,
    /// The permit for the work, or `None` if the work runs at once.
    pass: Option<BulkPass>,
    /// The memory reservation for the texts.
    _reserved: Option<MemoryReservation>,
}

impl Draft {
    /// `true` if the response is one JSON document that may exceed the maximum length. Text and
    /// NDJSON have no maximum, because they are sent line by line.
    fn may_be_too_long(&self, texts_max: usize, body_len: usize) -> bool {
        let of_a_text = match self.form.detail {
            Detail::Brief => BRIEF_LEN,
            Detail::Full => FULL_LEN_BY_FORMAT * self.service.decoding().formats().len(),
        };
        let len = texts_max
            .saturating_mul(of_a_text)
            .saturating_add(TEXT_BYTE_LEN * body_len);
        self.form.media == MediaType::Json && len > ANSWER_LEN_MAX
    }

    /// Checks that the response is short enough, by writing it and discarding the chunks.
    ///
    /// # Errors
    /// Returns 422 `invalid-parameter` if the response would be too long.
    async fn check_len(mut self, bulk: &PeerBulk) -> Result<(), Problem> {
        let (mut len, mut is_done) = (0, false);
        while !is_done {
            let (draft, (piece, is_last)) = bulk
                .work_aside(move || {
                    let piece = self.next_piece();
                    (self, piece)
                })
                .await;
            (self, is_done) = (draft, is_last);
            len += piece.len();
            if len > ANSWER_LEN_MAX {
                let instead = "send fewer texts, or accept application/x-ndjson or text/plain, which have no limit";
                return Err(too_long(Slug::InvalidParameter, instead));
            }
        }
        Ok(())
    }

    /// Returns the next chunk, and `true` if it is the last one. A chunk that takes longer than
    /// [`PIECE_TIME_MAX`] to write ends early.
    fn next_piece(&mut self) -> (Vec<u8>, bool) {
        let began = Instant::now();
        self.piece_until(|written| {
            written % TEXTS_BY_THE_CLOCK == 0 && began.elapsed() >= PIECE_TIME_MAX
        })
    }

    /// Returns the first chunk, and `true` if it is the last one. The first texts may show that all
    /// `texts_max` texts together take longer than [`SHORT_TIME_MAX`]. In that case the chunk ends
    /// early, and the last value is the estimated time for the other texts.
    fn first_piece(&mut self, texts_max: usize) -> (Vec<u8>, bool, Option<Duration>) {
        let began = thread_time();
        // The speed is measured from the second text on, because the first one can be slow by chance.
        let (mut measured_from, mut rest) = (began, None);
        let (first, is_whole) = self.piece_until(|written| {
            if written == 1 {
                measured_from = thread_time();
            }
            let is_to_measure = written.is_power_of_two() || written % TEXTS_BY_THE_CLOCK == 0;
            if !is_to_measure {
                return false;
            }
            let now = thread_time();
            let measured = now.saturating_sub(measured_from);
            let left = time_of(texts_max.saturating_sub(written), measured, written - 1);
            let is_long =
                measured >= MEASURED_MIN && now.saturating_sub(began) + left > SHORT_TIME_MAX;
            rest = is_long.then_some(left);
            is_long
        });
        (first, is_whole, rest)
    }

    /// Returns the next chunk, and `true` if it is the last one. The chunk ends when it is full or
    /// `is_late` returns `true`. Calls `is_late` after each text, with the chunk's number of texts.
    fn piece_until(&mut self, mut is_late: impl FnMut(usize) -> bool) -> (Vec<u8>, bool) {
        let decoding = self.service.decoding().at(self.now);
        let mut out = Vec::with_capacity(PIECE_LEN + PIECE_LEN / 8);
        if let Some(column) = self.column.as_ref().filter(|_| !self.is_begun) {
            self.form.write_verdict(&mut out, &column.verdict);
        }
        self.is_begun = true;
        let ids_of = self.column.as_ref().and_then(|column| {
            let (format, encoding) = column.ids_of.as_ref()?;
            Some(ColumnIds {
                format,
                encoding,
                may_lack_digits: column.may_lack_digits,
            })
        });
        for number in 1..=PIECE_TEXTS_MAX {
            let Some(text) = self.input.next() else {
                let tail = self.form.tail(self.written, self.column.is_some());
                out.extend_from_slice(tail.as_bytes());
                return (out, true);
            };
            out.extend_from_slice(self.form.separator(self.written == 0).as_bytes());
            self.form
                .write(&mut out, &text, &self.tried, &decoding, ids_of);
            self.written += 1;
            if number % TEXTS_IN_A_ROW == 0 {
                // The kernel seldom interrupts a thread before its time slice of milliseconds ends.
                std::thread::yield_now();
            }
            let is_full = is_late(number) || out.len() >= PIECE_LEN;
            // Do not split off a chunk that would have only the closing bytes of the response.
            if is_full && self.input.clone().next().is_some() {
                break;
            }
        }
        (out, false)
    }
}

impl Answers {
    /// Returns the body of the response. If the work was estimated as short, writes the first chunk
    /// now. If the first texts show that the work is long, the rest needs a permit for long work.
    ///
    /// # Errors
    /// Returns 503 `overloaded` if the service has too much long work.
    async fn into_body(mut self, bulk: PeerBulk, texts_max: usize) -> Result<Body, Problem> {
        if self.pass.as_ref().is_some_and(|pass| !pass.is_short()) {
            return Ok(Body::new(LongBody::new(self, None, None)));
        }
        let mut draft = self.draft;
        let write = move || {
            let (first, is_whole, rest) = draft.first_piece(texts_max);
            (draft, first, is_whole, rest)
        };
        let (draft, first, is_whole, rest) = work_on(self.aside.as_ref(), write).await;
        self.draft = draft;
        if is_whole {
            return Ok(Body::from(first));
        }
        if let Some(rest) = rest {
            self.pass = bulk.go_on(self.pass.take(), rest)?;
        }
        self.aside = self.pass.is_some().then_some(bulk);
        self.pass.iter_mut().for_each(BulkPass::pause);
        Ok(Body::new(LongBody::new(self, Some(first), None)))
    }
}

impl Pieces for Answers {
    fn pass(&mut self) -> Option<&mut BulkPass> {
        self.pass.as_mut()
    }

    fn thread(&self) -> PieceThread {
        match &self.aside {
            Some(bulk) => PieceThread::Aside(bulk.clone()),
            // Yield after each chunk, because a caller that reads fast would otherwise occupy the
            // thread for too long.
            None => PieceThread::OfConnectionInTurn,
        }
    }

    // A chunk ends once it is `PIECE_LEN` bytes long. Its last result takes only a few KiB, even
    // with `detail=full`, so the chunk is less than twice as long.
    const PIECE_LEN_MAX: usize = 2 * PIECE_LEN;

    fn next_piece(&mut self) -> (Vec<u8>, bool) {
        self.draft.next_piece()
    }
}
