//! Long answers, sent piece by piece: each is written when the connection has taken the one before.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::service::Requests;

/// Writes an answer in pieces.
pub trait Pieces: Send + Unpin + 'static {
    /// The length that no piece exceeds, in bytes.
    const PIECE_LEN_MAX: usize;

    /// The next piece, and whether it is the last.
    fn next_piece(&mut self) -> (Vec<u8>, bool);

    /// Somebody wants the next piece, which is written from now on.
    fn resume(&mut self) {}

    /// A piece is handed over: it depends on the caller when the next one is wanted.
    fn pause(&mut self) {}

    /// Where the next piece is written.
    fn thread(&self) -> PieceThread {
        PieceThread::OfConnection
    }
}

/// Where a piece is written.
pub enum PieceThread {
    /// On the thread of the connection, which waits for it.
    OfConnection,
    /// There too, but then others have their turn.
    OfConnectionInTurn,
    /// On another thread, when a core is free for long work.
    Aside(Arc<Requests>),
}

/// A piece that is being written on another thread, and the others.
type Writing<P> = Pin<Box<dyn Future<Output = (P, Vec<u8>, bool)> + Send>>;

/// The body of an answer in pieces.
pub struct LongBody<P: Pieces> {
    /// None while another thread has them.
    pieces: Option<P>,
    writing: Option<Writing<P>>,
    /// The piece that is written already.
    ready: Option<Vec<u8>>,
    /// Bytes not handed over yet, where the length is known.
    left: Option<u64>,
    /// Whether the last piece is written.
    is_done: bool,
}

impl<P: Pieces> LongBody<P> {
    /// A body of at least one piece; `first` if that is written already and is not the last.
    ///
    /// `len`: of the whole body, if it is known.
    pub(in crate::http) fn new(pieces: P, first: Option<Vec<u8>>, len: Option<u64>) -> Self {
        Self {
            pieces: Some(pieces),
            writing: None,
            ready: first,
            left: len,
            is_done: false,
        }
    }

    /// How long the next piece can be, in bytes.
    pub(super) fn piece_len_max(&self) -> usize {
        match (&self.ready, self.left) {
            (Some(ready), _) => ready.len(),
            (None, _) if self.is_done => 0,
            (None, None) => P::PIECE_LEN_MAX,
            (None, Some(left)) => usize::try_from(left)
                .unwrap_or(usize::MAX)
                .min(P::PIECE_LEN_MAX),
        }
    }
}

impl<P: Pieces> LongBody<P> {
    /// Has the next piece written, to be found in `ready`.
    fn poll_next_piece(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let is_in_turn = match (&mut self.writing, &mut self.pieces) {
            (Some(writing), _) => {
                let (mut pieces, piece, is_last) = ready!(writing.as_mut().poll(context));
                pieces.pause();
                (self.pieces, self.writing) = (Some(pieces), None);
                (self.ready, self.is_done) = (Some(piece), is_last);
                return Poll::Ready(());
            }
            (None, Some(pieces)) => {
                pieces.resume();
                match pieces.thread() {
                    PieceThread::OfConnection => false,
                    PieceThread::OfConnectionInTurn => true,
                    PieceThread::Aside(requests) => {
                        let mut pieces = self.pieces.take().expect("matched just now");
                        self.writing = Some(Box::pin(async move {
                            let write = move || {
                                let (piece, is_last) = pieces.next_piece();
                                (pieces, piece, is_last)
                            };
                            requests.work_aside(write).await
                        }));
                        return self.poll_next_piece(context);
                    }
                }
            }
            (None, None) => unreachable!("pieces that another thread has are being written"),
        };
        let pieces = self.pieces.as_mut().expect("matched just now");
        let (piece, is_last) = pieces.next_piece();
        pieces.pause();
        (self.ready, self.is_done) = (Some(piece), is_last);
        if is_in_turn {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
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
            ready!(this.poll_next_piece(context));
        }
        let piece = this.ready.take().expect("written just now, or before");
        if let Some(left) = &mut this.left {
            let len = u64::try_from(piece.len()).expect("a piece is short");
            *left = left
                .checked_sub(len)
                .expect("the length was computed from what is written");
        }
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_done && self.ready.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.left
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
