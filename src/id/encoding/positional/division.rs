//! Division of 128 bits by 64, done with 64 bits where the number allows it.

/// Quotient and remainder: without a division below the divisor, and with a short one below 2^64.
#[inline]
pub(in crate::id::encoding) fn split(value: u128, divisor: u64) -> (u128, u64) {
    if let Ok(short) = u64::try_from(value) {
        if short < divisor {
            return (0, short);
        }
        return (u128::from(short / divisor), short % divisor);
    }
    // The remainder by a multiplication: it would cost a second division of 128 bits.
    let quotient = value / u128::from(divisor);
    (
        quotient,
        lowest_64_bits(value - quotient * u128::from(divisor)),
    )
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the higher bits are left for the next part"
)]
pub(super) fn lowest_64_bits(value: u128) -> u64 {
    value as u64
}
