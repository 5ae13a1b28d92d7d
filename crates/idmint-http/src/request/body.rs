//! Reads a whole request body, with a limit on its length and on the time to receive it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Extensions, Response};
use bytes::{Bytes, BytesMut};
use http_body::Body as HttpBody;
use http_body_util::BodyExt;

use crate::access::{Permit, permit_of};
use crate::answer::{Problem, Slug};
use idmint_service::{BudgetOwner, MemoryReservation, PeerBulk, Sender, Service, Shed};

/// The maximum estimated length, in bytes, of a response for which no memory is reserved in
/// advance. The connection layer reserves memory only above twice this length. The difference is a
/// margin for estimates that are too low.
pub(crate) const ANSWER_LEN_SHORT: usize = 2 * 1024;

/// Returns the whole body, which must be at most `len_max` bytes long and complete within
/// `timeout`.
///
/// A `Content-Length` over the limit is refused before anything is read and before `100 Continue`
/// is sent. A body of unknown length is refused as soon as it exceeds the limit. If a body is not
/// read to its end, the connection is closed after the response. The listener keeps the connection
/// open long enough for the caller to read the response.
///
/// # Errors
/// Returns 413 `payload-too-large` or 408 `request-timeout` if a limit is exceeded. Returns 503
/// `overloaded` if too many requests wait for their bodies, and this request was dropped to make
/// room for another one. Returns 400 `malformed-request` if the body ends early or its framing is
/// invalid.
pub async fn read_body(body: Body, len_max: usize, timeout: Duration) -> Result<Bytes, Problem> {
    let whole = read_within(body, len_max, timeout, None).await?;
    Ok(whole.bytes)
}

/// A body with the memory reserved for it. Dropping it ends the reservation.
#[derive(Default)]
pub(crate) struct PaidBody {
    pub(crate) bytes: Bytes,
    /// The memory reservation, or `None` if the whole body arrived in one chunk. The memory
    /// reserved for its request already covers one chunk.
    reservation: Option<MemoryReservation>,
}

impl PaidBody {
    pub(crate) fn into_parts(self) -> (Bytes, Option<MemoryReservation>) {
        (self.bytes, self.reservation)
    }
}

/// Reads a body like [`read_body`], but reserves memory for the body as it arrives. A further
/// `parse_percent` percent of the body's length is reserved for parsing.
///
/// # Errors
/// Returns the errors of [`read_body`], and 503 `overloaded` if too little memory is free.
pub(crate) async fn read_reserved_body(
    body: Body,
    len_max: usize,
    timeout: Duration,
    owner: &BudgetOwner,
    parse_percent: usize,
) -> Result<PaidBody, Problem> {
    read_within(body, len_max, timeout, Some((owner, parse_percent))).await
}

/// Reads a body. `paying` is the owner of the memory budget and the extra memory for parsing, in
/// percent of the body's length. If `paying` is `None`, no memory is reserved.
async fn read_within(
    body: Body,
    len_max: usize,
    timeout: Duration,
    paying: Option<(&BudgetOwner, usize)>,
) -> Result<PaidBody, Problem> {
    if body.is_end_stream() {
        return Ok(PaidBody::default());
    }
    check_declared_len(&body, len_max)?;
    tokio::time::timeout(timeout, collect(body, len_max, paying))
        .await
        .unwrap_or_else(|_| Err(too_slow(timeout)))
}

async fn collect(
    mut body: Body,
    len_max: usize,
    paying: Option<(&BudgetOwner, usize)>,
) -> Result<PaidBody, Problem> {
    let declared_len = usize::try_from(body.size_hint().lower())
        .unwrap_or(len_max)
        .min(len_max);
    // Keep the first chunk as it is. A body that arrives in one chunk is then never copied.
    let first = next_piece(&mut body).await?.unwrap_or_default();
    let mut whole = PaidBody {
        bytes: first,
        reservation: None,
    };
    if whole.bytes.len() > len_max {
        return Err(passed(len_max));
    }
    let mut paid_len = 0;
    let mut buffer = BytesMut::new();
    while let Some(piece) = next_piece(&mut body).await? {
        if buffer.is_empty() {
            // Allocate the declared length now. Growing the buffer in steps would temporarily hold
            // the body twice. The operating system provides the memory only as bytes arrive.
            buffer = BytesMut::with_capacity(declared_len.max(whole.bytes.len()));
            buffer.extend_from_slice(&std::mem::take(&mut whole.bytes));
        }
        if piece.len() > len_max - buffer.len() {
            return Err(passed(len_max));
        }
        let len = buffer.len() + piece.len();
        if let Some((owner, parse_percent)) = paying {
            let more = owner
                .reserve((len - paid_len) * (100 + parse_percent) / 100)
                .await?;
            match &mut whole.reservation {
                Some(reservation) => reservation.add(more),
                none => *none = Some(more),
            }
        }
        paid_len = len;
        buffer.extend_from_slice(&piece);
    }
    if !buffer.is_empty() {
        whole.bytes = buffer.freeze();
    }
    Ok(whole)
}

