//! One budget of memory for all callers: what is kept for them is paid for before it is kept.
//!
//! ```text
//! http.memory_max   ┌────────────────────────────────────────────────────────┬────────────┐
//!                   │ connections, bodies, answers: what is paid for here    │ never sold │
//!                   └────────────────────────────────────────────────────────┴────────────┘
//!                     one peer: at most a quarter of http.memory_max           16 MiB, for single mints and health
//! ```

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::shed::{Shed, ShedCounts};

/// What is counted at once, in bytes.
const UNIT: usize = 1024;

/// Never sold, so that single mints and health have memory whatever the others do.
const KEPT_FREE: usize = 16 * 1024 * 1024;

/// What connections of one peer have of that, in bytes.
const NEWCOMER_MAX: usize = KEPT_FREE / 64;

/// One part in so many is only for connections and streams, which do not wait.
const PARTS: usize = 8;

/// How long a caller waits for memory that others have.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The memory that callers may take together.
#[derive(Debug)]
pub struct MemoryBudget {
    all: Pool,
    units_per_peer: usize,
    /// What each peer may still take. Only those that hold something are kept.
    peers: Mutex<HashMap<IpAddr, Weak<Pool>>>,
    counts: Arc<ShedCounts>,
}

/// Who pays: one peer, whatever it asks for on however many connections.
#[derive(Debug, Clone)]
pub struct Payer {
    peer: IpAddr,
    budget: Arc<MemoryBudget>,
    share: Arc<Pool>,
}

/// Memory that is paid for, until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Charge {
    from_share: OwnedSemaphorePermit,
    from_all: OwnedSemaphorePermit,
    /// So that the peer is known for as long as it holds anything.
    _share: Arc<Pool>,
}

impl Charge {
    /// Both together; the same payer waited for both.
    pub fn add(&mut self, other: Charge) {
        self.from_share.merge(other.from_share);
        self.from_all.merge(other.from_all);
    }
}

/// Units that nobody has. Fair: who waits first is served first.
#[derive(Debug)]
struct Pool {
    units: usize,
    /// Only for callers that do not wait: else those that wait would keep out connections and streams.
    for_small: Arc<Semaphore>,
    rest: Arc<Semaphore>,
}

impl Pool {
    fn of(units: usize) -> Pool {
        let small = units / PARTS;
        let [for_small, rest] = [small, units - small].map(|units| Arc::new(Semaphore::new(units)));
        Pool {
            units,
            for_small,
            rest,
        }
    }

    /// The most that one can wait for.
    fn rest_units(&self) -> usize {
        self.units - self.units / PARTS
    }

    fn used_units(&self) -> usize {
        let free = self.for_small.available_permits() + self.rest.available_permits();
        self.units.saturating_sub(free)
    }

    fn buy_now(&self, units: u32) -> Option<OwnedSemaphorePermit> {
        let small = Arc::clone(&self.for_small)
            .try_acquire_many_owned(units)
            .ok();
        small.or_else(|| self.buy_if_free(units))
    }

    fn buy_if_free(&self, units: u32) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.rest).try_acquire_many_owned(units).ok()
    }

    async fn buy(&self, units: u32) -> OwnedSemaphorePermit {
        Arc::clone(&self.rest)
            .acquire_many_owned(units)
            .await
            .expect("nobody closes a budget")
    }
}

impl MemoryBudget {
    /// The least that `http.memory_max` can be, in bytes: twice what is never sold.
    pub const LEAST: usize = 2 * KEPT_FREE;

    /// What is sold of `memory_max` bytes, at least [`MemoryBudget::LEAST`].
    pub fn new(memory_max: usize, counts: Arc<ShedCounts>) -> Arc<MemoryBudget> {
        let memory_max = memory_max.max(Self::LEAST);
        Self::of(memory_max - KEPT_FREE, memory_max / 4, counts)
    }

    /// What is kept for those who ask how the service is, when everything else is sold.
    pub fn for_probes(counts: Arc<ShedCounts>) -> Arc<MemoryBudget> {
        Self::of(KEPT_FREE / 2, KEPT_FREE / 8, counts)
    }

