//! Many texts one after the other.

/// Writes the text of each value, of the length that `len` tells, and a seam after it; says how much of `out` that took.
///
/// One loop for each way to write, so that none of its choices is made anew for each value.
#[inline]
pub(crate) fn write_row<const SEAM: usize>(
    values: &[u128],
    len: impl Fn(u128) -> usize,
    write: impl Fn(u128, &mut [u8]),
    seam: [u8; SEAM],
    out: &mut [u8],
) -> usize {
    let room = out.len();
    let mut rest = out;
    for value in values {
        let (text, after) = rest.split_at_mut(len(*value));
        write(*value, text);
        let (here, after) = after.split_first_chunk_mut().expect("room for each text and a seam");
        *here = seam;
        rest = after;
    }
    room - rest.len()
}
