//! A queue in which peers take turns, so that a peer with many waiting requests does not delay a
//! peer with only one.
//!
//! ```text
//! 2 places      A has one, B has one
//! A waits: 5    B waits: 1    C waits: 1
//! next: C (has none), then whichever of A and B was served less recently
//! ```

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::pending::Sender;

/// A fixed number of places, each for one piece of work. Waiting peers get one in turn.
#[derive(Debug)]
pub(super) struct FairQueue(Mutex<State>);

#[derive(Debug)]
struct State {
    places_free: usize,
    /// The number of times that a place was given to a peer since the queue was created.
    given: u64,
    /// The peers that hold a place or wait for one.
    peers: HashMap<Sender, Peer>,
}

#[derive(Debug, Default)]
struct Peer {
    held: usize,
    /// The total number of places that the queue had given out when this peer last got one. The
    /// peer with the lowest value was served least recently.
    last_given: u64,
    waiting: VecDeque<oneshot::Sender<Place>>,
}

/// A peer's right to run one piece of work. Dropping this value frees the place in the queue.
#[derive(Debug)]
pub struct Place {
    queue: Arc<FairQueue>,
    peer: Sender,
}

impl FairQueue {
    pub(super) fn new(places: usize) -> Arc<FairQueue> {
        Arc::new(FairQueue(Mutex::new(State {
            places_free: places,
            given: 0,
            peers: HashMap::new(),
        })))
    }

    /// Takes a free place, or waits for a place. Of all waiting peers, the peer that holds the
    /// fewest places is served first. If several peers hold the same number of places, the peer
    /// that was served least recently comes first.
    pub(super) async fn enter(self: &Arc<Self>, peer: &Sender) -> Place {
        let place = {
            let mut state = self.state();
            if state.places_free > 0 {
                state.give_to(peer);
                Ok(self.place_of(peer))
            } else {
                let (give, given) = oneshot::channel();
                state.peer(peer).waiting.push_back(give);
                Err(given)
            }
        };
        match place {
            Ok(place) => place,
            Err(given) => given.await.expect("the queue gives every waiter a place"),
        }
    }

    /// Gives the free places to waiting peers.
    fn serve(self: &Arc<Self>) {
        loop {
            let mut state = self.state();
            let Some((peer, give)) = state.next() else {
                return;
            };
            state.give_to(&peer);
            drop(state);
            // If the waiting task was cancelled, sending fails. The place is then dropped here, and
            // the next waiting task gets it.
            let _ = give.send(self.place_of(&peer));
        }
    }

    fn place_of(self: &Arc<Self>, peer: &Sender) -> Place {
        Place {
            queue: Arc::clone(self),
            peer: peer.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn peer(&mut self, peer: &Sender) -> &mut Peer {
        if !self.peers.contains_key(peer) {
            self.peers.insert(peer.clone(), Peer::default());
        }
        self.peers.get_mut(peer).expect("inserted just now")
    }

    fn give_to(&mut self, peer: &Sender) {
        self.places_free -= 1;
        self.given += 1;
        let given = self.given;
        let peer = self.peer(peer);
        peer.held += 1;
        peer.last_given = given;
    }

    /// Removes and returns the waiting task to serve next. Returns `None` if no place is free or no
    /// task waits.
    fn next(&mut self) -> Option<(Sender, oneshot::Sender<Place>)> {
        if self.places_free == 0 {
            return None;
        }
        self.peers.retain(|_, peer| {
            while peer.waiting.front().is_some_and(oneshot::Sender::is_closed) {
                peer.waiting.pop_front();
            }
            peer.held > 0 || !peer.waiting.is_empty()
        });
        let waiting = self.peers.iter_mut();
        let (peer, next) = waiting
            .filter(|(_, peer)| !peer.waiting.is_empty())
            .min_by_key(|(_, peer)| (peer.held, peer.last_given))?;
        let give = next.waiting.pop_front()?;
        Some((peer.clone(), give))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        state.places_free += 1;
        let peer = state.peer(&self.peer);
        peer.held -= 1;
        if peer.held == 0 && peer.waiting.is_empty() {
            state.peers.remove(&self.peer);
        }
        drop(state);
        self.queue.serve();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn peer(host: u8) -> Sender {
        Sender::Peer([10, 0, 0, host].into())
    }

    type Waiting = Pin<Box<dyn Future<Output = Place>>>;

    /// Polls the waiters in order, and returns the host numbers of the peers that may now run.
    fn served(waiting: &mut Vec<(u8, Waiting)>, places: &mut Vec<Place>) -> Vec<u8> {
        let mut hosts = Vec::new();
        waiting.retain_mut(|(host, waiting)| {
            match waiting
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
            {
                Poll::Ready(place) => {
                    places.push(place);
                    hosts.push(*host);
                    false
                }
                Poll::Pending => true,
            }
        });
        hosts
    }

    fn wait(queue: &Arc<FairQueue>, host: u8) -> (u8, Waiting) {
        let queue = Arc::clone(queue);
        (
            host,
            Box::pin(async move { queue.enter(&peer(host)).await }),
        )
    }

    #[test]
    fn a_waiting_peer_goes_ahead_of_the_next_request_of_one_that_has_more() {
        let queue = FairQueue::new(4);
        let (mut waiting, mut places) = (Vec::new(), Vec::new());
        waiting.extend((0..20).map(|_| wait(&queue, 1)));
        assert_eq!(served(&mut waiting, &mut places), [1; 4], "it is alone");
        waiting.extend([2, 2, 2, 2].map(|host| wait(&queue, host)));
        assert!(served(&mut waiting, &mut places).is_empty());
        for host in [2, 2] {
            drop(places.remove(0));
            assert_eq!(served(&mut waiting, &mut places), [host]);
        }
        // Peers 1 and 2 now hold two of the four places each. A peer that frees a place has one
        // left, fewer than the other peer, so the queue gives the free place back to it.
        let mut turns = Vec::new();
        for _ in 0..4 {
            drop(places.remove(0));
            turns.extend(served(&mut waiting, &mut places));
        }
        assert_eq!(turns, [1, 1, 2, 2], "each gets the place that it gave back");
    }

    #[test]
    fn with_one_place_two_peers_take_turns_however_many_requests_one_has() {
        let queue = FairQueue::new(1);
        let (mut waiting, mut places) = (Vec::new(), Vec::new());
        waiting.extend([1, 1, 1, 1, 1, 2, 2].map(|host| wait(&queue, host)));
        let mut order = served(&mut waiting, &mut places);
        while let Some(place) = places.pop() {
            drop(place);
            order.extend(served(&mut waiting, &mut places));
        }
        assert_eq!(order, [1, 2, 1, 2, 1, 1, 1]);
    }

    #[test]
    fn a_waiter_that_has_gone_gets_no_place_and_no_peer_is_remembered() {
        let queue = FairQueue::new(1);
        let (mut waiting, mut places) = (Vec::new(), Vec::new());
        waiting.extend([1, 2, 3].map(|host| wait(&queue, host)));
        assert_eq!(served(&mut waiting, &mut places), [1]);
        drop(waiting.remove(0));
        drop(places.pop());
        assert_eq!(served(&mut waiting, &mut places), [3]);
        drop(places);
        let state = queue.state();
        assert!(
            state.peers.is_empty() && state.places_free == 1,
            "{state:?}"
        );
    }
}