    /// What is kept for connections, when everything else is sold.
    pub fn for_newcomers(counts: Arc<ShedCounts>) -> Arc<MemoryBudget> {
        Self::of(KEPT_FREE / 2, NEWCOMER_MAX, counts)
    }

    fn of(bytes: usize, bytes_per_peer: usize, counts: Arc<ShedCounts>) -> Arc<MemoryBudget> {
        let units = (bytes / UNIT)
            .min(Semaphore::MAX_PERMITS)
            .min(u32::MAX as usize);
        let units_per_peer = (bytes_per_peer / UNIT).min(units);
        Arc::new(MemoryBudget {
            all: Pool::of(units),
            units_per_peer,
            peers: Mutex::default(),
            counts,
        })
    }

    /// Who pays for what this peer asks for.
    pub fn payer(self: &Arc<Self>, peer: IpAddr) -> Payer {
        let peer = network_of(peer);
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let share = peers.get(&peer).and_then(Weak::upgrade).unwrap_or_else(|| {
            if peers.len() == peers.capacity() {
                peers.retain(|_, share| share.strong_count() > 0);
            }
            let share = Arc::new(Pool::of(self.units_per_peer));
            peers.insert(peer, Arc::downgrade(&share));
            share
        });
        Payer {
            peer,
            budget: Arc::clone(self),
            share,
        }
    }

    /// How much is paid for now, in bytes.
    pub fn used(&self) -> usize {
        self.all.used_units() * UNIT
    }
}

impl Payer {
    /// Who that is: an address, or a [network](network_of).
    pub fn peer(&self) -> IpAddr {
        self.peer
    }

    /// Pays for `bytes`, and waits up to a second for others to give them back. A thing that is larger than all that
    /// this peer can wait for costs that much.
    ///
    /// # Errors
    /// [`Shed::Memory`]: nothing was paid.
    pub async fn pay(&self, bytes: usize) -> Result<Charge, Shed> {
        let paying = async {
            let units = units_of(bytes, self.share.rest_units());
            // Its own share first: a peer that has used it up must not make others wait.
            let from_share = self.share.buy(units).await;
            Charge {
                from_share,
                from_all: self.budget.all.buy(units).await,
                _share: Arc::clone(&self.share),
            }
        };
        timeout(WAIT_MAX, paying)
            .await
            .map_err(|_| self.budget.counts.count(Shed::Memory))
    }

    /// Pays for `bytes` as [`pay`](Self::pay) does, if it would not have to wait.
    pub fn pay_if_free(&self, bytes: usize) -> Option<Charge> {
        let units = units_of(bytes, self.share.rest_units());
        let [from_share, from_all] =
            [&self.share, &self.budget.all].map(|pool| pool.buy_if_free(units));
        Some(Charge {
            from_share: from_share?,
            from_all: from_all?,
            _share: Arc::clone(&self.share),
        })
    }

    /// Pays for `bytes` at once.
    ///
    /// # Errors
    /// [`Shed::Memory`]: nothing was paid.
    pub fn pay_now(&self, bytes: usize) -> Result<Charge, Shed> {
        self.try_pay(bytes)
            .ok_or_else(|| self.budget.counts.count(Shed::Memory))
    }

    /// Pays for `bytes` at once, if that can be done; without it the caller does with less.
    pub fn try_pay(&self, bytes: usize) -> Option<Charge> {
        let units = units_of(bytes, self.share.units);
        let from_share = self.share.buy_now(units)?;
        let from_all = self.budget.all.buy_now(units)?;
        Some(Charge {
            from_share,
            from_all,
            _share: Arc::clone(&self.share),
        })
    }
}

/// What counts as one peer: an address of IPv4, or the first 64 bits of one of IPv6, which is what one customer gets.
pub fn network_of(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
        v4 => v4,
    }
}

