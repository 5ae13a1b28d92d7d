//! What comes after the piece that is handed out.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::asking::{Asking, Kind};
use super::error::IdsError;
use super::options::IdsOptions;
use super::piece::{Piece, PieceIds};

/// A stock that is used up sooner after it was filled is too small.
const USED_UP_EARLY: Duration = Duration::from_secs(1);

/// Tells who waits that more ids are here, or why there are none.
pub(super) type Filled = oneshot::Receiver<Result<(), IdsError>>;

/// Ids of one kind that are here already. More are fetched before it is empty, by one request at a time.
pub(super) struct Stock {
    kind: Kind,
    process: u32,
    validity: Duration,
    state: Mutex<State>,
}

struct State {
    pieces: VecDeque<Piece>,
    /// How many are asked for at once, and between which bounds that may change.
    count: u32,
    count_min: u32,
    count_max: u32,
    filled_at: Option<Instant>,
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
            is_filling: false,
            waiting: Vec::new(),
        };
        Stock {
            kind,
            process,
            validity: options.prefetch_validity,
            state: Mutex::new(state),
        }
    }

    /// Puts another piece in the place of one that has no more ids, or too old ones. If there is none here, it says whom to wait for.
    pub(super) fn advance(
        self: &Arc<Self>,
        current: &ArcSwap<Piece>,
        used: &Arc<Piece>,
        asking: &Arc<Asking>,
        fills: &Handle,
    ) -> Option<Filled> {
        let mut state = self.state();
        if !Arc::ptr_eq(&current.load(), used) {
            return None;
        }
        state.drop_old_pieces();
        if !state.is_filling
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
                state.count = state.count.saturating_mul(2).min(state.count_max);
            }
            state.is_filling = true;
            fills.spawn(Arc::clone(self).fill(Arc::clone(asking)));
        }
        if let Some(piece) = state.pieces.pop_front() {
            current.store(Arc::new(piece));
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        state.waiting.push(sender);
        Some(receiver)
    }

    async fn fill(self: Arc<Self>, asking: Arc<Asking>) {
        let asked_at = Instant::now();
        let fetched = self.fetch_as_many_as_there_are(&asking).await;
        let pieces =
            fetched.map(|parts| Piece::halve(parts, asked_at + self.validity, self.process));
        let mut state = self.state();
        state.is_filling = false;
        state.filled_at = Some(Instant::now());
        let told = pieces.map(|pieces| state.pieces.extend(pieces));
        for waiting in state.waiting.drain(..) {
            // Who does not wait any more need not be told.
            let _ = waiting.send(told.clone());
        }
    }

    async fn fetch_as_many_as_there_are(&self, asking: &Asking) -> Result<Vec<PieceIds>, IdsError> {
        let count = self.state().count;
        let refused = match asking.fetch(self.kind, count).await {
            Ok(fetched) => return Ok(fetched),
            Err(refused) => refused,
        };
        let Some(most) = refused.count_max().filter(|most| (1..count).contains(most)) else {
            return Err(refused);
        };
        {
            // So many are never had at once: from now on as many as are.
            let mut state = self.state();
            (state.count, state.count_max, state.count_min) =
                (most, most, state.count_min.min(most));
        }
        asking.fetch(self.kind, most).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn drop_old_pieces(&mut self) {
        while let Some(old) = self.pieces.pop_front_if(|piece| !piece.is_fresh()) {
            if old.is_second_half {
                // Fewer are used than are fetched.
                self.count = (self.count / 2).max(self.count_min);
            }
        }
    }
}
