//! A memory budget that all callers share. Callers reserve memory before they use it.
//!
//! ```text
//! http.memory_max   ┌────────────────────────────────────────────────────────┬────────────┐
//!                   │ connections, bodies, responses: reserved here          │ kept free  │
//!                   └────────────────────────────────────────────────────────┴────────────┘
//!                     one peer: at most a quarter of http.memory_max           16 MiB
//! ```
//!
//! The memory that is kept free serves single mints and health checks.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::shed::{Shed, ShedCounts};

/// The unit in which memory is reserved, in bytes.
const UNIT: usize = 1024;

/// The part of `http.memory_max` that the main budget never hands out, in bytes. Single mints and
/// health checks use this memory, so they work under any load.
const KEPT_FREE: usize = 16 * 1024 * 1024;

/// The maximum memory, in bytes, that new connections of one peer may use while the main budget is
/// exhausted. It is taken from the memory that the main budget keeps free.
const NEWCOMER_MAX: usize = KEPT_FREE / 32;

/// Each memory pool is divided into this number of equal parts. One part is set aside for
/// connections and streams, which must not wait for memory.
const PARTS: usize = 8;

/// The maximum time for which a caller waits until other callers release memory.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The memory that all callers together may use.
#[derive(Debug)]
pub struct MemoryBudget {
    all: Pool,
    units_per_peer: usize,
    /// The memory pool of each peer, by the address of the peer's network. A pool is kept only
    /// while the peer has a [`BudgetOwner`] or holds memory.
    peers: Mutex<HashMap<IpAddr, Weak<Pool>>>,
    counts: Arc<ShedCounts>,
}

/// The owner of memory reservations. An owner is one peer, and includes all requests on all
/// connections of this peer.
#[derive(Debug, Clone)]
pub struct BudgetOwner {
    peer: IpAddr,
    budget: Arc<MemoryBudget>,
    share: Arc<Pool>,
}

/// A memory reservation, which is released when dropped.
#[derive(Debug)]
#[must_use]
pub struct MemoryReservation {
    from_share: OwnedSemaphorePermit,
    from_all: OwnedSemaphorePermit,
    /// Keeps the memory pool of the peer alive until this memory is released.
    _share: Arc<Pool>,
}

impl MemoryReservation {
    /// Adds another reservation to this one. Both must belong to the same peer and the same budget.
    pub fn add(&mut self, other: MemoryReservation) {
        self.from_share.merge(other.from_share);
        self.from_all.merge(other.from_all);
    }

    /// Reduces the reservation to `len` bytes, rounded up to whole KiB, and releases the rest. Does
    /// nothing if less memory is reserved.
    pub fn reduce_to(&mut self, len: usize) {
        let units = len.div_ceil(UNIT);
        for permits in [&mut self.from_share, &mut self.from_all] {
            drop(permits.split(permits.num_permits().saturating_sub(units)));
        }
    }
}

/// The memory of a budget or of one peer, counted in units of 1 KiB. Most callers wait until memory
/// is free, in the order of their arrival. Connections and streams do not wait, and can use memory
/// that is set aside for them.
#[derive(Debug)]
struct Pool {
    units: usize,
    /// The free units that are set aside for connections and streams, which do not wait for memory.
    /// Without these units, waiting callers could lock out new connections and streams.
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

    /// Returns the number of units of memory (1 KiB each) that waiting callers can get. The number
    /// excludes the units that are set aside for connections and streams.
    fn rest_units(&self) -> usize {
        self.units - self.units / PARTS
    }

    fn used_units(&self) -> usize {
        let free = self.for_small.available_permits() + self.rest.available_permits();
        self.units.saturating_sub(free)
    }

