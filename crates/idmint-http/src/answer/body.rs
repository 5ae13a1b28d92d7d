//! A response with minted ids: its media type, its head, and its body, which is encoded while it is
//! sent.
//!
//! The length of the body is known before its first byte is sent. The exception is a body of more
//! than 1 MiB whose length depends on ids that are not minted yet. [`AnswerBody`] also carries the
//! bodies of all other responses.

use std::mem;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, header};
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::pieces::{LongBody, PieceThread, Pieces};
use super::rows::{ROW_LEN_MAX, row_len, rows_max, write_row};
use idmint_core::id::{Encoding, Format, IdBlock, Prefix, Rule};
use idmint_core::minting::Batch;
use idmint_core::named;
use idmint_service::{BulkPass, MemoryReservation, ReservedBody};

named! {
    fn essence;
    /// A media type that this service reads or writes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum MediaType {
        /// `application/json`
        Json = "application/json",
        /// `text/plain`, always UTF-8
        Text = "text/plain",
        /// `application/x-ndjson`: one JSON value per line
        Ndjson = "application/x-ndjson",
        /// `application/octet-stream`
        OctetStream = "application/octet-stream",
        /// `application/vnd.idmint.rows+json`: equally spaced ids as rows of numbers
        Rows = "application/vnd.idmint.rows+json",
        /// `text/html`
        Html = "text/html",
        /// `application/yaml` (RFC 9512)
        Yaml = "application/yaml",
        /// `application/xml`
        Xml = "application/xml",
        /// `text/xml`, a synonym of `application/xml` as defined by RFC 7303
        TextXml = "text/xml",
        /// `text/csv` (RFC 4180)
        Csv = "text/csv",
    }
}

impl MediaType {
    /// Returns the value of `Content-Type`.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
            Self::Csv => "text/csv; charset=utf-8",
            other => other.essence(),
        }
    }
}

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The value of the header `X-Content-Type-Options` that prevents a browser from interpreting a
/// response as HTML. A response may repeat text that the caller chose, such as an id.
pub(crate) const NO_SNIFFING: HeaderValue = HeaderValue::from_static("nosniff");

pub(crate) const IDMINT_COUNT: HeaderName = HeaderName::from_static("idmint-count");
/// The header with a warning that a report was not read exactly as written. It is used if the body
/// has no place for the warning.
pub(crate) const IDMINT_WARNING: HeaderName = HeaderName::from_static("idmint-warning");
const IDMINT_WIDTH: HeaderName = HeaderName::from_static("idmint-width");

/// The media types of a mint response. `Rows` is available only for sequenced formats, whose ids
/// form runs of equal distance.
pub(super) const MINT_MEDIA_TYPES: [MediaType; 5] = [
    MediaType::Json,
    MediaType::Text,
    MediaType::Ndjson,
    MediaType::OctetStream,
    MediaType::Rows,
];

/// The head of a response with one id, for each of [`MINT_MEDIA_TYPES`]. Copying a head takes a
/// third of the time that inserting its headers one by one would take.
static HEADS: LazyLock<[HeaderMap; MINT_MEDIA_TYPES.len()]> = LazyLock::new(|| {
    MINT_MEDIA_TYPES.map(|media| {
        HeaderMap::from_iter([
            (
                header::CONTENT_TYPE,
                HeaderValue::from_static(media.content_type()),
            ),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (IDMINT_COUNT, HeaderValue::from_static("1")),
            (header::X_CONTENT_TYPE_OPTIONS, NO_SNIFFING),
            // Reserve room for the request id, so that the copied map need not grow. The edge, the
            // layer around all routes, later replaces this empty value.
            (X_REQUEST_ID, HeaderValue::from_static("")),
        ])
    })
});

/// Returns a response with `count` ids in this media type. A mint response uses one of
/// [`MINT_MEDIA_TYPES`], and other responses may use any type.
pub(crate) fn minted(
    media: MediaType,
    format: &Format,
    count: u64,
    body: impl Into<AnswerBody>,
) -> Response<AnswerBody> {
    let mut response = Response::new(body.into());
    let head = MINT_MEDIA_TYPES.iter().position(|known| *known == media);
    let headers = response.headers_mut();
    *headers = HEADS[head.unwrap_or_default()].clone();
    if head.is_none() {
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(media.content_type()),
        );
    }
    if count != 1 {
        headers.insert(IDMINT_COUNT, HeaderValue::from(count));
    }
    if media == MediaType::OctetStream {
        headers.insert(IDMINT_WIDTH, HeaderValue::from(format.byte_width()));
    }
    response
}

