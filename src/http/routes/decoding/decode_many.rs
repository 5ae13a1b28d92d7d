//! `POST /decode`: what can each of these texts be?

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::Response;

use super::decode::{decode_filter, outcome_of};
use crate::http::answer::{
    ANSWER_LEN_MAX, LongBody, MediaType, PieceThread, Pieces, Problem, Slug, media_type_of_body,
    negotiate, no_store, too_long,
};
use crate::http::request::{DecodeInput, Query, payer_of, read_paid_body, strict_query};
use crate::id::DecodeFilter;
use crate::service::{BulkPass, Charge, DecodingAt, Payer, Requests, Service};
use crate::time::UnixNanos;
use crate::wire::{Style, ruler};

/// The longest body, in bytes.
const BODY_LEN_MAX: usize = 8 * 1024 * 1024;

/// A longer body is long work whatever is in it, and admitted before it is read.
const BODY_LEN_AT_ONCE_MAX: usize = 64 * 1024;

pub(super) const MEDIA_TYPES: [MediaType; 3] =
    [MediaType::Json, MediaType::Text, MediaType::Ndjson];

/// A request that works.
const EXAMPLE: &str = r#"POST /decode ["175928847299117063","1I9ZC1002"]"#;

/// About what reading and answering takes for each byte of a body that has not come.
const NANOS_FOR_A_BYTE: u64 = 120;

/// About what reading takes for each byte, and answering for each text, briefly or in full.
pub(super) const NANOS_TO_READ_A_BYTE: u64 = 5;
const NANOS_FOR_A_TEXT: u64 = 2_500;
const NANOS_FOR_ALL_OF_A_TEXT: u64 = 12_000;

/// More is hardly said of one text briefly, or in full by one format; a character of the text itself can take six bytes, and is
/// said several times in full.
const BRIEF_LEN: usize = 1024;
const FULL_LEN_BY_FORMAT: usize = 1024;
const TEXT_BYTE_LEN: usize = 24;

/// Bytes of one piece of an answer; a few more, since what is said of one text is not cut.
const PIECE_LEN: usize = 64 * 1024;

/// No piece tells of more texts, however little there is to say of each: a piece takes milliseconds at most.
const PIECE_TEXTS_MAX: usize = 1024;

/// What each text can be, in the order in which they came. Never touches what is minted, and works while nothing can be.
///
/// # Errors
/// 400, 413, 415, 422: nothing was decoded. A text of no format is no error.
pub(in crate::http) async fn decode_many(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let answer = read(&service, request)
        .await
        .map_err(|problem| problem.or_example(|| EXAMPLE.to_owned()));
    service.counters().count_decode(outcome_of(&answer));
    answer
}

/// A body of texts, with what is paid for it and, where it is long work whatever is in it, the pass for that.
pub(super) async fn read_texts(
    service: &Service,
    body: Body,
    payer: &Payer,
) -> Result<(Option<BulkPass>, Bytes, Option<Charge>), Problem> {
    let declared_len = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut pass = match declared_len > BODY_LEN_AT_ONCE_MAX {
        true => Some(
            service
                .load()
                .requests
                .enter_bulk(nanos(NANOS_FOR_A_BYTE, declared_len))?,
        ),
        false => None,
    };
    pass.iter_mut().for_each(BulkPass::pause);
    let paid = read_paid_body(body, BODY_LEN_MAX, service.limits().body_timeout, payer, 0).await?;
    let (body, paid) = paid.into_parts();
    Ok((pass, body, paid))
}