    /// `true` if more than half of the pool's memory is reserved.
    fn is_scarce(&self) -> bool {
        self.used_units() > self.units / 2
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
    /// The minimum of the setting `http.memory_max`, in bytes. It is twice the memory that is kept
    /// free for single mints and health checks.
    pub const LEAST: usize = 2 * KEPT_FREE;

    /// Creates a budget of `memory_max` bytes, raised to [`MemoryBudget::LEAST`] if lower, minus
    /// the memory that is kept free for health checks and for requests that mint a single id.
    pub fn new(memory_max: usize, counts: Arc<ShedCounts>) -> Arc<MemoryBudget> {
        let memory_max = memory_max.max(Self::LEAST);
        Self::of(Self::reservable(memory_max), memory_max / 4, counts)
    }

    /// Returns the part of `memory_max`, in bytes, that callers can reserve. The rest is kept free
    /// for health checks and for requests that mint a single id.
    pub fn reservable(memory_max: usize) -> usize {
        memory_max.saturating_sub(KEPT_FREE)
    }

    /// Creates the memory budget that health checks use when the main budget is exhausted.
    pub fn for_probes(counts: Arc<ShedCounts>) -> Arc<MemoryBudget> {
        Self::of(KEPT_FREE / 2, KEPT_FREE / 8, counts)
    }

    /// Creates the memory budget that new connections use when the main budget is exhausted.
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

    /// Returns the owner of the memory that this peer reserves.
    pub fn owner(self: &Arc<Self>, peer: IpAddr) -> BudgetOwner {
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
        BudgetOwner {
            peer,
            budget: Arc::clone(self),
            share,
        }
    }

    /// Returns the reserved memory in bytes.
    pub fn used(&self) -> usize {
        self.all.used_units() * UNIT
    }
}

impl BudgetOwner {
    /// Returns the [network](network_of) of the peer's address.
    pub fn peer(&self) -> IpAddr {
        self.peer
    }

    /// `true` if more than half of this peer's memory, or more than half of the memory for all
    /// peers, is reserved.
    pub fn is_scarce(&self) -> bool {
        self.share.is_scarce() || self.budget.all.is_scarce()
    }

    /// Reserves `bytes` of memory, and waits up to one second for other callers to release memory.
    ///
    /// If `bytes` exceeds the maximum for a single reservation of this peer, reserves only this
    /// maximum.
    ///
    /// # Errors
    /// Returns [`Shed::Memory`] if no memory was reserved.
    pub async fn reserve(&self, bytes: usize) -> Result<MemoryReservation, Shed> {
        self.reserve_within_wait(bytes)
            .await
            .ok_or_else(|| self.budget.counts.count(Shed::Memory))
    }

    /// Reserves `bytes` of memory like [`reserve`](Self::reserve), for a response that is being
    /// sent. Returns `None` if no memory was reserved within one second. A failed attempt is not
    /// counted as a refusal, because the caller tries again.
    pub async fn reserve_within_wait(&self, bytes: usize) -> Option<MemoryReservation> {
        let paying = async {
            let units = units_of(bytes, self.share.rest_units());
            // Reserve from the peer's own share first. A peer whose share is used up then waits
            // without holding memory that other peers need.
            let from_share = self.share.buy(units).await;
            MemoryReservation {
                from_share,
                from_all: self.budget.all.buy(units).await,
                _share: Arc::clone(&self.share),
            }
        };
        timeout(WAIT_MAX, paying).await.ok()
    }

    /// Reserves `bytes` of memory like [`reserve`](Self::reserve), but never waits. Returns `None`
    /// if too little memory is free.
    pub fn reserve_if_free(&self, bytes: usize) -> Option<MemoryReservation> {
        let units = units_of(bytes, self.share.rest_units());
        let [from_share, from_all] =
            [&self.share, &self.budget.all].map(|pool| pool.buy_if_free(units));
        Some(MemoryReservation {
            from_share: from_share?,
            from_all: from_all?,
            _share: Arc::clone(&self.share),
        })
    }

    /// Reserves `bytes` of memory without waiting.
    ///
    /// # Errors
    /// Returns [`Shed::Memory`] if no memory was reserved.
    pub fn reserve_now(&self, bytes: usize) -> Result<MemoryReservation, Shed> {
        self.try_reserve(bytes)
            .ok_or_else(|| self.budget.counts.count(Shed::Memory))
    }

    /// Reserves `bytes` of memory without waiting, or returns `None` if too little memory is free.
    /// A failed attempt is not counted as a refusal, because the caller can continue with less
    /// memory.
    pub fn try_reserve(&self, bytes: usize) -> Option<MemoryReservation> {
        let units = units_of(bytes, self.share.units);
        let from_share = self.share.buy_now(units)?;
        let from_all = self.budget.all.buy_now(units)?;
        Some(MemoryReservation {
            from_share,
            from_all,
            _share: Arc::clone(&self.share),
        })
    }
}

/// Returns the network that counts as one peer. An IPv4 address counts as one peer. For IPv6, the
/// network is the first 64 bits of the address, because one customer usually owns all addresses in
/// such a network.
pub fn network_of(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
        v4 => v4,
    }
}

fn units_of(bytes: usize, most: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT).min(most)).expect("a budget has no more units")
}

/// A response body that reserves memory for each chunk before sending it.
pub trait ReservedBody {
    /// Takes the memory reservation for the first chunk of the body. Returns `None` if no
    /// reservation was made, or if it was already taken.
    fn take_reservation(&mut self) -> Option<MemoryReservation>;

