//! What a connection pays for a long head; short ones are paid for with the connection.

use std::io;

use crate::service::{Charge, Payer};

/// A head that is longer than this is paid for by itself, in bytes.
const SHORT_LEN_MAX: usize = 4 * 1024;

/// The buffer of the longest head, in bytes.
const LONG_LEN: usize = 32 * 1024;

/// The payment for the head that is being read.
#[derive(Default)]
pub(in crate::net) struct HeadPayment {
    charge: Option<Charge>,
}

impl HeadPayment {
    /// Has a head paid for of which so much has come.
    ///
    /// # Errors
    /// There is too little memory: the connection ends.
    pub(super) fn pay_for(&mut self, head_len: usize, payer: &Payer) -> io::Result<()> {
        if head_len <= SHORT_LEN_MAX {
            self.charge = None;
        } else if self.charge.is_none() {
            self.charge = Some(payer.pay_now(LONG_LEN).map_err(io::Error::other)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::service::Load;

    #[test]
    fn a_long_head_is_paid_for() {
        let memory = Load::default().memory;
        let payer = memory.payer(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let mut payment = HeadPayment::default();
        for (head_len, used) in [
            (1, 0),
            (SHORT_LEN_MAX, 0),
            (SHORT_LEN_MAX + 1, LONG_LEN),
            (9_999, LONG_LEN),
            (1, 0),
        ] {
            payment.pay_for(head_len, &payer).expect("there is memory");
            assert_eq!(memory.used(), used, "{head_len}");
        }
        let mut others = Vec::new();
        others.extend(std::iter::from_fn(|| payer.try_pay(LONG_LEN)));
        assert!(payment.pay_for(SHORT_LEN_MAX + 1, &payer).is_err());
    }
}