/// The assumed maximum length of a chunk, in bytes, if a streamed body does not report its length.
const PIECE_LEN_UNTOLD: usize = 128 * 1024;

/// The body of a response: minted ids, or any other body.
pub struct AnswerBody(Content);

enum Content {
    /// Ids that are sent in one frame of the body.
    Ids {
        /// The encoded ids. They take at least one byte, so an empty text means that the frame with
        /// the ids has been sent.
        text: Bytes,
        /// The memory that is reserved for the ids, or `None` for only a few ids.
        reserved: Option<Box<MemoryReservation>>,
    },
    /// Many ids, which are encoded in chunks while the body is sent. Each chunk is one frame.
    LongIds {
        pieces: Box<LongBody<IdPieces>>,
        /// The memory reserved for the first chunk.
        reserved: Option<Box<MemoryReservation>>,
    },
    /// A body without ids, or with ids among other JSON members.
    Other(Body),
}

/// The memory and the permit that a request for many ids must get before any id is minted.
pub(crate) struct Admitted {
    /// The memory reserved for the first chunk.
    pub(crate) reserved: MemoryReservation,
    /// The permit for long work, or `None` if the work is short. Permits share the cores fairly
    /// among callers.
    pub(crate) pass: Option<BulkPass>,
}

impl AnswerBody {
    /// Returns the body of a mint response. `admitted` has the memory reserved for the response,
    /// and a permit if writing it is long work. `admitted` is `None` for a short response.
    pub(crate) fn of_ids(
        encoder: IdEncoder,
        format: &Arc<Format>,
        ids: Batch,
        admitted: Option<Box<Admitted>>,
    ) -> Self {
        let (reserved, pass) = admitted
            .map(|admitted| (Box::new(admitted.reserved), admitted.pass))
            .unzip();
        Self(encode_ids(encoder, format, ids, reserved, pass.flatten()))
    }

    /// `true` if the body consists of ids. In that case the [status and headers](minted) of the
    /// response are complete except for the request id.
    pub(crate) fn is_of_ids(&self) -> bool {
        !matches!(self.0, Content::Other(_))
    }
}

impl ReservedBody for AnswerBody {
    fn take_reservation(&mut self) -> Option<MemoryReservation> {
        match &mut self.0 {
            Content::Ids { reserved, .. } | Content::LongIds { reserved, .. } => {
                reserved.take().map(|reserved| *reserved)
            }
            Content::Other(_) => None,
        }
    }

    fn piece_len_max(&self) -> usize {
        match &self.0 {
            Content::Ids { text, .. } => text.len(),
            Content::LongIds { pieces, .. } => pieces.piece_len_max(),
            Content::Other(body) => match body.size_hint().exact() {
                Some(len) => usize::try_from(len).unwrap_or(usize::MAX),
                None if body.is_end_stream() => 0,
                None => PIECE_LEN_UNTOLD,
            },
        }
    }
}

/// Returns an empty body.
impl Default for AnswerBody {
    fn default() -> Self {
        Self(Content::Other(Body::empty()))
    }
}

impl From<Body> for AnswerBody {
    fn from(body: Body) -> Self {
        Self(Content::Other(body))
    }
}

impl From<Vec<u8>> for AnswerBody {
    fn from(body: Vec<u8>) -> Self {
        Self(Content::Other(Body::from(body)))
    }
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match &mut self.get_mut().0 {
            Content::Ids { text, .. } if text.is_empty() => Poll::Ready(None),
            Content::Ids { text, .. } => Poll::Ready(Some(Ok(Frame::data(mem::take(text))))),
            Content::LongIds { pieces, .. } => Pin::new(pieces)
                .poll_frame(context)
                .map_err(axum::Error::new),
            Content::Other(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Ids { text, .. } => text.is_empty(),
            Content::LongIds { pieces, .. } => pieces.is_end_stream(),
            Content::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Ids { text, .. } => SizeHint::with_exact(
                u64::try_from(text.len()).expect("memory is shorter than 2^64"),
            ),
            Content::LongIds { pieces, .. } => pieces.size_hint(),
            Content::Other(body) => body.size_hint(),
        }
    }
}

/// The length of a chunk of a long response, in bytes. A chunk may be slightly longer, because ids
/// are not split. Shorter chunks would cost more system calls. Longer chunks would leave the
/// processor's cache before they are sent.
const PIECE_LEN: usize = 256 * 1024;

