//! Keys that let a service do once what it is asked for twice.

/// The longest key: a request adds a stroke and a number of at most 20 digits, and 255 characters are read.
const KEY_LEN_MAX: usize = 234;

/// A key made of what is sent.
pub(in crate::cli) fn key_of(digest: [u8; 32]) -> String {
    format!(
        "{:032x}",
        u128::from_be_bytes(*digest.first_chunk().expect("16 of 32 bytes"))
    )
}

/// Reads a key that a caller gives.
pub(in crate::cli) fn parse_key(text: &str) -> Result<String, String> {
    if text.is_empty()
        || text.len() > KEY_LEN_MAX
        || !text.bytes().all(|byte| byte.is_ascii_graphic())
    {
        return Err(format!(
            "1 to {KEY_LEN_MAX} visible ASCII characters are needed"
        ));
    }
    Ok(text.to_owned())
}
