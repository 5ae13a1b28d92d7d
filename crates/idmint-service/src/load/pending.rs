//! Limits the number of pending requests, whose bodies have not arrived yet. Callers share the
//! places for such requests fairly.
//!
//! A request that waits for a slow body costs no work, so it does not count as in flight. Such
//! requests have a limit of their own:
//!
//! ```text
//! places          16 of 16 taken: caller A 12, B 3, C 1
//! C sends one     A has most, so A's oldest pending request is dropped, and C takes its place
//! ```
//!
//! A single caller may take all places while no other caller needs one. A request from a caller
//! with many places never displaces a request from a caller with fewer.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::shed::{Shed, ShedCounts};

/// The caller whose quota a pending request counts towards.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sender {
    /// The caller with this token or certificate.
    Named(String),
    /// Any caller in this network without a token or certificate.
    Peer(IpAddr),
}

/// All pending requests of this process. A request is pending until its body has arrived.
#[derive(Debug)]
pub struct PendingBodies {
    places_max: usize,
    places: Mutex<Places>,
    counts: Arc<ShedCounts>,
}

#[derive(Debug, Default)]
struct Places {
    taken: usize,
    next_number: u64,
    /// The places that each sender holds, oldest first.
    by_sender: HashMap<Sender, BTreeMap<u64, oneshot::Sender<()>>>,
    /// The number of places that each sender holds, sorted so that the highest number is last.
    by_count: BTreeSet<(usize, Sender)>,
}

impl PendingBodies {
    /// Creates a limit of `places_max` pending requests. A limit of 0 is raised to 1.
    pub fn new(places_max: usize, counts: Arc<ShedCounts>) -> Arc<PendingBodies> {
        Arc::new(PendingBodies {
            places_max: places_max.max(1),
            places: Mutex::default(),
            counts,
        })
    }

    /// Takes a place for a request whose body has not arrived yet. Dropping the result frees the
    /// place. If all places are taken, the sender with the most places loses its oldest place.
    pub fn enter(self: &Arc<Self>, sender: Sender) -> PendingBody {
        let mut places = self.places();
        if places.taken >= self.places_max {
            places.give_one_up();
            self.counts.count(Shed::Bodies);
        }
        let (give_up, given_up) = oneshot::channel();
        let number = places.next_number;
        places.next_number += 1;
        places.change(&sender, |own| drop(own.insert(number, give_up)));
        drop(places);
        PendingBody {
            bodies: Arc::clone(self),
            sender,
            number,
            given_up,
        }
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    /// Applies `change` to the places of a sender, which has one place for each pending request.
    /// Then updates the number of taken places and the order of the senders.
    fn change(
        &mut self,
        sender: &Sender,
        change: impl FnOnce(&mut BTreeMap<u64, oneshot::Sender<()>>),
    ) {
        let own = self.by_sender.entry(sender.clone()).or_default();
        let before = own.len();
        change(own);
        let after = own.len();
        if after == 0 {
            self.by_sender.remove(sender);
        }
        self.taken = self.taken - before + after;
        self.by_count.remove(&(before, sender.clone()));
        if after > 0 {
            self.by_count.insert((after, sender.clone()));
        }
    }

    fn give_one_up(&mut self) {
        let Some((_, most)) = self.by_count.last().cloned() else {
            return;
        };
        self.change(&most, |own| {
            if let Some((_, give_up)) = own.pop_first() {
                // Sending fails only if the pending request has just ended. Such a request need not
                // be notified.
                let _ = give_up.send(());
            }
        });
    }
}

/// One of the limited places for pending requests. A request is pending until its body has arrived.
#[derive(Debug)]
pub struct PendingBody {
    bodies: Arc<PendingBodies>,
    sender: Sender,
    number: u64,
    given_up: oneshot::Receiver<()>,
}

impl PendingBody {
    /// Returns `Ready` with the reason for the refusal once a newer request has displaced this one,
    /// because too many requests wait for their bodies. Until then, returns `Pending`.
    pub fn poll_given_up(&mut self, context: &mut Context<'_>) -> Poll<Shed> {
        Pin::new(&mut self.given_up)
            .poll(context)
            .map(|_| Shed::Bodies)
    }
}

impl Drop for PendingBody {
    fn drop(&mut self) {
        self.bodies
            .places()
            .change(&self.sender, |own| drop(own.remove(&self.number)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bodies(places_max: usize) -> (Arc<PendingBodies>, Arc<ShedCounts>) {
        let counts = Arc::new(ShedCounts::default());
        (PendingBodies::new(places_max, Arc::clone(&counts)), counts)
    }

    fn peer(host: u8) -> Sender {
        Sender::Peer([10, 0, 0, host].into())
    }

    fn named(name: &str) -> Sender {
        Sender::Named(name.to_owned())
    }

    /// Returns the indices of the requests that were dropped since the last call to make room for
    /// newer requests.
    fn given_up(places: &mut [PendingBody]) -> Vec<usize> {
        (0..places.len())
            .filter(|place| places[*place].given_up.try_recv().is_ok())
            .collect()
    }

    #[test]
    fn who_is_alone_has_all_places_and_beyond_them_the_first_goes() {
        let (bodies, counts) = bodies(16);
        let mut places: Vec<_> = (0..16).map(|_| bodies.enter(peer(1))).collect();
        assert_eq!(
            (given_up(&mut places), counts.of(Shed::Bodies)),
            (vec![], 0)
        );
        places.push(bodies.enter(peer(1)));
        assert_eq!(
            (given_up(&mut places), counts.of(Shed::Bodies)),
            (vec![0], 1)
        );
    }

    #[test]
    fn who_has_most_gives_way_and_who_has_few_never_does() {
        let (bodies, _) = bodies(16);
        let mut few: Vec<_> = (0..4).map(|_| bodies.enter(named("billing"))).collect();
        let mut many: Vec<_> = (0..12).map(|_| bodies.enter(peer(1))).collect();
        let mut others: Vec<_> = (2..6).map(|host| bodies.enter(peer(host))).collect();
        assert_eq!(given_up(&mut many), [0, 1, 2, 3]);
        for _ in 0..100 {
            many.push(bodies.enter(peer(1)));
        }
        assert_eq!(given_up(&mut many), (4..104).collect::<Vec<_>>(), "its own");
        assert_eq!(
            (given_up(&mut few), given_up(&mut others)),
            (vec![], vec![])
        );
        drop((few, others));
        many.extend((0..8).map(|_| bodies.enter(peer(1))));
        assert!(
            given_up(&mut many).is_empty(),
            "what the others have left is its own"
        );
    }

    #[test]
    fn places_of_requests_that_ended_are_free_whoever_gave_them_up() {
        let (bodies, _) = bodies(2);
        let mut places: Vec<_> = (0..50).map(|_| bodies.enter(peer(1))).collect();
        assert_eq!(given_up(&mut places).len(), 48);
        drop(places);
        let places = bodies.places();
        assert!(
            places.taken == 0 && places.by_sender.is_empty() && places.by_count.is_empty(),
            "{places:?}"
        );
    }
}
