//! Rate limits in requests per second. Each token and each certificate name has its own rate.
//! Callers without a token or certificate have one rate for each address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::answer::{Problem, Slug};
use idmint_service::network_of;

/// The maximum number of addresses whose requests are counted separately. They take about 3 MiB of
/// memory. All further addresses share one rate limit.
const PEERS_MAX: usize = 65_536;

/// The window of the rate limit. After a second without requests, a caller may send a whole
/// second's requests at once.
const WINDOW: Duration = Duration::from_secs(1);

/// The rate limit, which applies to each caller separately, and the part of it that each caller
/// without a token or certificate has used.
#[derive(Debug)]
pub struct Rate {
    per_second: NonZeroU32,
    began: Instant,
    peers: Mutex<Peers>,
}

#[derive(Debug, Default)]
struct Peers {
    allowances: HashMap<IpAddr, Allowance>,
    /// The allowance shared by all addresses without an entry in `allowances`.
    others: Allowance,
    /// The time, since `began`, at which idle addresses were last removed from `allowances`.
    forgot: Duration,
}

/// The part of a caller's rate limit that recent requests have used up.
///
/// The generic cell rate algorithm stores a single number: the time at which the caller has its
/// whole rate again. Each request moves that time forward by one interval, which is 100 ms at a
/// rate of 10 requests per second. A time in the past counts as now. A request is refused if it
/// would move the time to more than one window after now.
#[derive(Debug, Default)]
pub(super) struct Allowance {
    /// The time at which the caller may again send a whole second's requests at once, in
    /// nanoseconds since `Rate::began`. Written by: `take`, by compare-exchange. Read by: `take`,
    /// `Peers::forget`. Ordering: `Relaxed`, because the number is the whole state. Tested by:
    /// `a_caller_has_its_rate_and_no_more_whenever_it_comes`.
    full_at: AtomicU64,
}

/// The part of its rate limit that a caller has left after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Left {
    /// Requests that the caller may send now.
    pub(super) requests: u64,
    /// The time until the caller has its whole rate again.
    pub(super) until_full: Duration,
}

impl Allowance {
    /// Counts one request towards the rate limit. If the limit is used up, returns as the error the
    /// time until the next request is allowed.
    fn take(&self, now: Duration, per_second: NonZeroU32) -> Result<Left, Duration> {
        let now = nanos(now);
        let step = nanos(WINDOW).div_ceil(u64::from(per_second.get()));
        let window = step * u64::from(per_second.get());
        let mut full_at = self.full_at.load(Ordering::Relaxed);
        loop {
            let next = full_at.max(now) + step;
            let used = next - now;
            if used > window {
                return Err(Duration::from_nanos(used - window));
            }
            match self.full_at.compare_exchange_weak(
                full_at,
                next,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    return Ok(Left {
                        requests: (window - used) / step,
                        until_full: Duration::from_nanos(used),
                    });
                }
                Err(newer) => full_at = newer,
            }
        }
    }
}

impl Peers {
    /// Returns the allowance of the callers from this address.
    fn of(&mut self, peer: IpAddr, now: Duration) -> &Allowance {
        let is_new = !self.allowances.contains_key(&peer);
        // Scan the table at most once per window of the rate limit, which is one second. If every
        // new address caused a scan, an attacker could slow the service down.
        if is_new && self.allowances.len() >= PEERS_MAX && now >= self.forgot + WINDOW {
            self.forgot = now;
            self.allowances
                .retain(|_, allowance| *allowance.full_at.get_mut() > nanos(now));
        }
        if is_new && self.allowances.len() >= PEERS_MAX {
            return &self.others;
        }
        self.allowances.entry(peer).or_default()
    }
}

impl Rate {
    /// Returns a rate limit of `requests` per second for each caller.
    pub fn per_second(requests: NonZeroU32) -> Rate {
        Rate {
            per_second: requests,
            began: Instant::now(),
            peers: Mutex::default(),
        }
    }

    /// Returns the limit in requests per second.
    pub(super) fn requests(&self) -> u32 {
        self.per_second.get()
    }