/// Reserves memory for a response of about `len` bytes. Call this function before the request has
/// an effect, so that a refusal for lack of memory means that the request had no effect. Pass the
/// reservation to [`paid_with`] with the response.
///
/// `of_body` is the reservation for the request's body. If `of_body` is given, the response reuses
/// that memory, and more memory is added only if it is free. In this case the function must not
/// wait, because requests that hold memory while they wait for more could block each other.
///
/// # Errors
/// Returns [`Shed::Memory`] if no memory was reserved.
pub(crate) async fn reserve_answer(
    owner: &BudgetOwner,
    of_body: Option<MemoryReservation>,
    len: usize,
) -> Result<Option<MemoryReservation>, Shed> {
    match of_body {
        Some(mut reservation) => {
            if let Some(more) = owner.reserve_if_free(len) {
                reservation.add(more);
            }
            Ok(Some(reservation))
        }
        None if len <= ANSWER_LEN_SHORT => Ok(None),
        None => owner.reserve(len).await.map(Some),
    }
}

/// Attaches the memory that was [reserved](reserve_answer) for a response, and releases the part
/// that the response does not need. The connection layer then need not reserve memory, so it cannot
/// refuse the response of a request that has already taken effect.
pub(crate) fn paid_with<B: HttpBody>(
    mut response: Response<B>,
    reservation: Option<MemoryReservation>,
) -> Response<B> {
    if let Some(mut reservation) = reservation {
        if let Some(len) = response.body().size_hint().exact() {
            reservation.reduce_to(usize::try_from(len).unwrap_or(usize::MAX));
        }
        response.extensions_mut().insert(Arc::new(reservation));
    }
    response
}

/// Returns the owner of the budget from which memory for a request is reserved. Requests for which
/// the connection has set no owner share one owner.
pub(crate) fn owner_of(service: &Service, extensions: &Extensions) -> BudgetOwner {
    let named = extensions.get::<BudgetOwner>().cloned();
    named.unwrap_or_else(|| {
        service
            .load()
            .memory
            .owner(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
    })
}

/// Returns a handle that gets permits for a request's long work and runs it. The work counts
/// towards the caller's share. The caller is identified by its token, otherwise by its
/// certificate's name, and otherwise by its address.
pub(crate) fn bulk_of(service: &Service, extensions: &Extensions) -> PeerBulk {
    let sender = sender(permit_of(extensions), extensions.get());
    service.load().requests.bulk_of(sender)
}

/// Runs `read`, which reads a page of a list. If the records are stored on another machine, `read`
/// waits for the network. It then runs on a thread for blocking work, so that it occupies no core
/// meanwhile.
pub(crate) async fn read_page<T: Send + 'static>(
    service: &Arc<Service>,
    bulk: &PeerBulk,
    read: impl FnOnce(&Service) -> T + Send + 'static,
) -> T {
    if service.has_remote_records() {
        return service.read_aside(read).await;
    }
    let reading = Arc::clone(service);
    bulk.work_aside(move || read(&reading)).await
}

/// Runs a part of a request's work. If `aside`, the handle for long work, is given, the part runs
/// on another thread, and otherwise at once.
pub(crate) async fn work_on<T: Send + 'static>(
    aside: Option<&PeerBulk>,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    match aside {
        None => work(),
        Some(bulk) => bulk.work_aside(work).await,
    }
}

