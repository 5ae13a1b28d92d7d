//! The stock of prefetched ids. Callers take ids from the current piece, which holds ids of one
//! response. A queue holds the pieces that follow.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::addresses::{BULK, backoff};
use super::asking::{Asking, Kind};
use super::error::{IdsError, ended};
use super::options::IdsOptions;
use super::piece::Piece;

/// If a stock of prefetched ids needs a refill less than this time after the previous refill, the
/// stock is too small. Further requests then ask for more ids.
const USED_UP_EARLY: Duration = Duration::from_secs(1);

/// Notifies a waiting caller that the stock was refilled, or why the refill failed.
pub(super) type Filled = oneshot::Receiver<Result<(), IdsError>>;

/// Prefetched ids of one kind: either numbers or texts. The stock is refilled before it is empty,
/// by one request at a time.
pub(super) struct Stock {
    kind: Kind,
    process: u32,
    validity: Duration,
    timeout: Duration,
    state: Mutex<State>,
}

struct State {
    pieces: VecDeque<Piece>,
    /// The number of ids per request, which stays between `count_min` and `count_max`.
    count: u32,
    count_min: u32,
    count_max: u32,
    filled_at: Option<Instant>,
    /// The time before which a request may not grow beyond [`BULK`] ids, because the service was
    /// too busy for a larger request.
    grows_at: Instant,
    failures: u32,
    /// The last error, and the time before which no further request is sent.
    put_off: Option<(Instant, IdsError)>,
    is_filling: bool,
    waiting: Vec<oneshot::Sender<Result<(), IdsError>>>,
}

impl Stock {
    pub(super) fn new(kind: Kind, options: &IdsOptions, process: u32) -> Stock {
        let state = State {
            pieces: VecDeque::new(),
            count: options.prefetch_count,
            count_min: options.prefetch_count,
            count_max: options.prefetch_count_max,
            filled_at: None,
            grows_at: Instant::now(),
            failures: 0,
            put_off: None,
            is_filling: false,
            waiting: Vec::new(),
        };
        Stock {
            kind,
            process,
            validity: options.prefetch_validity,
            timeout: options.timeout,
            state: Mutex::new(state),
        }
    }

    /// Replaces the piece `used`, whose ids are used up or too old, with the next piece. If no
    /// piece is left, returns a receiver that resolves after the refill. If a refill has just
    /// failed, returns its error instead.
    pub(super) fn advance(
        self: &Arc<Self>,
        current: &ArcSwap<Piece>,
        used: &Arc<Piece>,
        asking: &Arc<Asking>,
        fills: &Handle,
    ) -> Result<Option<Filled>, IdsError> {
        let mut state = self.state();
        if !Arc::ptr_eq(&current.load(), used) {
            return Ok(None);
        }
        state.drop_old_pieces();
        let refusal = state
            .put_off
            .as_ref()
            .filter(|(end, _)| Instant::now() < *end);
        let refusal = refusal.map(|(_, error)| error.of_call(false));
        if refusal.is_none()
            && !state.is_filling
            && state
                .pieces
                .front()
                .is_none_or(|piece| piece.is_second_half)
        {
            if used.is_fresh()
                && state
                    .filled_at
                    .is_some_and(|at| at.elapsed() < USED_UP_EARLY)
            {
                state.grow();
            }
            state.is_filling = true;
            fills.spawn(Arc::clone(self).fill(Arc::clone(asking)));
        }
        if let Some(piece) = state.pieces.pop_front() {
            current.store(Arc::new(piece));
            return Ok(None);
        }
        if let Some(refusal) = refusal.filter(|_| !state.is_filling) {
            return Err(refusal);
        }
        let (sender, receiver) = oneshot::channel();
        state.waiting.push(sender);
        Ok(Some(receiver))
    }

    async fn fill(self: Arc<Self>, asking: Arc<Asking>) {
        let stock = Arc::clone(&self);
        // The request runs in its own task, so that waiting callers get an error even if the
        // request panics.
        let fetched = tokio::spawn(async move {
            let fetched = timeout(stock.timeout, stock.fetch_as_many_as_there_are(&asking)).await;
            fetched.unwrap_or(Err(IdsError::Late))
        });
        let pieces = fetched.await.unwrap_or_else(|_| Err(ended()));
        let mut state = self.state();
        state.is_filling = false;
        state.filled_at = Some(Instant::now());
        state.failures = match &pieces {
            Ok(_) => 0,
            Err(_) => state.failures.saturating_add(1),
        };
        let retry_at = Instant::now() + backoff(state.failures);
        state.put_off = pieces.as_ref().err().map(|error| (retry_at, error.clone()));
        let filled = pieces.map(|pieces| state.pieces.extend(pieces));
        for waiting in state.waiting.drain(..) {
            // The receiver may have stopped waiting, so a failed send is ignored.
            let _ = waiting.send(filled.clone());
        }
    }

    async fn fetch_as_many_as_there_are(&self, asking: &Asking) -> Result<Vec<Piece>, IdsError> {
        let mut attempts_left = 2;
        loop {
            let (asked_at, count) = (Instant::now(), self.state().count);
            attempts_left -= 1;
            match asking.fetch(self.kind, count).await {
                Ok(parts) => {
                    let expires = asked_at + self.validity;
                    return Ok(Piece::halve(parts, expires, self.process));
                }
                Err(refused) => {
                    if attempts_left == 0 || !self.state().asks_for_fewer_after(&refused, count) {
                        return Err(refused);
                    }
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn grow(&mut self) {
        let is_free = Instant::now() >= self.grows_at;
        let most = if is_free {
            self.count_max
        } else {
            self.count_max.min(BULK)
        };
        self.count = self.count.saturating_mul(2).min(most).max(self.count);
    }

    /// Lowers the number of ids per request if `count` ids exceed the limit of the service, or if
    /// the service is too busy for a bulk request. Returns `true` if the number is lower now.
    fn asks_for_fewer_after(&mut self, refused: &IdsError, count: u32) -> bool {
        if let Some(most) = refused.count_max().filter(|most| (1..count).contains(most)) {
            // The service would refuse a larger count again, so request at most `most` ids from now
            // on.
            (self.count, self.count_max) = (most, most);
            self.count_min = self.count_min.min(most);
            return true;
        }
        let is_bulk = refused.status() == Some(503) && count > BULK;
        if is_bulk {
            self.count = BULK;
            self.grows_at = Instant::now() + Duration::from_secs(60);
        }
        is_bulk
    }

    fn drop_old_pieces(&mut self) {
        while let Some(old) = self.pieces.pop_front_if(|piece| !piece.is_fresh()) {
            if old.is_second_half {
                // The second half of the ids expired before it was used, so the stock was too
                // large. Fetch fewer ids from now on.
                self.count = (self.count / 2).max(self.count_min);
            }
        }
    }
}
