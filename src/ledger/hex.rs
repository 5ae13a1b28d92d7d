//! A fixed number of lower-case hexadecimal digits: read strictly, and written without `fmt`.

use crate::id::Rejection;

/// Reads exactly `digits` lower-case hexadecimal digits, at most 32 of them.
///
/// # Errors
/// [`Rejection::WrongLength`], [`Rejection::BadAlphabet`]; [`Rejection::NonCanonical`] for upper case.
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

/// Writes the lowest hexadecimal digits of a value, as many as there is room for.
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