/// Returns the sender whose quota a request uses: the token or certificate of `permit`, or the
/// address of `owner` if `permit` is `None`.
pub(crate) fn sender(permit: Option<&Permit>, owner: Option<&BudgetOwner>) -> Sender {
    match permit {
        Some(permit) => Sender::Named(permit.shown_by().to_owned()),
        None => Sender::Peer(owner.map_or(Ipv4Addr::UNSPECIFIED.into(), BudgetOwner::peer)),
    }
}

/// Returns the next chunk that is not empty. Trailers are ignored.
pub(crate) async fn next_piece(body: &mut Body) -> Result<Option<Bytes>, Problem> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(broken_off)?;
        if let Some(piece) = frame.into_data().ok().filter(|piece| !piece.is_empty()) {
            return Ok(Some(piece));
        }
    }
    Ok(None)
}

/// Returns the problem for an incomplete body: `overloaded` if the service dropped the request for
/// lack of resources, else `malformed-request`.
fn broken_off(error: axum::Error) -> Problem {
    let because = error.into_inner().downcast::<Shed>();
    because.map_or_else(
        |_| {
            Problem::new(
                Slug::MalformedRequest,
                "the body was cut off, or its framing is invalid",
            )
        },
        |shed| Problem::from(*shed),
    )
}

fn check_declared_len(body: &Body, len_max: usize) -> Result<(), Problem> {
    let declared_len = body.size_hint().lower();
    if declared_len <= len_max as u64 {
        return Ok(());
    }
    let detail =
        format!("the body is {declared_len} bytes long; this route reads at most {len_max}");
    Err(too_large(detail, len_max))
}

fn too_slow(timeout: Duration) -> Problem {
    let detail = format!("the body was not complete within {timeout:?}");
    Problem::new(Slug::RequestTimeout, detail).limit(format!("{timeout:?}"))
}

fn passed(len_max: usize) -> Problem {
    too_large(
        format!("the body is longer than the {len_max} bytes this route reads"),
        len_max,
    )
}

fn too_large(detail: String, len_max: usize) -> Problem {
    Problem::new(Slug::PayloadTooLarge, detail).limit(format!("{len_max} bytes"))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use http_body::Frame;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// A body of unknown length that sends these chunks. If `stalls` is set, the body never ends.
    struct Pieces {
        pieces: std::slice::Iter<'static, &'static str>,
        stalls: bool,
    }

    impl http_body::Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.pieces.next() {
                Some(piece) => {
                    Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(piece.as_bytes())))))
                }
                None if self.stalls => Poll::Pending,
                None => Poll::Ready(None),
            }
        }
    }

    fn body_of(pieces: &'static [&'static str], stalls: bool) -> Body {
        Body::new(Pieces {
            pieces: pieces.iter(),
            stalls,
        })
    }

    #[tokio::test]
    async fn the_pieces_are_put_together_up_to_the_limit() {
        for (pieces, whole) in [
            (&[][..], Some("")),
            (&["abcde"], Some("abcde")),
            (&["ab", "", "cd", "e"], Some("abcde")),
            (&["abcdef"], None),
            (&["ab", "cd", "ef"], None),
        ] {
            let read = read_body(body_of(pieces, false), 5, LONG).await;
            assert_eq!(read.ok().as_deref(), whole.map(str::as_bytes), "{pieces:?}");
        }
    }

    #[tokio::test]
    async fn a_body_without_end_stops_at_the_limit() {
        let problem = read_body(body_of(&["abc", "def"], true), 5, LONG)
            .await
            .expect_err("longer than 5 bytes");
        assert_eq!(problem.slug(), Slug::PayloadTooLarge);
    }

    #[tokio::test]
    async fn a_declared_length_over_the_limit_is_refused_unread() {
        let problem = read_body(Body::from("abcdef"), 5, LONG)
            .await
            .expect_err("longer than 5 bytes");
        assert_eq!(problem.slug(), Slug::PayloadTooLarge);
        assert!(problem.detail().contains("6 bytes"));
    }

    #[tokio::test]
    async fn a_body_that_stalls_is_given_up() {
        let read = read_body(body_of(&["ab"], true), 5, Duration::from_millis(20)).await;
        assert_eq!(
            read.expect_err("it never ends").slug(),
            Slug::RequestTimeout
        );
    }
}