fn units_of(bytes: usize, most: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT).min(most)).expect("a budget has no more units")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    fn budget(memory_max: usize) -> (Arc<MemoryBudget>, Arc<ShedCounts>) {
        let counts = Arc::new(ShedCounts::default());
        (MemoryBudget::new(memory_max, Arc::clone(&counts)), counts)
    }

    fn peer(number: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, number])
    }

    #[test]
    fn one_peer_has_at_most_a_quarter_and_all_together_leave_16_mib() {
        let (budget, counts) = budget(128 * MIB);
        let mut charges = Vec::new();
        for number in 0..8 {
            let payer = budget.payer(peer(number));
            while let Ok(charge) = payer.pay_now(MIB) {
                charges.push(charge);
            }
            assert_eq!(
                charges.len(),
                [32, 64, 96, 112, 112, 112, 112, 112][usize::from(number)]
            );
        }
        assert_eq!((budget.used(), counts.of(Shed::Memory)), (112 * MIB, 8));
        drop(charges);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn connections_of_one_peer_share_and_a_peer_that_left_is_forgotten() {
        let (budget, _) = budget(128 * MIB);
        let one = budget.payer(peer(1));
        let charge = [28, 4].map(|mib| one.pay_now(mib * MIB).expect("a quarter"));
        assert_eq!(budget.payer(peer(1)).pay_now(1).err(), Some(Shed::Memory));
        drop((charge, one));
        (0..=255).for_each(|number| drop(budget.payer(peer(number))));
        let kept = budget.peers.lock().expect("no test panics with it").len();
        assert!(kept < 64, "{kept} peers that hold nothing are kept");
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer() {
        let (budget, _) = budget(128 * MIB);
        let payer = |address: &str| budget.payer(address.parse().expect("an address"));
        let _charges =
            [28, 4].map(|mib| payer("2001:db8::1").pay_now(mib * MIB).expect("a quarter"));
        assert!(payer("2001:db8::ffff:2").pay_now(1).is_err());
        assert!(payer("2001:db8:0:1::1").pay_now(1).is_ok());
        let _mapped = [28, 4].map(|mib| {
            payer("::ffff:10.0.0.1")
                .pay_now(mib * MIB)
                .expect("a quarter")
        });
        assert!(payer("10.0.0.1").pay_now(1).is_err());
    }

    #[tokio::test]
    async fn who_would_have_to_wait_gets_nothing_of_what_is_for_connections_and_passes_nobody() {
        let (budget, counts) = budget(128 * MIB);
        let payer = budget.payer(peer(1));
        let charge = payer
            .pay_if_free(28 * MIB)
            .expect("all of its share that can be waited for");
        assert!(payer.pay_if_free(1).is_none());
        let _small = payer.pay_now(MIB).expect("connections have more");
        let waiting = tokio::spawn({
            let payer = payer.clone();
            async move { payer.pay(28 * MIB).await.is_ok() }
        });
        tokio::task::yield_now().await;
        drop(charge);
        assert!(payer.pay_if_free(1).is_none(), "it is of the one who waits");
        assert!(waiting.await.expect("it does not panic"));
        assert!(payer.pay_if_free(1).is_some());
        assert_eq!(counts.of(Shed::Memory), 0);
    }

    #[tokio::test]
    async fn who_finds_too_little_waits_a_second() {
        let (budget, counts) = budget(128 * MIB);
        let payer = budget.payer(peer(1));
        let charge = payer
            .pay(28 * MIB)
            .await
            .expect("all of its share that can be waited for");
        let small = payer.pay_now(4 * MIB).expect("the rest");
        let began = tokio::time::Instant::now();
        assert_eq!(payer.pay(1).await.err(), Some(Shed::Memory));
        assert!(began.elapsed() >= WAIT_MAX);
        assert_eq!(counts.of(Shed::Memory), 1);

        let waiting = tokio::spawn({
            let payer = payer.clone();
            async move { payer.pay(MIB).await.is_ok() }
        });
        tokio::task::yield_now().await;
        drop((charge, small));
        assert!(waiting.await.expect("it does not panic"));
        assert_eq!(budget.used(), 0);
        let _charge = payer
            .pay(1024 * MIB)
            .await
            .expect("no more than all of its share");
        assert_eq!(budget.used(), 28 * MIB);
    }
}
