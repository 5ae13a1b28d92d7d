//! Long responses, sent in chunks. A chunk is written once the connection has taken the previous
//! chunk.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use idmint_service::{BulkPass, PeerBulk};

/// A source of the chunks of a response.
pub(crate) trait Pieces: Send + Unpin + 'static {
    /// The maximum length of a chunk, in bytes.
    const PIECE_LEN_MAX: usize;

    /// Returns the next chunk, and `true` if the chunk is the last one.
    fn next_piece(&mut self) -> (Vec<u8>, bool);

    /// Returns the permit for long work, if the response needs one. The permit is paused while the
    /// connection sends a chunk, so a caller that stops reading does not block the long work of
    /// other callers.
    fn pass(&mut self) -> Option<&mut BulkPass>;

    /// Returns the thread on which the next chunk is written.
    fn thread(&self) -> PieceThread {
        PieceThread::OfConnection
    }
}

/// The thread on which a chunk is written.
pub(crate) enum PieceThread {
    /// The chunk is written on its connection's thread, on which other tasks wait meanwhile.
    OfConnection,
    /// The chunk is written on its connection's thread. After each chunk, other tasks may run.
    OfConnectionInTurn,
    /// The chunk is written on another thread, as soon as this peer gets a core for its long work.
    Aside(PeerBulk),
}

/// A chunk that another thread is writing. The future resolves to the source of further chunks, the
/// chunk, and `true` if the chunk is the last one.
type Writing<P> = Pin<Box<dyn Future<Output = (P, Vec<u8>, bool)> + Send>>;

/// The body of a response in chunks.
pub(crate) struct LongBody<P: Pieces> {
    /// The source of the chunks, or `None` while another thread owns it.
    pieces: Option<P>,
    writing: Option<Writing<P>>,
    /// The next chunk, if it is already written.
    ready: Option<Vec<u8>>,
    /// The number of bytes not yet handed over to the connection, if the length of the body is
    /// known.
    left: Option<u64>,
    /// `true` once the last chunk is written.
    is_done: bool,
}

impl<P: Pieces> LongBody<P> {
    /// Returns a body of at least one chunk. `first` is the first chunk if it is already written.
    /// `first` must not be the last chunk.
    ///
    /// `len` is the length of the whole body, if it is known.
    pub(crate) fn new(pieces: P, first: Option<Vec<u8>>, len: Option<u64>) -> Self {
        Self {
            pieces: Some(pieces),
            writing: None,
            ready: first,
            left: len,
            is_done: false,
        }
    }

    /// Returns the maximum length of the next chunk, in bytes.
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
    /// Writes the next chunk to `ready`.
    fn poll_next_piece(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let is_in_turn = match (&mut self.writing, &mut self.pieces) {
            (Some(writing), _) => {
                let (mut pieces, piece, is_last) = ready!(writing.as_mut().poll(context));
                pieces.pass().into_iter().for_each(BulkPass::pause);
                (self.pieces, self.writing) = (Some(pieces), None);
                (self.ready, self.is_done) = (Some(piece), is_last);
                return Poll::Ready(());
            }
            (None, Some(pieces)) => {
                pieces.pass().into_iter().for_each(BulkPass::resume);
                match pieces.thread() {
                    PieceThread::OfConnection => false,
                    PieceThread::OfConnectionInTurn => true,
                    PieceThread::Aside(bulk) => {
                        let mut pieces = self.pieces.take().expect("matched just now");
                        self.writing = Some(Box::pin(async move {
                            let write = move || {
                                let (piece, is_last) = pieces.next_piece();
                                (pieces, piece, is_last)
                            };
                            bulk.work_aside(write).await
                        }));
                        return self.poll_next_piece(context);
                    }
                }
            }
            (None, None) => unreachable!("pieces that another thread has are being written"),
        };
        let pieces = self.pieces.as_mut().expect("matched just now");
        let (piece, is_last) = pieces.next_piece();
        pieces.pass().into_iter().for_each(BulkPass::pause);
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