    /// Returns the maximum length of the next chunk, in bytes.
    fn piece_len_max(&self) -> usize;
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
        let mut reservations = Vec::new();
        for number in 0..8 {
            let owner = budget.owner(peer(number));
            while let Ok(reservation) = owner.reserve_now(MIB) {
                reservations.push(reservation);
            }
            assert_eq!(
                reservations.len(),
                [32, 64, 96, 112, 112, 112, 112, 112][usize::from(number)]
            );
        }
        assert_eq!((budget.used(), counts.of(Shed::Memory)), (112 * MIB, 8));
        drop(reservations);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn a_reservation_can_be_reduced() {
        let (budget, _) = budget(128 * MIB);
        let owner = budget.owner(peer(1));
        let mut reservation = owner.reserve(32 * MIB).await.expect("a quarter");
        reservation.reduce_to(10 * UNIT - 1);
        assert_eq!(budget.used(), 10 * UNIT);
        reservation.reduce_to(MIB);
        assert_eq!(budget.used(), 10 * UNIT, "it does not grow");
        let rest = owner.reserve_now(28 * MIB - 10 * UNIT);
        assert!(rest.is_ok(), "the share of the peer is free again");
        drop((reservation, rest));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn connections_of_one_peer_share_and_a_peer_that_left_is_forgotten() {
        let (budget, _) = budget(128 * MIB);
        let one = budget.owner(peer(1));
        let reservation = [28, 4].map(|mib| one.reserve_now(mib * MIB).expect("a quarter"));
        assert_eq!(
            budget.owner(peer(1)).reserve_now(1).err(),
            Some(Shed::Memory)
        );
        drop((reservation, one));
        (0..=255).for_each(|number| drop(budget.owner(peer(number))));
        let kept = budget.peers.lock().expect("no test panics with it").len();
        assert!(kept < 64, "{kept} peers that hold nothing are kept");
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer() {
        let (budget, _) = budget(128 * MIB);
        let owner = |address: &str| budget.owner(address.parse().expect("an address"));
        let _reservations = [28, 4].map(|mib| {
            owner("2001:db8::1")
                .reserve_now(mib * MIB)
                .expect("a quarter")
        });
        assert!(owner("2001:db8::ffff:2").reserve_now(1).is_err());
        assert!(owner("2001:db8:0:1::1").reserve_now(1).is_ok());
        let _mapped = [28, 4].map(|mib| {
            owner("::ffff:10.0.0.1")
                .reserve_now(mib * MIB)
                .expect("a quarter")
        });
        assert!(owner("10.0.0.1").reserve_now(1).is_err());
    }

    #[tokio::test]
    async fn who_would_have_to_wait_gets_nothing_of_what_is_for_connections_and_passes_nobody() {
        let (budget, counts) = budget(128 * MIB);
        let owner = budget.owner(peer(1));
        let reservation = owner
            .reserve_if_free(28 * MIB)
            .expect("all of its share that can be waited for");
        assert!(owner.reserve_if_free(1).is_none());
        let _small = owner.reserve_now(MIB).expect("connections have more");
        let waiting = tokio::spawn({
            let owner = owner.clone();
            async move { owner.reserve(28 * MIB).await.is_ok() }
        });
        tokio::task::yield_now().await;
        drop(reservation);
        assert!(
            owner.reserve_if_free(1).is_none(),
            "it is of the one who waits"
        );
        assert!(waiting.await.expect("it does not panic"));
        assert!(owner.reserve_if_free(1).is_some());
        assert_eq!(counts.of(Shed::Memory), 0);
    }

    #[tokio::test]
    async fn who_finds_too_little_waits_a_second() {
        let (budget, counts) = budget(128 * MIB);
        let owner = budget.owner(peer(1));
        let reservation = owner
            .reserve(28 * MIB)
            .await
            .expect("all of its share that can be waited for");
        let small = owner.reserve_now(4 * MIB).expect("the rest");
        let began = tokio::time::Instant::now();
        assert_eq!(owner.reserve(1).await.err(), Some(Shed::Memory));
        assert!(began.elapsed() >= WAIT_MAX);
        assert_eq!(counts.of(Shed::Memory), 1);

        let waiting = tokio::spawn({
            let owner = owner.clone();
            async move { owner.reserve(MIB).await.is_ok() }
        });
        tokio::task::yield_now().await;
        drop((reservation, small));
        assert!(waiting.await.expect("it does not panic"));
        assert_eq!(budget.used(), 0);
        let _reservation = owner
            .reserve(1024 * MIB)
            .await
            .expect("no more than all of its share");
        assert_eq!(budget.used(), 28 * MIB);
    }
}
