//! The memory reservation for a long request head. The connection's own reservation covers short
//! heads.

use std::io;

use idmint_service::{BudgetOwner, MemoryReservation};

/// The maximum length of a request head that the connection's memory reservation covers, in bytes.
const SHORT_LEN_MAX: usize = 4 * 1024;

/// The size of the buffer for the longest allowed head, in bytes.
const LONG_LEN: usize = 32 * 1024;

/// The memory reservation for the head that is being read.
#[derive(Default)]
pub(crate) struct HeadPayment {
    reservation: Option<MemoryReservation>,
}

impl HeadPayment {
    /// Reserves memory for a head of which `head_len` bytes have arrived.
    ///
    /// # Errors
    /// Returns an error if too little memory is free.
    pub(super) fn reserve_for(&mut self, head_len: usize, owner: &BudgetOwner) -> io::Result<()> {
        if head_len <= SHORT_LEN_MAX {
            self.reservation = None;
        } else if self.reservation.is_none() {
            self.reservation = Some(owner.reserve_now(LONG_LEN).map_err(io::Error::other)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use idmint_service::Load;

    #[test]
    fn a_long_head_is_paid_for() {
        let memory = Load::default().memory;
        let owner = memory.owner(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let mut payment = HeadPayment::default();
        for (head_len, used) in [
            (1, 0),
            (SHORT_LEN_MAX, 0),
            (SHORT_LEN_MAX + 1, LONG_LEN),
            (9_999, LONG_LEN),
            (1, 0),
        ] {
            payment
                .reserve_for(head_len, &owner)
                .expect("there is memory");
            assert_eq!(memory.used(), used, "{head_len}");
        }
        let mut others = Vec::new();
        others.extend(std::iter::from_fn(|| owner.try_reserve(LONG_LEN)));
        assert!(payment.reserve_for(SHORT_LEN_MAX + 1, &owner).is_err());
    }
}
