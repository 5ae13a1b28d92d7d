//! The body of a response that is being sent. Memory for each chunk is reserved before the HTTP
//! library hyper gets the chunk.

use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::handler::ResponseBody;
use super::http2_streams::StreamProgress;
use crate::stream::{PROGRESS_LEN, RequestGuard};
use idmint_service::{BudgetOwner, MemoryReservation, ReservedBody};

/// The maximum length, in bytes, of a chunk that needs no separate memory reservation. The memory
/// reserved for the connection or the stream covers such a short chunk.
const SHORT_LEN_MAX: usize = 4 * 1024;

/// The maximum number of response bytes given to the library h2 at once. h2 buffers the bytes until
/// the caller is ready to receive them.
const CHUNK_LEN_MAX: usize = 16 * 1024;

/// A pending memory reservation.
type Reserving = Pin<Box<dyn Future<Output = Option<MemoryReservation>> + Send>>;

/// The body of a response. Its request counts as in flight until the body is dropped.
pub(crate) struct SentAnswer<B> {
    body: B,
    request: RequestGuard,
    /// The owner of the budget from which memory for long chunks is reserved, or `None` if all
    /// chunks are short.
    owner: Option<BudgetOwner>,
    /// The memory reserved for the next chunk.
    reserved: Option<MemoryReservation>,
    paying: Option<Reserving>,
    /// The state of the HTTP/2 stream on which the body is sent, or `None` in HTTP/1.
    stream: Option<Stream>,
}

/// The sending state of an HTTP/2 stream. A stream is reset if no chunk of its response is taken
/// within the idle timeout. So chunks are small while the caller reads slowly.
struct Stream {
    progress: StreamProgress,
    /// The unsent rest of a body frame.
    rest: Bytes,
    chunk_len: usize,
    last_chunk: Instant,
    _reservation: MemoryReservation,
}

/// Returns the memory to reserve for the next chunk of this body, in bytes. Returns `None` if the
/// chunk is so short that no reservation is needed.
pub(super) fn price_of(body: &impl ReservedBody) -> Option<usize> {
    let price = body.piece_len_max();
    (price > SHORT_LEN_MAX).then_some(price)
}

impl<B: ResponseBody> SentAnswer<B> {
    /// Wraps a response body for sending. `reserved` is the memory for the first chunk, and the
    /// owner of the budget from which memory for later chunks is reserved. If `reserved` is `None`,
    /// no memory is reserved for any chunk, so all chunks must be short.
    pub(super) fn new(
        body: B,
        request: RequestGuard,
        reserved: Option<(MemoryReservation, BudgetOwner)>,
    ) -> Self {
        let (reserved, owner) = reserved.unzip();
        Self {
            body,
            request,
            owner,
            reserved,
            paying: None,
            stream: None,
        }
    }

    /// Adapts this body to an HTTP/2 stream. The body is split into small chunks, and `progress`
    /// counts the chunks that h2 takes. `reservation` is held until the response is sent.
    pub(super) fn on_stream(
        self,
        progress: StreamProgress,
        reservation: MemoryReservation,
    ) -> Self {
        // Count the head as the first chunk, because a stream can stall only after its first chunk.
        // Otherwise, a caller that does not even read the head would go unnoticed.
        progress.record();
        let stream = Stream {
            progress,
            rest: Bytes::new(),
            chunk_len: PROGRESS_LEN,
            last_chunk: Instant::now(),
            _reservation: reservation,
        };
        Self {
            stream: Some(stream),
            ..self
        }
    }

    /// Reserves memory for the next chunk of the body, then polls for that chunk.
    fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(owner) = &self.owner
            && self.reserved.is_none()
            && let Some(price) = price_of(&self.body)
        {
            loop {
                let paying = self.paying.get_or_insert_with(|| {
                    let owner = owner.clone();
                    Box::pin(async move { owner.reserve_within_wait(price).await })
                });
                let reserved = ready!(paying.as_mut().poll(context));
                self.paying = None;
                // The head has been sent, so the response can no longer be replaced with a refusal.
                // Retry until memory is free, or until the connection is cut off.
                if reserved.is_some() {
                    self.reserved = reserved;
                    break;
                }
            }
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        self.request.record_progress();
        let Some(reservation) = self.reserved.take() else {
            return Poll::Ready(frame);
        };
        let pay = |bytes| {
            Bytes::from_owner(PaidBytes {
                bytes,
                _reservation: reservation,
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

impl<B: ResponseBody> Body for SentAnswer<B> {
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
        // hyper calls `size_hint` once, before the first chunk. `rest` is still empty at that time.
        self.body.size_hint()
    }
}

/// Bytes with the memory reserved for them. Dropping them ends the reservation.
struct PaidBytes {
    bytes: Bytes,
    _reservation: MemoryReservation,
}

impl AsRef<[u8]> for PaidBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::task::Waker;

    use super::*;
    use crate::stream::Activity;
    use idmint_service::{Load, Shed};

    /// A body whose chunks all need a memory reservation.
    #[derive(Default)]
    struct LongChunks;

    impl Body for LongChunks {
        type Data = Bytes;
        type Error = axum::Error;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"chunk")))))
        }
    }

    impl ReservedBody for LongChunks {
        fn take_reservation(&mut self) -> Option<MemoryReservation> {
            None
        }

        fn piece_len_max(&self) -> usize {
            1 << 20
        }
    }

    #[tokio::test]
    async fn a_response_that_waits_for_memory_is_not_counted_as_a_refusal() {
        let load = Load::default();
        let owner = load.memory.owner(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let first = owner.reserve(1 << 20).await.expect("all memory is free");
        let request = Activity::begin(owner.clone()).begin_request(false);
        let mut answer = SentAnswer::new(LongChunks, request, Some((first, owner.clone())));
        let mut next = move |context: &mut Context<'_>| Pin::new(&mut answer).poll_frame(context);
        let mut context = Context::from_waker(Waker::noop());
        assert!(next(&mut context).is_ready(), "reserved before");

        let all = owner.reserve(usize::MAX).await.expect("all memory is free");
        assert!(next(&mut context).is_pending());
        // The response began to wait for memory before this request. When the request times out and
        // its refusal is counted, the response has timed out as well. The response must wait again
        // without counting a refusal.
        assert_eq!(owner.reserve(1).await.err(), Some(Shed::Memory));
        assert!(next(&mut context).is_pending());
        assert_eq!(load.counts.of(Shed::Memory), 1, "only the request");
        drop(all);
        assert!(next(&mut context).is_ready());
    }
}
