//! Ids as bytes: spelled while they are sent, in bounded memory, with the length known before.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::negotiate::MediaType;
use crate::id::{Format, IdBlock};
use crate::service::Outgoing;

/// Bytes of one piece of a long answer; a few more, since ids are not cut. Fewer would cost more system calls, more would
/// not stay in the processor's cache until they are sent.
const PIECE_LEN: usize = 256 * 1024;

/// Answers whose length is not known before the ids are drawn are built whole up to this length.
const BUILT_LEN_MAX: usize = 1024 * 1024;

/// Room for what stands before the first id of nearly every answer.
const HEAD_ROOM: usize = 96;

/// Ids computed at once in a long answer: enough to forget what the first one costs.
const IDS_AT_ONCE: usize = 512;

/// The same in an answer of no more ids than that, which clears no room for others.
const FEW_IDS: usize = 32;

/// How the ids of one answer are written.
#[derive(Debug, Clone)]
pub(in crate::http) struct Spelling {
    script: Script,
    head: Head,
    tail: &'static str,
}

/// What stands before the first id.
#[derive(Debug, Clone, Copy)]
enum Head {
    Text(&'static str),
    Json { count: u64, label: Option<&'static str> },
}

/// What stands for an id.
#[derive(Debug, Clone, Copy)]
enum Script {
    /// Its text in the encoding of that position, with a seam before the next one.
    Text { encoding: usize, seam: Seam },
    /// Its bytes, big-endian, as many as the greatest id needs.
    Bytes { width: usize },
}

/// What stands between two texts. Arrays: a few bytes whose number the compiler knows are stored without a call.
#[derive(Debug, Clone, Copy)]
enum Seam {
    One([u8; 1]),
    Three([u8; 3]),
}

impl Seam {
    const fn len(self) -> usize {
        match self {
            Seam::One(bytes) => bytes.len(),
            Seam::Three(bytes) => bytes.len(),
        }
    }
}

impl Spelling {
    /// Ids of `format` in one of the media types of a mint answer.
    ///
    /// `label`: what JSON says about the ids beside their format.
    pub(in crate::http) fn new(
        media: MediaType,
        format: &Format,
        encoding: usize,
        count: u64,
        label: Option<&'static str>,
    ) -> Spelling {
        let text = |seam| Script::Text { encoding, seam };
        let (script, head, tail) = match media {
            MediaType::Text => (text(Seam::One(*b"\n")), Head::Text(""), "\n"),
            MediaType::Ndjson => (text(Seam::Three(*b"\"\n\"")), Head::Text("\""), "\"\n"),
            MediaType::OctetStream => (Script::Bytes { width: format.byte_width() }, Head::Text(""), ""),
            _ => (text(Seam::Three(*b"\",\"")), Head::Json { count, label }, r#""]}"#),
        };
        Spelling { script, head, tail }
    }

    fn write_head(&self, format: &Format, out: &mut Vec<u8>) {
        let mut write = |text: &str| out.extend_from_slice(text.as_bytes());
        match self.head {
            Head::Text(text) => write(text),
            Head::Json { count, label } => {
                write(r#"{"format":""#);
                write(&format.name);
                write(r#"","count":"#);
                write(itoa::Buffer::new().format(count));
                if let Some(label) = label {
                    write(r#","label":""#);
                    write(label);
                    write(r#"""#);
                }
                write(r#","ids":[""#);
            }
        }
    }

    /// How many bytes follow the head; `None` when that depends on ids that are not drawn yet.
    fn len_after_head(&self, ids: &Outgoing) -> Option<u64> {
        let count = ids.batch.count();
        let short_len = |len: usize| u64::try_from(len).expect("a few bytes");
        let ids_len = match self.script {
            Script::Bytes { width } => short_len(width).checked_mul(count)?,
            Script::Text { encoding, seam } => {
                let seams = count.checked_sub(1)?.checked_mul(short_len(seam.len()))?;
                ids.batch.text_len(&ids.format().encodings[encoding])?.checked_add(seams)?
            }
        };
        ids_len.checked_add(short_len(self.tail.len()))
    }

    /// The most bytes that `count` ids can take, with all that stands between and after them.
    fn room_for(&self, count: usize, format: &Format) -> usize {
        let ids_len = match self.script {
            Script::Bytes { width } => IdBlock::bytes_len_max(count, width),
            Script::Text { encoding, seam } => format.encodings[encoding].block_len_max(count, seam.len()),
        };
        ids_len.saturating_add(self.tail.len())
    }

    /// Writes ids to `out` until it is `len_max` long or they are all taken: then the tail as well, and says so.
    fn write(&self, ids: &mut Outgoing, out: &mut Vec<u8>, len_max: usize) -> bool {
        if ids.batch.count() <= FEW_IDS as u64 {
            self.write_blocks::<FEW_IDS>(ids, out, len_max)
        } else {
            self.write_blocks::<IDS_AT_ONCE>(ids, out, len_max)
        }
    }

    fn write_blocks<const ROW: usize>(&self, ids: &mut Outgoing, out: &mut Vec<u8>, len_max: usize) -> bool {
        let mut computed = [0_u128; ROW];
        while out.len() < len_max && ids.batch.count() > 0 {
            let row = ids.batch.next_row(&mut computed);
            match self.script {
                Script::Bytes { width } => row.write_bytes(width, out),
                Script::Text { encoding, seam: Seam::One(seam) } => {
                    ids.format().encodings[encoding].write_block(row, seam, out);
                }
                Script::Text { encoding, seam: Seam::Three(seam) } => {
                    ids.format().encodings[encoding].write_block(row, seam, out);
                }
            }
        }
        if ids.batch.count() > 0 {
            return false;
        }
        if let Script::Text { seam, .. } = self.script {
            out.truncate(out.len() - seam.len());
        }
        out.extend_from_slice(self.tail.as_bytes());
        true
    }
}

/// The body of a mint answer.
pub(in crate::http) fn body(spelling: Spelling, mut ids: Outgoing) -> axum::body::Body {
    let room = spelling.room_for(usize::try_from(ids.batch.count()).unwrap_or(usize::MAX), ids.format());
    let mut first_piece =
        Vec::with_capacity(HEAD_ROOM + room.min(PIECE_LEN + spelling.room_for(IDS_AT_ONCE, ids.format())));
    spelling.write_head(ids.format(), &mut first_piece);
    if room <= PIECE_LEN {
        spelling.write(&mut ids, &mut first_piece, usize::MAX);
        return axum::body::Body::from(first_piece);
    }
    let head_len = u64::try_from(first_piece.len()).expect("a few bytes");
    let len = spelling.len_after_head(&ids).and_then(|after| after.checked_add(head_len));
    let len_max = if len.is_some() { PIECE_LEN } else { BUILT_LEN_MAX };
    if spelling.write(&mut ids, &mut first_piece, len_max) {
        return axum::body::Body::from(first_piece);
    }
    axum::body::Body::new(LongBody { spelling, ids, ready: Some(first_piece), left: len, is_done: false })
}

/// A long answer: each piece is spelled when the connection has sent the one before.
struct LongBody {
    spelling: Spelling,
    ids: Outgoing,
    /// The piece that is spelled already.
    ready: Option<Vec<u8>>,
    /// Bytes not handed over yet, where the length is known.
    left: Option<u64>,
    is_done: bool,
}

impl Body for LongBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        if this.is_done {
            return Poll::Ready(None);
        }
        let piece = this.ready.take().unwrap_or_else(|| {
            let mut piece = Vec::with_capacity(PIECE_LEN + this.spelling.room_for(IDS_AT_ONCE, this.ids.format()));
            this.is_done = this.spelling.write(&mut this.ids, &mut piece, PIECE_LEN);
            piece
        });
        if let Some(left) = &mut this.left {
            let len = u64::try_from(piece.len()).expect("a piece is short");
            *left = left.checked_sub(len).expect("the length was computed from the same ids");
        }
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_done
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
