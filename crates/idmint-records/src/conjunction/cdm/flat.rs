//! The names of values in flat rows, which are JSON objects and lines of CSV. A flat row has the
//! values of both objects side by side, so their names say which object they belong to.
//!
//! Sources: the field lists (`modeldef`) of space-track.org for its classes `cdm` and `cdm_public`,
//! the header of SOCRATES at <https://celestrak.org/SOCRATES/>, and rows in published clients.

use std::borrow::Cow;

use super::draft::{Draft, Names};
use super::error::CdmError;
use crate::conjunction::report::Role;
use crate::conjunction::sent_report::{CONJUNCTION_ID_KEY, EVENT_ID_KEY};

/// The names of the values in one kind of flat rows.
#[derive(Debug)]
pub(super) struct FlatNames {
    pub(super) names: Names,
    conjunction_id: &'static str,
    /// The names of the catalogue numbers of the two objects, such as `SAT1_COMMENT_NORAD_ID`,
    /// which a JSON object or CSV line can have in addition to the designators.
    numbers: [&'static str; 2],
}

const fn flat_names(
    objects: [&'static str; 2],
    catalogs: [&'static str; 2],
    numbers: [&'static str; 2],
) -> FlatNames {
    let names = Names {
        tca: "TCA",
        objects,
        catalogs,
    };
    FlatNames {
        names,
        conjunction_id: CONJUNCTION_ID_KEY,
        numbers,
    }
}

/// The names of a message's values in the nested JSON that the Python package brahe writes. Each
/// name is the path of a JSON member, in lower case.
pub(super) const NESTED: FlatNames = FlatNames {
    names: Names {
        tca: "relative_metadata.tca",
        objects: [
            "object1.metadata.object_designator",
            "object2.metadata.object_designator",
        ],
        catalogs: [
            "object1.metadata.catalog_name",
            "object2.metadata.catalog_name",
        ],
    },
    conjunction_id: "relative_metadata.conjunction_id",
    numbers: [
        "object1.metadata.comment_norad_id",
        "object2.metadata.comment_norad_id",
    ],
};

/// The JSON keys or CSV columns with the name of each object's catalogue, such as `SATCAT`. They
/// belong to space-track.org's `cdm` records, but other records may have them as well.
const CATALOGS: [&str; 2] = ["SAT1_CATALOG_NAME", "SAT2_CATALOG_NAME"];
/// The JSON keys or CSV columns with the catalogue number of each object, in the same records as
/// [`CATALOGS`].
const NUMBERS: [&str; 2] = ["SAT1_COMMENT_NORAD_ID", "SAT2_COMMENT_NORAD_ID"];

/// The names in space-track.org's class `cdm`.
pub(super) const CDM: FlatNames = flat_names(
    ["SAT1_OBJECT_DESIGNATOR", "SAT2_OBJECT_DESIGNATOR"],
    CATALOGS,
    NUMBERS,
);

/// The kinds of rows (JSON objects or CSV lines): `cdm_public` and `cdm` of space-track.org, two
/// variants that other programs write, and SOCRATES, a list of close approaches at celestrak.org.
/// If a row has the object keys or columns of several kinds, the first of these applies.
const KINDS: [FlatNames; 5] = [
    flat_names(["SAT_1_ID", "SAT_2_ID"], CATALOGS, NUMBERS),
    CDM,
    flat_names(["SAT1_ID", "SAT2_ID"], CATALOGS, NUMBERS),
    flat_names(
        ["OBJECT1_OBJECT_DESIGNATOR", "OBJECT2_OBJECT_DESIGNATOR"],
        ["OBJECT1_CATALOG_NAME", "OBJECT2_CATALOG_NAME"],
        ["OBJECT1_COMMENT_NORAD_ID", "OBJECT2_COMMENT_NORAD_ID"],
    ),
    flat_names(["NORAD_CAT_ID_1", "NORAD_CAT_ID_2"], CATALOGS, NUMBERS),
];

/// The name of the value with the fraction of a time of closest approach (TCA). Until about 2020,
/// space-track.org sent this fraction separately from the TCA.
pub(super) const TCA_FRACTION: &str = "TCA_FRACTION";

/// The error message for a row that mixes the names of space-track.org's classes `cdm` and
/// `cdm_public`. [`FlatNames::is_of_other_class`] finds such a name.
pub(super) const MIXED: &str =
    "the row names objects as `cdm` and as `cdm_public` do; keep the names of one of these classes";

/// The meaning of a value in a flat row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Tca,
    TcaFraction,
    Designator(Role),
    Catalog(Role),
    Number(Role),
    EventId,
    ConjunctionId,
}

impl FlatNames {
    /// Finds the kind of a row (JSON object or CSV line) by the names of its values, `given`.
    /// Returns `None` if none of them is a name for an object's designator, such as `SAT_1_ID`.
    pub(super) fn of<'n>(
        given: impl Iterator<Item = &'n str> + Clone,
    ) -> Option<&'static FlatNames> {
        KINDS.iter().find(|kind| {
            let mut given = given.clone();
            given.any(|name| kind.names.objects.contains(&name))
        })
    }

    /// Returns the part of a message, such as the time, that is given under this name. Returns
    /// `None` if values with this name are ignored.
    pub(super) fn part(&self, name: &str) -> Option<Part> {
        let role_in = |names: [&str; 2]| {
            let at = names.iter().position(|known| *known == name)?;
            Some([Role::Primary, Role::Secondary][at])
        };
        match name {
            EVENT_ID_KEY => Some(Part::EventId),
            TCA_FRACTION => Some(Part::TcaFraction),
            name if name == self.conjunction_id => Some(Part::ConjunctionId),
            name if name == self.names.tca => Some(Part::Tca),
            _ => role_in(self.names.objects)
                .map(Part::Designator)
                .or_else(|| role_in(self.names.catalogs).map(Part::Catalog))
                .or_else(|| role_in(self.numbers).map(Part::Number)),
        }
    }

    /// Returns the values that every row must have, each with its name: the time of closest
    /// approach and the designators of the two objects.
    pub(super) fn required(&self) -> [(Part, &'static str); 3] {
        let [primary, secondary] = self.names.objects;
        [
            (Part::Tca, self.names.tca),
            (Part::Designator(Role::Primary), primary),
            (Part::Designator(Role::Secondary), secondary),
        ]
    }

    /// Returns `true` if `name` is a name for an object's designator in space-track.org's class
    /// `cdm` or `cdm_public`, but not in rows of the kind `self`. For example, `SAT_1_ID` belongs
    /// to `cdm_public`, so a row of `cdm` must not have it.
    pub(super) fn is_of_other_class(&self, name: &str) -> bool {
        let mut classes = KINDS[..2].iter();
        !self.names.objects.contains(&name)
            && classes.any(|class| class.names.objects.contains(&name))
    }
}

/// Adds a value to the draft of a row. `is_split` is `true` if the row has a `TCA_FRACTION`.
///
/// The row's catalogue numbers must have been added with [`Draft::set_number`] before, so this
/// function ignores them. It also ignores an empty CONJUNCTION_ID, and a `TCA_FRACTION` that is
/// empty or `0`. A blank in the TCA stands for `T`, unless the row has a `TCA_FRACTION`.
///
/// # Errors
/// Returns [`CdmError`] if the value is invalid. Every `TCA_FRACTION` that is not ignored is
/// invalid. Also returns [`CdmError`] if the draft already has a value for this part, except if
/// that value is the same conjunction id.
pub(super) fn take(
    draft: &mut Draft<'_>,
    part: Part,
    line: u64,
    text: &str,
    is_split: bool,
) -> Result<(), CdmError> {
    match part {
        Part::Tca if is_split => draft.tca(line, text),
        Part::Tca => draft.tca_read_as(line, text, &with_t(text)),
        Part::TcaFraction if matches!(text, "" | "0") => Ok(()),
        Part::TcaFraction => Err(CdmError::of(
            line,
            TCA_FRACTION,
            "bad_timestamp",
            "the unit of this value is not defined; add the fraction to TCA, and remove this value",
        )),
        Part::Designator(role) => draft.object(role, line, text),
        Part::Catalog(role) => draft.catalog(role, line, text),
        Part::Number(_) => Ok(()),
        Part::EventId => draft.event_id(line, text),
        Part::ConjunctionId if text.is_empty() => Ok(()),
        Part::ConjunctionId => draft.conjunction_id(line, text),
    }
}

/// Replaces the blank between the date and the time of day with `T`. Databases write times with
/// such a blank.
fn with_t(text: &str) -> Cow<'_, str> {
    match text.split_once(' ') {
        Some((day, time)) if !text.contains('T') => Cow::Owned(format!("{day}T{time}")),
        _ => Cow::Borrowed(text),
    }
}

/// Parses a catalogue number. Returns `None` unless `text` consists of digits and is at least 1.
pub(super) fn number(text: &str) -> Option<u64> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_digits.then(|| text.parse().ok()).flatten();
    number.filter(|number| *number > 0)
}