/// The maximum length, in bytes, of a response that is built as a whole to determine its length.
/// This is needed if the length depends on ids that are not minted yet.
const BUILT_LEN_MAX: usize = 1024 * 1024;

/// The capacity that is reserved for the bytes before the first id, in bytes. It is enough for
/// nearly every response.
const HEAD_ROOM: usize = 96;

/// The number of ids that are encoded together, as one block, in a long response. The fixed cost of
/// a block is negligible at this size.
const IDS_AT_ONCE: usize = 512;

/// The number of ids that are encoded together in a response of at most `FEW_IDS` ids. A larger
/// buffer would take longer to clear.
const FEW_IDS: usize = 32;

/// The encoder of the ids of one response.
#[derive(Debug, Clone)]
pub(crate) struct IdEncoder {
    form: Form,
    head: Head,
    tail: &'static str,
    /// The text before each id, if the ids have a prefix and are text in the canonical encoding.
    prefix: Option<Prefix>,
}

/// The bytes before the first id.
#[derive(Debug, Clone, Copy)]
enum Head {
    Text(&'static str),
    /// The start of a JSON object. `list` begins the list of ids, such as `,"ids":["`.
    Json {
        count: u64,
        label: Option<&'static str>,
        list: &'static str,
    },
}

/// The form in which the ids of a response are written.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// Text. `encoding` is the index of an encoding of the format. `separator` is written between
    /// two ids.
    Text {
        encoding: usize,
        separator: Separator,
    },
    /// Big-endian bytes. `width` is the number of bytes that the greatest id of the format needs.
    Bytes { width: usize },
    /// Rows, each of which is a run of equally spaced ids. The response has at most about
    /// `rows_max` rows.
    Rows { rows_max: usize },
}

/// The bytes between two ids, such as a line end. They are an array of constant length, because the
/// compiler can write such an array without a function call.
#[derive(Debug, Clone, Copy)]
enum Separator {
    One([u8; 1]),
    Three([u8; 3]),
}

impl Separator {
    const fn len(self) -> usize {
        match self {
            Separator::One(bytes) => bytes.len(),
            Separator::Three(bytes) => bytes.len(),
        }
    }
}

impl IdEncoder {
    /// Returns an encoder for ids of `format` in one of the media types of a mint response.
    ///
    /// `label` is the value of the member `label` of a JSON response, such as `development`. The
    /// response lacks the member if `label` is `None`.
    pub(crate) fn new(
        media: MediaType,
        format: &Format,
        encoding: usize,
        count: u64,
        label: Option<&'static str>,
    ) -> IdEncoder {
        let text = |separator| Form::Text {
            encoding,
            separator,
        };
        let (form, head, tail) = match media {
            MediaType::Text => (text(Separator::One(*b"\n")), Head::Text(""), "\n"),
            MediaType::Ndjson => (text(Separator::Three(*b"\"\n\"")), Head::Text("\""), "\"\n"),
            MediaType::OctetStream => (
                Form::Bytes {
                    width: format.byte_width(),
                },
                Head::Text(""),
                "",
            ),
            _ => {
                let list = r#","ids":[""#;
                let head = Head::Json { count, label, list };
                (text(Separator::Three(*b"\",\"")), head, "\"]}\n")
            }
        };
        IdEncoder {
            form,
            head,
            tail,
            prefix: None,
        }
    }

    /// Returns an encoder that writes `count` ids as rows, each for a run of equally spaced ids.
    /// The node mints the format with `lanes` worker numbers.
    pub(crate) fn of_rows(
        format: &Format,
        lanes: usize,
        count: u64,
        label: Option<&'static str>,
    ) -> IdEncoder {
        let form = Form::Rows {
            rows_max: rows_max(format, lanes, count),
        };
        IdEncoder {
            form,
            head: Head::Json {
                count,
                label,
                list: r#","rows":["#,
            },
            tail: "]}\n",
            prefix: None,
        }
    }

    /// Sets the prefix to write before each id. The prefix is ignored unless the ids are written as
    /// text in the format's canonical encoding, which is its first one.
    #[must_use]
    pub(crate) fn behind(self, prefix: Option<Prefix>) -> IdEncoder {
        match self.form {
            Form::Text { encoding: 0, .. } => IdEncoder { prefix, ..self },
            Form::Text { .. } | Form::Bytes { .. } | Form::Rows { .. } => self,
        }
    }

