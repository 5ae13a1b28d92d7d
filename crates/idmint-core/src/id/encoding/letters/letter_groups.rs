//! Texts in hyphenated groups of letters, such as UUIDs.

use crate::id::rejection::Rejection;

/// Returns the length of a text with groups of these lengths, including the hyphens between the
/// groups.
pub(in crate::id::encoding) fn grouped_len(groups: &[usize]) -> usize {
    groups.iter().sum::<usize>() + groups.len().saturating_sub(1)
}

/// Splits the letters at the start of `out` into groups of the given lengths, with hyphens between
/// the groups. `out` has exactly the space that the result needs.
pub(in crate::id::encoding) fn spread(groups: &[usize], out: &mut [u8]) {
    let mut letters_end: usize = groups.iter().sum();
    let mut group_end = out.len();
    // Move groups of letters from right to left, so that no move overwrites letters that have not
    // been moved yet.
    for group in groups.iter().rev() {
        out.copy_within(letters_end - group..letters_end, group_end - group);
        letters_end -= group;
        group_end -= group;
        if let Some(hyphen) = group_end.checked_sub(1) {
            out[hyphen] = b'-';
            group_end = hyphen;
        }
    }
}

/// Removes the hyphens of a grouped text, and returns the letters if `check` accepts them.
///
/// Errors are reported in this order: wrong number of letters, letter outside the alphabet,
/// misplaced hyphen, any other error of `check`.
pub(in crate::id::encoding) fn ungroup(
    groups: &[usize],
    text: &str,
    check: impl Fn(&str) -> Result<(), Rejection>,
) -> Result<String, Rejection> {
    let letters = || text.chars().filter(|letter| *letter != '-');
    if letters().count() != groups.iter().sum::<usize>() {
        return Err(Rejection::WrongLength);
    }
    let letters: String = letters().collect();
    let checked = check(&letters);
    if checked == Err(Rejection::BadAlphabet) {
        return Err(Rejection::BadAlphabet);
    }
    let found = text.split('-').map(|group| group.chars().count());
    if !found.eq(groups.iter().copied()) {
        return Err(Rejection::BadGrouping);
    }
    checked.map(|()| letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_puts_hyphens_between_groups_only() {
        let mut text = *b"abcdef--";
        spread(&[1, 3, 2], &mut text);
        assert_eq!(&text, b"a-bcd-ef");
    }

    #[test]
    fn ungroup_reports_the_farthest_reason() {
        let any = |_: &str| Ok(());
        assert_eq!(ungroup(&[1, 2], "a-bc", any), Ok("abc".to_owned()));
        assert_eq!(ungroup(&[1, 2], "a-b", any), Err(Rejection::WrongLength));
        assert_eq!(ungroup(&[1, 2], "ab-c", any), Err(Rejection::BadGrouping));
        assert_eq!(ungroup(&[1, 2], "-abc", any), Err(Rejection::BadGrouping));
        assert_eq!(
            ungroup(&[1, 2], "ab-c", |_| Err(Rejection::BadAlphabet)),
            Err(Rejection::BadAlphabet)
        );
        assert_eq!(
            ungroup(&[1, 2], "a-bc", |_| Err(Rejection::NonCanonical)),
            Err(Rejection::NonCanonical)
        );
    }
}
