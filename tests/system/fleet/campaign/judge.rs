//! The final check of a campaign, which compares every id with every other one. Tests of the check
//! itself follow.

use crate::torture::callers::Minted;
use crate::torture::formats::FORMATS;

use super::callers::formats;

/// Compares every id of each format with every other one, and prints the number of ids. Each format
/// must have at least `at_least` ids. Returns the total number of ids.
///
/// # Errors
/// Returns the name of a format in which an id occurs twice.
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