    fn prefix(&self) -> &str {
        self.prefix.as_ref().map_or("", Prefix::as_str)
    }

    fn write_head(&self, format: &Format, out: &mut Vec<u8>) {
        match self.head {
            Head::Text(text) => out.extend_from_slice(text.as_bytes()),
            Head::Json { count, label, list } => {
                write_members(format, count, label, out);
                out.extend_from_slice(list.as_bytes());
            }
        }
    }

    /// Returns the length of the body in bytes, from the first id to the end. Returns `None` if the
    /// length depends on ids that are not minted yet.
    fn len_after_head(&self, format: &Format, ids: &Batch) -> Option<u64> {
        let count = ids.count();
        let short_len = |len: usize| u64::try_from(len).expect("a few bytes");
        let ids_len = match self.form {
            Form::Bytes { width } => short_len(width).checked_mul(count)?,
            // Subtract one byte, because the last row has no comma.
            Form::Rows { .. } => ids.rows_len(row_len)?.checked_sub(1)?,
            Form::Text {
                encoding,
                separator,
            } => {
                let separators = count
                    .checked_sub(1)?
                    .checked_mul(short_len(separator.len()))?;
                let prefixes = count.checked_mul(short_len(self.prefix().len()))?;
                let texts = ids.text_len(&format.encodings[encoding])?;
                texts.checked_add(separators)?.checked_add(prefixes)?
            }
        };
        ids_len.checked_add(short_len(self.tail.len()))
    }

    /// Returns the maximum length, in bytes, of the first chunk of a response with `count` ids.
    pub(crate) fn first_piece_len_max(&self, count: u64, format: &Format) -> usize {
        let whole = self.room_for(usize::try_from(count).unwrap_or(usize::MAX), format);
        let is_length_known = format.rule == Rule::Sequenced || self.is_fixed(format);
        let most = if is_length_known {
            IdPieces::PIECE_LEN_MAX
        } else {
            BUILT_LEN_MAX + PIECE_LEN
        };
        HEAD_ROOM + whole.min(most)
    }

    /// `true` if all ids of a format have the same length.
    fn is_fixed(&self, format: &Format) -> bool {
        match self.form {
            Form::Bytes { .. } => true,
            Form::Rows { .. } => false,
            Form::Text { encoding, .. } => format.encodings[encoding].fixed_len().is_some(),
        }
    }

    /// Returns the maximum number of bytes of `count` ids, including the separators and the bytes
    /// after the last id.
    fn room_for(&self, count: usize, format: &Format) -> usize {
        let ids_len = match self.form {
            Form::Bytes { width } => IdBlock::bytes_len_max(count, width),
            Form::Rows { rows_max } => count.min(rows_max).saturating_mul(ROW_LEN_MAX),
            Form::Text {
                encoding,
                separator,
            } => format.encodings[encoding]
                .block_len_max(count, self.prefix().len() + separator.len()),
        };
        ids_len.saturating_add(self.tail.len())
    }

    /// Writes ids to `out` until `out` is `len_max` bytes long or all ids are written. Returns
    /// `true` if all ids and the closing bytes of the body are written.
    fn write(&self, format: &Format, ids: &mut Batch, out: &mut Vec<u8>, len_max: usize) -> bool {
        if ids.count() <= FEW_IDS as u64 {
            self.write_blocks::<FEW_IDS>(format, ids, out, len_max)
        } else {
            self.write_blocks::<IDS_AT_ONCE>(format, ids, out, len_max)
        }
    }

    fn write_blocks<const BLOCK: usize>(
        &self,
        format: &Format,
        ids: &mut Batch,
        out: &mut Vec<u8>,
        len_max: usize,
    ) -> bool {
        let mut computed = [0_u128; BLOCK];
        while out.len() < len_max && ids.count() > 0 {
            match self.form {
                Form::Bytes { width } => ids.next_block(&mut computed).write_bytes(width, out),
                Form::Text {
                    encoding,
                    separator,
                } => {
                    let encoding = &format.encodings[encoding];
                    let block = ids.next_block(&mut computed);
                    match separator {
                        Separator::One(seam) => self.write_texts(encoding, block, seam, out),
                        Separator::Three(seam) => self.write_texts(encoding, block, seam, out),
                    }
                }
                Form::Rows { .. } => ids.next_row().iter().for_each(|row| write_row(row, out)),
            }
        }
        if ids.count() > 0 {
            return false;
        }
        match self.form {
            Form::Text { separator, .. } => out.truncate(out.len() - separator.len()),
            Form::Rows { .. } => out.truncate(out.len() - b",".len()),
            Form::Bytes { .. } => {}
        }
        out.extend_from_slice(self.tail.as_bytes());
        true
    }
}