async fn read(service: &Arc<Service>, request: Request) -> Result<Response<Body>, Problem> {
    let (parts, body) = request.into_parts();
    let media = negotiate(&parts.headers, &MEDIA_TYPES)?;
    let query = strict_query(
        parts.uri.query().unwrap_or_default(),
        &["format", "encoding", "detail", "lenient"],
    )?;
    let detail = detail(&query)?;
    let filter = decode_filter(&query, &parts.extensions)?;
    service.decoding().check(filter)?;
    let tried = Tried::of(filter);
    let media_of_body = media_type_of_body(&parts.headers, body.is_end_stream(), &MEDIA_TYPES)?;
    let (payer, requests) = (
        payer_of(service, &parts.extensions),
        &service.load().requests,
    );
    let (pass, body, paid) = read_texts(service, body, &payer).await?;
    let texts_max = DecodeInput::count_max(&body, media_of_body);
    let of_texts = nanos(
        if detail == Detail::Full {
            NANOS_FOR_ALL_OF_A_TEXT
        } else {
            NANOS_FOR_A_TEXT
        },
        texts_max,
    );
    let body_len = body.len();
    let pass = requests.go_on(
        pass,
        nanos(NANOS_TO_READ_A_BYTE, body_len).saturating_add(of_texts),
    )?;
    let aside = pass.is_some().then(|| Arc::clone(requests));
    let input = match &aside {
        None => DecodeInput::read(body, media_of_body)?,
        Some(requests) => {
            requests
                .work_aside(move || DecodeInput::read(body, media_of_body))
                .await?
        }
    };
    let answers = Answers {
        service: Arc::clone(service),
        input,
        tried,
        form: Form { media, detail },
        now: service.clock().now(),
        written: 0,
        aside,
        pass,
        _paid: paid,
    };
    let answers = match &answers.aside {
        Some(requests) if answers.may_be_too_long(texts_max, body_len) => {
            let requests = Arc::clone(requests);
            requests
                .work_aside(move || answers.check_len().map(|()| answers))
                .await?
        }
        _ => answers,
    };
    Ok(no_store(media, body_of(answers)))
}

/// `nanos` for each of `count`.
pub(super) fn nanos(nanos: u64, count: usize) -> Duration {
    Duration::from_nanos(nanos.saturating_mul(u64::try_from(count).unwrap_or(u64::MAX)))
}

/// How much is said of each text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// The best reading.
    Brief,
    /// All that `GET /decode/{id}` says.
    Full,
}

fn detail(query: &Query<'_>) -> Result<Detail, Problem> {
    match query.get("detail") {
        None | Some("brief") => Ok(Detail::Brief),
        Some("full") => Ok(Detail::Full),
        Some(other) => {
            let detail = format!("detail is {other:?}, it must be brief or full");
            Err(Problem::new(Slug::InvalidParameter, detail)
                .reason("detail")
                .limit("brief, full"))
        }
    }
}

/// How answers are written.
#[derive(Debug, Clone, Copy)]
struct Form {
    media: MediaType,
    detail: Detail,
}

