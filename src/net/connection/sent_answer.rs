//! An answer while it is sent: paid for before hyper has it.

use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::http2_streams::StreamProgress;
use crate::http::AnswerBody;
use crate::net::stream::{PROGRESS_LEN, RequestGuard};
use crate::service::{Charge, Payer, Shed};

/// An answer of no more is paid for by its connection, or by its stream, in bytes.
const SHORT_LEN_MAX: usize = 4 * 1024;

/// The most that h2 is given at once, in bytes: it keeps what it has until the other side makes room.
const CHUNK_LEN_MAX: usize = 16 * 1024;

/// A payment that is being made.
type Paying = Pin<Box<dyn Future<Output = Result<Charge, Shed>> + Send>>;

/// The body of an answer. The request is in flight until it is dropped.
pub(in crate::net) struct SentAnswer {
    body: AnswerBody,
    request: RequestGuard,
    /// Who pays for long pieces, and what is paid for the next one already.
    payer: Option<Payer>,
    paid: Option<Charge>,
    paying: Option<Paying>,
    /// In HTTP/2 alone.
    stream: Option<Stream>,
}

/// What is sent on a stream of HTTP/2, a chunk at a time: small ones while the other side is slow, so that even then the
/// stream moves.
struct Stream {
    progress: StreamProgress,
    /// What is left of a piece.
    rest: Bytes,
    chunk_len: usize,
    last_chunk: Instant,
    _charge: Charge,
}

/// How much the next piece of this body takes, if that is more than a short answer.
pub(super) fn price_of(body: &AnswerBody) -> Option<usize> {
    let price = body.piece_len_max();
    (price > SHORT_LEN_MAX).then_some(price)
}

impl SentAnswer {
    /// An answer whose first piece, if it is long, is paid for.
    pub(super) fn new(
        body: AnswerBody,
        request: RequestGuard,
        paid: Option<(Charge, Payer)>,
    ) -> Self {
        let (paid, payer) = paid.unzip();
        Self {
            body,
            request,
            payer,
            paid,
            paying: None,
            stream: None,
        }
    }

    /// The same on a stream of HTTP/2.
    pub(super) fn on_stream(self, progress: StreamProgress, charge: Charge) -> Self {
        // The head is something to send.
        progress.record();
        let stream = Stream {
            progress,
            rest: Bytes::new(),
            chunk_len: PROGRESS_LEN,
            last_chunk: Instant::now(),
            _charge: charge,
        };
        Self {
            stream: Some(stream),
            ..self
        }
    }

    /// The next piece of the body, paid for.
    fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(payer) = &self.payer
            && self.paid.is_none()
            && let Some(price) = price_of(&self.body)
        {
            loop {
                let paying = self.paying.get_or_insert_with(|| {
                    let payer = payer.clone();
                    Box::pin(async move { payer.pay(price).await })
                });
                let paid = ready!(paying.as_mut().poll(context));
                self.paying = None;
                // The head has gone, so there is nothing to refuse: it waits until somebody gives memory back, or is cut.
                if let Ok(charge) = paid {
                    self.paid = Some(charge);
                    break;
                }
            }
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        self.request.record_progress();
        let Some(charge) = self.paid.take() else {
            return Poll::Ready(frame);
        };
        let pay = |bytes| {
            Bytes::from_owner(PaidBytes {
                bytes,
                _charge: charge,
            })
        };
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(pay))))
    }
}

impl Stream {
    fn next_chunk(&mut self, idle_timeout: Duration) -> Bytes {
        let now = Instant::now();
        let is_slow = now - mem::replace(&mut self.last_chunk, now) > idle_timeout / 32;
        self.chunk_len = if is_slow {
            PROGRESS_LEN
        } else {
            (2 * self.chunk_len).min(CHUNK_LEN_MAX)
        };
        self.progress.record();
        self.rest.split_to(self.chunk_len.min(self.rest.len()))
    }
}

impl Body for SentAnswer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        if this
            .stream
            .as_ref()
            .is_none_or(|stream| stream.rest.is_empty())
        {
            let frame = ready!(this.poll_piece(context));
            let Some(stream) = &mut this.stream else {
                return Poll::Ready(frame);
            };
            match frame {
                Some(Ok(frame)) if frame.is_data() => {
                    stream.rest = frame.into_data().unwrap_or_default()
                }
                other => return Poll::Ready(other),
            }
        }
        let stream = this.stream.as_mut().expect("only a stream has a rest");
        let idle_timeout = stream.progress.idle_timeout();
        Poll::Ready(Some(Ok(Frame::data(stream.next_chunk(idle_timeout)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
            && self
                .stream
                .as_ref()
                .is_none_or(|stream| stream.rest.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        // hyper asks once, before the first piece.
        self.body.size_hint()
    }
}

/// Bytes with what is paid for them, until their owner lets them go.
struct PaidBytes {
    bytes: Bytes,
    _charge: Charge,
}

impl AsRef<[u8]> for PaidBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