impl IdEncoder {
    #[inline]
    fn write_texts<const SEAM: usize>(
        &self,
        encoding: &Encoding,
        block: IdBlock<'_>,
        seam: [u8; SEAM],
        out: &mut Vec<u8>,
    ) {
        match &self.prefix {
            None => encoding.write_block(block, seam, out),
            Some(prefix) => encoding.write_block_behind(prefix.as_str(), block, seam, out),
        }
    }
}

/// Writes the JSON members before the list of ids.
#[inline]
fn write_members(format: &Format, count: u64, label: Option<&'static str>, out: &mut Vec<u8>) {
    let mut write = |text: &str| out.extend_from_slice(text.as_bytes());
    write(r#"{"format":""#);
    write(&format.name);
    write(r#"","count":"#);
    write(itoa::Buffer::new().format(count));
    if let Some(label) = label {
        write(r#","label":""#);
        write(label);
        write(r#"""#);
    }
}

/// Encodes the ids of a response. If all ids fit into one chunk, they are encoded now. Otherwise
/// they are encoded chunk by chunk while the response is sent. If `pass`, the permit for long work,
/// is given, writing each of these chunks counts as long work.
fn encode_ids(
    encoder: IdEncoder,
    format: &Arc<Format>,
    mut ids: Batch,
    reserved: Option<Box<MemoryReservation>>,
    pass: Option<BulkPass>,
) -> Content {
    let room = encoder.room_for(usize::try_from(ids.count()).unwrap_or(usize::MAX), format);
    let mut head = Vec::with_capacity(HEAD_ROOM + if room <= PIECE_LEN { room } else { 0 });
    encoder.write_head(format, &mut head);
    if room <= PIECE_LEN {
        encoder.write(format, &mut ids, &mut head, usize::MAX);
        return Content::Ids {
            text: Bytes::from(head),
            reserved,
        };
    }
    let head_len = u64::try_from(head.len()).expect("a few bytes");
    let len = encoder
        .len_after_head(format, &ids)
        .and_then(|after| after.checked_add(head_len));
    if len.is_none() && encoder.write(format, &mut ids, &mut head, BUILT_LEN_MAX) {
        return Content::Ids {
            text: Bytes::from(head),
            reserved,
        };
    }
    let pieces = IdPieces {
        encoder,
        format: Arc::clone(format),
        ids,
        head,
        pass,
    };
    Content::LongIds {
        pieces: Box::new(LongBody::new(pieces, None, len)),
        reserved,
    }
}

/// Ids that are written in chunks.
pub(crate) struct IdPieces {
    encoder: IdEncoder,
    format: Arc<Format>,
    ids: Batch,
    /// The first bytes of the first chunk. The rest of the chunk is written when the connection
    /// asks for it.
    head: Vec<u8>,
    /// The permit for bulk work.
    pass: Option<BulkPass>,
}

impl Pieces for IdPieces {
    fn pass(&mut self) -> Option<&mut BulkPass> {
        self.pass.as_mut()
    }

    // If the node has more long requests than cores, write the chunks on another thread. On the
    // connection's thread, they would delay requests for single ids by milliseconds.
    fn thread(&self) -> PieceThread {
        let aside = self.pass.as_ref().and_then(BulkPass::aside);
        aside.map_or(PieceThread::OfConnection, |bulk| {
            PieceThread::Aside(bulk.clone())
        })
    }

    // A chunk may exceed `PIECE_LEN` by one block of 512 ids. Nearly all ids are shorter than 128
    // bytes, so the block is shorter than 64 KiB, a quarter of `PIECE_LEN`.
    const PIECE_LEN_MAX: usize = PIECE_LEN + PIECE_LEN / 4;

    fn next_piece(&mut self) -> (Vec<u8>, bool) {
        let mut piece = mem::take(&mut self.head);
        if piece.len() < PIECE_LEN {
            piece.reserve_exact(PIECE_LEN + self.encoder.room_for(IDS_AT_ONCE, &self.format));
        }
        let is_last = self
            .encoder
            .write(&self.format, &mut self.ids, &mut piece, PIECE_LEN);
        (piece, is_last)
    }
}