impl Form {
    /// What stands before the first answer, or between two.
    fn separator(self, is_first: bool) -> &'static str {
        match (self.media, self.detail, is_first) {
            (MediaType::Json, _, true) => "[",
            (MediaType::Json, _, false) => ",",
            (MediaType::Text, Detail::Full, false) => "\n",
            _ => "",
        }
    }

    /// What stands after the last of `written` ids.
    fn tail(self, written: u64) -> &'static str {
        match (self.media, written) {
            (MediaType::Json, 0) => "[]\n",
            (MediaType::Json, _) => "]\n",
            _ => "",
        }
    }

    /// Writes what one text can be.
    fn write(
        self,
        out: &mut Vec<u8>,
        text: &str,
        filter: DecodeFilter<'_>,
        decoding: &DecodingAt<'_>,
    ) {
        match self.detail {
            Detail::Brief => {
                let reading = decoding.best(text, filter);
                match self.media {
                    MediaType::Text => {
                        writeln!(out, "{reading}").expect("memory takes what is written")
                    }
                    _ => reading.write_json(out),
                }
            }
            Detail::Full => {
                let answer = decoding.decode(text, filter);
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

/// What is tried.
pub(super) struct Tried {
    format: Option<String>,
    encoding: Option<String>,
    /// The formats that the caller may read; `None` for all.
    among: Option<BTreeSet<String>>,
    lenient: bool,
}

impl Tried {
    /// What this filter says, to keep.
    pub(super) fn of(filter: DecodeFilter<'_>) -> Tried {
        Tried {
            format: filter.format.map(str::to_owned),
            encoding: filter.encoding.map(str::to_owned),
            among: filter.among.cloned(),
            lenient: filter.lenient,
        }
    }

    pub(super) fn filter(&self) -> DecodeFilter<'_> {
        DecodeFilter {
            format: self.format.as_deref(),
            encoding: self.encoding.as_deref(),
            among: self.among.as_ref(),
            lenient: self.lenient,
        }
    }
}

/// Answers that are still to be written.
struct Answers {
    service: Arc<Service>,
    input: DecodeInput,
    tried: Tried,
    form: Form,
    /// When the request came: one moment decides for all texts what times are plausible.
    now: UnixNanos,
    written: u64,
    /// Where long work is done.
    aside: Option<Arc<Requests>>,
    /// The leave to work so long.
    pass: Option<BulkPass>,
    /// What is paid for the texts.
    _paid: Option<Charge>,
}

impl Answers {
    /// Whether they are written whole, and may be longer than what is. Text and NDJSON come a line at a time.
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

    /// Whether they are short enough. They are written for it, and nothing of that is kept.
    ///
    /// # Errors
    /// 422 `invalid-parameter`.
    fn check_len(&self) -> Result<(), Problem> {
        let decoding = self.service.decoding().at(self.now);
        let (mut input, mut out, mut len) = (self.input.clone(), Vec::new(), 0);
        while let Some(text) = input.next() {
            out.clear();
            self.form
                .write(&mut out, &text, self.tried.filter(), &decoding);
            len += out.len() + self.form.separator(false).len();
            if len > ANSWER_LEN_MAX {
                let instead = "send fewer texts, or accept application/x-ndjson or text/plain, which may be of any length";
                return Err(too_long(Slug::InvalidParameter, instead));
            }
        }
        Ok(())
    }
}

impl Pieces for Answers {
    fn resume(&mut self) {
        self.pass.iter_mut().for_each(BulkPass::resume);
    }

    // A caller who does not read would keep all others from long work.
    fn pause(&mut self) {
        self.pass.iter_mut().for_each(BulkPass::pause);
    }

    fn thread(&self) -> PieceThread {
        match &self.aside {
            Some(requests) => PieceThread::Aside(Arc::clone(requests)),
            // A caller who reads fast would keep the thread for long.
            None => PieceThread::OfConnectionInTurn,
        }
    }

    // What is said of one text in full takes a few KiB.
    const PIECE_LEN_MAX: usize = 2 * PIECE_LEN;

    fn next_piece(&mut self) -> (Vec<u8>, bool) {
        let decoding = self.service.decoding().at(self.now);
        let mut out = Vec::with_capacity(PIECE_LEN + PIECE_LEN / 8);
        for _ in 0..PIECE_TEXTS_MAX {
            let Some(text) = self.input.next() else {
                out.extend_from_slice(self.form.tail(self.written).as_bytes());
                return (out, true);
            };
            out.extend_from_slice(self.form.separator(self.written == 0).as_bytes());
            self.form
                .write(&mut out, &text, self.tried.filter(), &decoding);
            self.written += 1;
            if out.len() >= PIECE_LEN {
                break;
            }
        }
        (out, false)
    }
}

fn body_of(mut answers: Answers) -> Body {
    if answers.aside.is_some() {
        return Body::new(LongBody::new(answers, None, None));
    }
    match answers.next_piece() {
        (whole, true) => Body::from(whole),
        (first, false) => Body::new(LongBody::new(answers, Some(first), None)),
    }
}
