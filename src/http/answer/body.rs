//! The body of an answer: minted ids, or anything else.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::ids::{EncodedIds, IdEncoder, IdPieces, encode_ids};
use super::pieces::LongBody;
use crate::id::Format;
use crate::minting::Batch;
use crate::service::{BulkPass, Charge};

/// What the pieces of a body are at most that is written while it is sent and does not say how long it is, in bytes.
const PIECE_LEN_UNTOLD: usize = 128 * 1024;

/// The body of an answer.
pub enum AnswerBody {
    /// Ids in one frame.
    Ids {
        /// Empty once it is handed over; there is no answer of ids without a byte.
        text: Bytes,
        /// What is paid for them, if they are many.
        paid: Option<Box<Charge>>,
    },
    /// Ids in many frames.
    LongIds {
        /// Them.
        pieces: Box<LongBody<IdPieces>>,
        /// What is paid for the first piece.
        paid: Option<Box<Charge>>,
    },
    /// No ids, or such as stand among other things.
    Other(Body),
}

/// What many ids need before they are minted.
pub(in crate::http) struct Admitted {
    /// Paid for the first piece of their answer.
    pub(in crate::http) paid: Charge,
    /// The leave to write it, where that is long work.
    pub(in crate::http) pass: Option<BulkPass>,
}

impl AnswerBody {
    /// The ids of a mint answer; if they are many, with what is paid for the first of them, and the leave to write them.
    pub(in crate::http) fn of_ids(
        encoder: IdEncoder,
        format: &Arc<Format>,
        ids: Batch,
        admitted: Option<Box<Admitted>>,
    ) -> Self {
        let (paid, pass) = admitted
            .map(|admitted| (Box::new(admitted.paid), admitted.pass))
            .unzip();
        match encode_ids(encoder, format, ids, pass.flatten()) {
            EncodedIds::Whole(text) => Self::Ids {
                text: Bytes::from(text),
                paid,
            },
            EncodedIds::InPieces(pieces) => Self::LongIds { pieces, paid },
        }
    }

    /// Whether it has ids, and so a [head](super::minted) that says all but the name of the request.
    pub(in crate::http) fn is_of_ids(&self) -> bool {
        !matches!(self, Self::Other(_))
    }

    /// What is paid for the first frame already.
    pub fn take_charge(&mut self) -> Option<Charge> {
        match self {
            Self::Ids { paid, .. } | Self::LongIds { paid, .. } => paid.take().map(|paid| *paid),
            Self::Other(_) => None,
        }
    }

    /// How long the next frame can be, in bytes.
    pub fn piece_len_max(&self) -> usize {
        match self {
            Self::Ids { text, .. } => text.len(),
            Self::LongIds { pieces, .. } => pieces.piece_len_max(),
            Self::Other(body) => match body.size_hint().exact() {
                Some(len) => usize::try_from(len).unwrap_or(usize::MAX),
                None if body.is_end_stream() => 0,
                None => PIECE_LEN_UNTOLD,
            },
        }
    }
}

/// Nothing.
impl Default for AnswerBody {
    fn default() -> Self {
        Self::Other(Body::empty())
    }
}

impl From<Body> for AnswerBody {
    fn from(body: Body) -> Self {
        Self::Other(body)
    }
}

impl From<Vec<u8>> for AnswerBody {
    fn from(body: Vec<u8>) -> Self {
        Self::Other(Body::from(body))
    }
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match self.get_mut() {
            Self::Ids { text, .. } if text.is_empty() => Poll::Ready(None),
            Self::Ids { text, .. } => Poll::Ready(Some(Ok(Frame::data(mem::take(text))))),
            Self::LongIds { pieces, .. } => Pin::new(pieces)
                .poll_frame(context)
                .map_err(axum::Error::new),
            Self::Other(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Ids { text, .. } => text.is_empty(),
            Self::LongIds { pieces, .. } => pieces.is_end_stream(),
            Self::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Ids { text, .. } => SizeHint::with_exact(
                u64::try_from(text.len()).expect("memory is shorter than 2^64"),
            ),
            Self::LongIds { pieces, .. } => pieces.size_hint(),
            Self::Other(body) => body.size_hint(),
        }
    }
}