    /// Counts a request towards `allowance`, which belongs to the token or certificate of the
    /// request.
    ///
    /// # Errors
    /// Returns 429 `rate-limited` if the caller has used up its rate.
    pub(super) fn take(&self, allowance: &Allowance) -> Result<Left, Problem> {
        allowance
            .take(self.began.elapsed(), self.per_second)
            .map_err(|wait| self.refuse(wait))
    }

    /// Counts a request of a caller without a token or certificate, from this address.
    ///
    /// # Errors
    /// Returns 429 `rate-limited` if the address has used up its rate.
    pub(super) fn take_of_peer(&self, peer: IpAddr) -> Result<Left, Problem> {
        let now = self.began.elapsed();
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = peers.of(network_of(peer), now).take(now, self.per_second);
        drop(peers);
        taken.map_err(|wait| self.refuse(wait))
    }

    fn refuse(&self, wait: Duration) -> Problem {
        let detail = format!(
            "this caller has used its {} requests a second (http.rate)",
            self.per_second
        );
        Problem::new(Slug::RateLimited, detail)
            .reason("rate")
            .limit(format!("{} requests a second", self.per_second))
            .retry_after(wait)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn per_second(requests: u32) -> NonZeroU32 {
        NonZeroU32::new(requests).expect("more than none")
    }

    #[test]
    fn a_caller_has_its_rate_and_no_more_whenever_it_comes() {
        for rate in [1, 3, 1_000, 999_999] {
            let (allowance, rate) = (Allowance::default(), per_second(rate));
            let mut taken = 0;
            for millis in 0..3_000 {
                let now = Duration::from_millis(5_000 + millis);
                taken += std::iter::from_fn(|| allowance.take(now, rate).ok()).count();
                let granted = f64::from(rate.get())
                    * (1.0 + f64::from(u32::try_from(millis).expect("few")) / 1e3);
                assert!(
                    taken as f64 <= granted + 1e-3,
                    "{rate} a second: {taken} after {millis} ms"
                );
                assert!(
                    taken as f64 >= granted * 0.999 - 1.0,
                    "{rate} a second: {taken} after {millis} ms"
                );
            }
        }
    }

    #[test]
    fn what_is_left_and_how_long_to_wait_is_told() {
        let (allowance, now) = (Allowance::default(), Duration::from_secs(9));
        let take = |now| allowance.take(now, per_second(2));
        assert_eq!(
            take(now),
            Ok(Left {
                requests: 1,
                until_full: Duration::from_millis(500)
            })
        );
        assert_eq!(
            take(now),
            Ok(Left {
                requests: 0,
                until_full: Duration::from_secs(1)
            })
        );
        assert_eq!(take(now), Err(Duration::from_millis(500)));
        assert_eq!(
            take(now + Duration::from_millis(200)),
            Err(Duration::from_millis(300))
        );
        assert!(take(now + Duration::from_millis(500)).is_ok());
    }

    #[test]
    fn addresses_are_told_apart_until_there_are_too_many_and_quiet_ones_are_forgotten() {
        let mut peers = Peers::default();
        let (rate, now) = (per_second(1), Duration::from_secs(1));
        let peer = |number: usize| IpAddr::from(u32::try_from(number).expect("few").to_be_bytes());
        for number in 0..PEERS_MAX {
            assert!(peers.of(peer(number), now).take(now, rate).is_ok());
        }
        assert!(peers.of(peer(0), now).take(now, rate).is_err());
        assert!(
            peers.of(peer(PEERS_MAX), now).take(now, rate).is_ok(),
            "the first of those without a place"
        );
        assert!(
            peers.of(peer(PEERS_MAX + 1), now).take(now, rate).is_err(),
            "they share a rate"
        );
        assert_eq!(peers.allowances.len(), PEERS_MAX);
        let later = now + WINDOW;
        assert!(
            peers
                .of(peer(PEERS_MAX + 2), later)
                .take(later, rate)
                .is_ok()
        );
        assert_eq!(
            peers.allowances.len(),
            1,
            "all others have their whole rate again"
        );
    }
}
