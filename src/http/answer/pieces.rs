//! Long answers, sent piece by piece: each is written when the connection has taken the one before.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::service::Receipt;

/// Writes an answer in pieces.
pub trait Pieces: Send + Unpin + 'static {
    /// Whether a piece takes so long that the thread should be left to others between two of them.
    const YIELDS: bool;

    /// The next piece, and whether it is the last.
    fn next_piece(&mut self) -> (Vec<u8>, bool);

    /// What is owed for the pieces written since this was asked for last.
    fn receipt(&mut self) -> Option<Receipt> {
        None
    }
}

/// The body of an answer in pieces.
pub struct LongBody<P: Pieces> {
    pieces: P,
    /// The piece that is written already.
    ready: Option<Vec<u8>>,
    /// Bytes not handed over yet, where the length is known.
    left: Option<u64>,
    /// Whether the last piece is written.
    is_done: bool,
}

impl<P: Pieces> LongBody<P> {
    /// The body whose first piece is written already and is not the last.
    ///
    /// `len`: of the whole body, if it is known.
    pub(in crate::http) fn new(pieces: P, first: Vec<u8>, len: Option<u64>) -> Self {
        Self { pieces, ready: Some(first), left: len, is_done: false }
    }

    /// What is owed for the pieces that were handed over since this was asked for last.
    pub(super) fn take_receipt(&mut self) -> Option<Receipt> {
        self.ready.is_none().then(|| self.pieces.receipt()).flatten()
    }

    /// Who took a piece and left its receipt has what is in it.
    fn settle_unclaimed(&mut self) {
        if let Some(receipt) = self.take_receipt() {
            receipt.settle();
        }
    }
}

impl<P: Pieces> Drop for LongBody<P> {
    fn drop(&mut self) {
        self.settle_unclaimed();
    }
}

impl<P: Pieces> Body for LongBody<P> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        if this.ready.is_none() && this.is_done {
            return Poll::Ready(None);
        }
        if this.ready.is_none() {
            this.settle_unclaimed();
            let (piece, is_last) = this.pieces.next_piece();
            this.ready = Some(piece);
            this.is_done = is_last;
            if P::YIELDS {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        let piece = this.ready.take().expect("written just now, or before");
        if let Some(left) = &mut this.left {
            let len = u64::try_from(piece.len()).expect("a piece is short");
            *left = left.checked_sub(len).expect("the length was computed from what is written");
        }
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_done && self.ready.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
