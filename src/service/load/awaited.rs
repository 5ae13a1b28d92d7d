//! Requests whose bodies have not come: how many there may be, and whose.
//!
//! Who sends a body slowly takes no work, so such requests are not in flight; they have a bound of their own:
//!
//! ```text
//! places          16 of 16 taken: caller A 12, B 3, C 1
//! C sends one     A has most: that of A which has waited longest is given up, and C has its place
//! ```
//!
//! So a caller who is alone has all places, and who has few is never in the way of who has many.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::shed::{Shed, ShedCounts};

/// Whose a request is, where bodies are awaited.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sender {
    /// The caller who has shown this token or certificate.
    Named(String),
    /// The callers from this network without one.
    Peer(IpAddr),
}

/// The requests of one process whose bodies have not come.
#[derive(Debug)]
pub struct AwaitedBodies {
    places_max: usize,
    places: Mutex<Places>,
    counts: Arc<ShedCounts>,
}

#[derive(Debug, Default)]
struct Places {
    taken: usize,
    next_number: u64,
    /// The places of each sender that has any, the one that was taken first in front.
    by_sender: HashMap<Sender, BTreeMap<u64, oneshot::Sender<()>>>,
    /// How many each sender has.
    by_count: BTreeSet<(usize, Sender)>,
}

impl AwaitedBodies {
    /// So many at once.
    pub fn new(places_max: usize, counts: Arc<ShedCounts>) -> Arc<AwaitedBodies> {
        Arc::new(AwaitedBodies {
            places_max: places_max.max(1),
            places: Mutex::default(),
            counts,
        })
    }

    /// A place for a request of this sender, until it is dropped. Where all are taken, the sender that has most loses the one
    /// that it took first.
    pub fn enter(self: &Arc<Self>, sender: Sender) -> AwaitedBody {
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
        AwaitedBody {
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
    /// Changes which places a sender has.
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
                // Its request may have ended just now.
                let _ = give_up.send(());
            }
        });
    }
}

/// A place of a request whose body has not come.
#[derive(Debug)]
pub struct AwaitedBody {
    bodies: Arc<AwaitedBodies>,
    sender: Sender,
    number: u64,
    given_up: oneshot::Receiver<()>,
}

impl AwaitedBody {
    /// Ready once somebody else has the place.
    pub fn poll_given_up(&mut self, context: &mut Context<'_>) -> Poll<Shed> {
        Pin::new(&mut self.given_up)
            .poll(context)
            .map(|_| Shed::Bodies)
    }
}

impl Drop for AwaitedBody {
    fn drop(&mut self) {
        self.bodies
            .places()
            .change(&self.sender, |own| drop(own.remove(&self.number)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bodies(places_max: usize) -> (Arc<AwaitedBodies>, Arc<ShedCounts>) {
        let counts = Arc::new(ShedCounts::default());
        (AwaitedBodies::new(places_max, Arc::clone(&counts)), counts)
    }

    fn peer(host: u8) -> Sender {
        Sender::Peer([10, 0, 0, host].into())
    }

    fn named(name: &str) -> Sender {
        Sender::Named(name.to_owned())
    }

    /// Which of these have lost their places since that was asked last.
    fn given_up(places: &mut [AwaitedBody]) -> Vec<usize> {
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
