//! Ids as bytes: spelled while they are sent, in bounded memory, with the length known before.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::representation::MediaType;
use super::service::Outgoing;
use crate::id::{Encoding, Format};

/// Bytes of one piece of a long answer, about.
const PIECE_LEN: usize = 64 * 1024;

/// Answers whose length is not known before the ids are drawn are built whole up to this length.
const BUILT_LEN_MAX: usize = 1024 * 1024;

/// Ids computed at once.
const IDS_AT_ONCE: usize = 256;

/// How the ids of one answer are written.
#[derive(Debug, Clone)]
pub(super) struct Spelling {
    format: Arc<Format>,
    script: Script,
    head: String,
    tail: &'static str,
}

/// What stands for an id.
#[derive(Debug, Clone, Copy)]
enum Script {
    /// Its text in the encoding of that position, between `open` and `close`, with `between` from one to the next.
    Text { encoding: usize, open: &'static str, close: &'static str, between: &'static str },
    /// Its bytes, big-endian, as many as the greatest id needs.
    Bytes { width: usize },
}

impl Spelling {
    /// Ids of `format` in one of the media types of a mint answer.
    ///
    /// `label`: what JSON says about the ids beside their format.
    pub(super) fn new(
        media: MediaType,
        format: &Arc<Format>,
        encoding: usize,
        count: u64,
        label: Option<&str>,
    ) -> Spelling {
        let text = |open, close, between| Script::Text { encoding, open, close, between };
        let (script, head, tail) = match media {
            MediaType::Text => (text("", "\n", ""), String::new(), ""),
            MediaType::Ndjson => (text("\"", "\"\n", ""), String::new(), ""),
            MediaType::OctetStream => (Script::Bytes { width: format.byte_width() }, String::new(), ""),
            _ => {
                let label = label.map(|label| format!(r#""label":"{label}","#)).unwrap_or_default();
                let head = format!(r#"{{"format":"{}","count":{count},{label}"ids":["#, format.name);
                (text("\"", "\"", ","), head, "]}")
            }
        };
        Spelling { format: Arc::clone(format), script, head, tail }
    }

    /// How many bytes the answer has; `None` when that depends on ids that are not drawn yet.
    fn len(&self, ids: &Outgoing) -> Option<u64> {
        let count = ids.batch.count();
        let frame_len = |text: &str| u64::try_from(text.len()).expect("a few characters");
        let ids_len = match self.script {
            Script::Bytes { width } => u64::try_from(width).expect("at most 16").checked_mul(count)?,
            Script::Text { encoding, open, close, between } => {
                let text_len = ids.batch.text_len(&self.format.encodings[encoding])?;
                let frames = (frame_len(open) + frame_len(close) + frame_len(between)).checked_mul(count)?;
                text_len.checked_add(frames)? - frame_len(between)
            }
        };
        ids_len.checked_add(frame_len(&self.head) + frame_len(self.tail))
    }

    /// Writes ids to `out` until they are all taken or it is `len_max` long, and says whether they are.
    fn write(&self, ids: &mut Outgoing, is_first: &mut bool, out: &mut Vec<u8>, len_max: usize) -> bool {
        let mut computed = [0_u128; IDS_AT_ONCE];
        while out.len() < len_max {
            let count = ids.batch.fill(&mut computed);
            if count == 0 {
                return true;
            }
            let taken = &computed[..count];
            match self.script {
                Script::Bytes { width } => {
                    for id in taken {
                        out.extend_from_slice(&id.to_be_bytes()[16 - width..]);
                    }
                }
                Script::Text { encoding, open, close, between } => {
                    let encoding = &self.format.encodings[encoding];
                    let between = between.as_bytes();
                    if *is_first && count > 0 {
                        write_texts(encoding, &taken[..1], [open, close], b"", out);
                        write_texts(encoding, &taken[1..], [open, close], between, out);
                    } else {
                        write_texts(encoding, taken, [open, close], between, out);
                    }
                }
            }
            *is_first = false;
        }
        ids.batch.count() == 0
    }
}

/// Writes each id after `between`: one growth of the buffer for all of them, and no allocation for each.
fn write_texts(encoding: &Encoding, ids: &[u128], [open, close]: [&str; 2], between: &[u8], out: &mut Vec<u8>) {
    let frame_len = open.len() + close.len() + between.len();
    let texts_len: usize = match encoding.fixed_len() {
        Some(len) => len * ids.len(),
        None => ids.iter().map(|id| encoding.len(*id)).sum(),
    };
    let start = out.len();
    out.resize(start + texts_len + frame_len * ids.len(), 0);
    let mut rest = &mut out[start..];
    let put = |bytes: &[u8], rest: &mut &mut [u8]| {
        let (here, after) = std::mem::take(rest).split_at_mut(bytes.len());
        here.copy_from_slice(bytes);
        *rest = after;
    };
    for id in ids {
        put(between, &mut rest);
        put(open.as_bytes(), &mut rest);
        let (here, after) = std::mem::take(&mut rest).split_at_mut(encoding.len(*id));
        encoding.write(*id, here);
        rest = after;
        put(close.as_bytes(), &mut rest);
    }
}

/// The body of a mint answer.
pub(super) fn body(spelling: Spelling, mut ids: Outgoing) -> axum::body::Body {
    let len = spelling.len(&ids);
    let whole = len.map_or(BUILT_LEN_MAX, |len| usize::try_from(len).unwrap_or(usize::MAX));
    let mut first_piece = Vec::with_capacity(whole.min(PIECE_LEN + PIECE_LEN / 8));
    first_piece.extend_from_slice(spelling.head.as_bytes());
    let mut is_first = true;
    let len_max = if len.is_some() { PIECE_LEN } else { BUILT_LEN_MAX };
    if spelling.write(&mut ids, &mut is_first, &mut first_piece, len_max) {
        first_piece.extend_from_slice(spelling.tail.as_bytes());
        return axum::body::Body::from(first_piece);
    }
    let left = len;
    axum::body::Body::new(LongBody { spelling, ids, is_first, ready: Some(first_piece), left, is_done: false })
}

/// A long answer: each piece is spelled when the connection has sent the one before.
struct LongBody {
    spelling: Spelling,
    ids: Outgoing,
    is_first: bool,
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
            let mut piece = Vec::with_capacity(PIECE_LEN + PIECE_LEN / 8);
            if this.spelling.write(&mut this.ids, &mut this.is_first, &mut piece, PIECE_LEN) {
                piece.extend_from_slice(this.spelling.tail.as_bytes());
                this.is_done = true;
            }
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
