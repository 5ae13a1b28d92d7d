//! Reads and writes a fixed number of lower-case hexadecimal digits. Reading accepts no other
//! number or kind of digits, and writing does not use `std::fmt`.

use idmint_core::id::Rejection;

/// Parses exactly `digits` lower-case hexadecimal digits. `digits` is at most 32.
///
/// # Errors
/// Returns [`Rejection::WrongLength`] or [`Rejection::BadAlphabet`] if the text has another form,
/// and [`Rejection::NonCanonical`] if it has upper-case digits.
pub(super) fn read_hex(text: &str, digits: usize) -> Result<u128, Rejection> {
    if text.chars().count() != digits {
        return Err(Rejection::WrongLength);
    }
    if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Rejection::BadAlphabet);
    }
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err(Rejection::NonCanonical);
    }
    Ok(u128::from_str_radix(text, 16).expect("hexadecimal digits, at most 32 of them"))
}

/// Fills `out` with the lowest hexadecimal digits of `value` in ASCII, one digit in each byte.
pub(super) fn write_hex(value: u128, out: &mut [u8]) {
    let mut rest = value;
    for place in out.iter_mut().rev() {
        *place = b"0123456789abcdef"[usize::from(rest.to_le_bytes()[0] & 0xf)];
        rest >>= 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for value in [0, 1, 0xf, 0x0123_4567_89ab_cdef, u128::MAX] {
            let mut text = [0; 32];
            write_hex(value, &mut text);
            let text = std::str::from_utf8(&text).expect("ASCII");
            assert_eq!(text, format!("{value:032x}"));
            assert_eq!(read_hex(text, 32), Ok(value));
        }
    }

    #[test]
    fn other_digits_are_refused() {
        assert_eq!(read_hex("12é4", 4), Err(Rejection::BadAlphabet));
        assert_eq!(read_hex("+123", 4), Err(Rejection::BadAlphabet));
        assert_eq!(read_hex("123", 4), Err(Rejection::WrongLength));
        assert_eq!(read_hex("12aB", 4), Err(Rejection::NonCanonical));
    }
}
