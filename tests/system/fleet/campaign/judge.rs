//! The final check: every id is compared with every other. The check itself is tested, too.

use crate::torture::callers::Minted;
use crate::torture::formats::FORMATS;

use super::callers::formats;

/// Compares every id of every format with every other, prints the number of ids, and returns the
/// sum.
///
/// # Errors
/// Returns the format that has a duplicate id.
pub(super) fn compare(minted: Minted, at_least: u128) -> Result<u128, String> {
    let mut all = 0;
    for ((format, runs), counted) in FORMATS.iter().zip(minted.runs).zip(minted.ids) {
        let ids = runs
            .check()
            .map_err(|shared| format!("{}: ids came twice: {shared:?}", format.name))?;
        assert_eq!(
            ids,
            u128::from(counted),
            "{}: every id that came was compared",
            format.name
        );
        all += ids;
    }
    let fewest = formats()
        .into_iter()
        .map(|format| (u128::from(minted.ids[format]), FORMATS[format].name))
        .min();
    let (fewest, name) = fewest.expect("there are formats");
    assert!(
        fewest >= at_least,
        "{name}: {fewest} ids are next to nothing"
    );
    Ok(all)
}
