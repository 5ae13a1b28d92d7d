//! Rules that convert designators of space objects to catalogue numbers. A designator is the name
//! of an object in a catalogue.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::report::Role;

/// The letters of the Alpha-5 scheme. A letter stands for the first two digits of a number above
/// 99 999. For example, `B1234` is 111 234. I and O are not used.
const ALPHA_5: &str = "ABCDEFGHJKLMNPQRSTUVWXYZ";

/// The rules that determine the catalogue number of a space object. They list the catalogues whose
/// designators are used as numbers, and the numbers for other designators.
///
/// ```
/// use idmint_records::conjunction::ObjectRules;
///
/// let rules = ObjectRules::new(["SATCAT"], [("L3972", 90_001), ("LEOLABS/48274", 48_274)]);
/// assert_eq!(rules.number_of("25544", Some("SATCAT")), Ok(25_544));
/// assert_eq!(rules.number_of("L3972", None), Ok(90_001));
/// assert_eq!(rules.number_of("48274", Some("LEOLABS")), Ok(48_274));
/// assert!(rules.number_of("48275", Some("LEOLABS")).is_err());
/// assert!(rules.number_of("UNKNOWN", None).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRules {
    catalogs: Vec<String>,
    /// The number for each designator. A key is a designator alone, or a catalogue and a designator
    /// with a slash in between, such as `LEOLABS/48274`. Keys are [normalized](normalize).
    designators: BTreeMap<String, u64>,
    /// `true` if every designator is accepted. One without a number gets a hash as its number.
    accepts_all: bool,
}

/// The reason why the designator of an object cannot be converted to a catalogue number. In an
/// error message, the text of the reason follows the name of the invalid value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ObjectFault {
    /// The designators of this catalogue are not used as numbers.
    Catalog(String),
    /// The designator is not a number.
    NoNumber(String),
    /// The designator is a number that is too great for a catalogue number.
    TooGreat,
}

/// The text of the error [`ObjectFault::TooGreat`], without the invalid value.
pub(super) const TOO_GREAT: &str = "is greater than 18446744073709551615, the largest number in a report; \
                                    conjunction.designators can map it to a smaller one";

impl Default for ObjectRules {
    /// Returns rules under which only designators of SATCAT are numbers.
    fn default() -> ObjectRules {
        ObjectRules::new(["SATCAT"], [])
    }
}

impl ObjectRules {
    /// Creates rules to convert designators to numbers. In the catalogues `catalogs`, whose names
    /// are compared without regard to case, a designator is itself the number. `designators` maps
    /// further designators to numbers.
    pub fn new<'a>(
        catalogs: impl IntoIterator<Item = &'a str>,
        designators: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> ObjectRules {
        ObjectRules {
            catalogs: catalogs.into_iter().map(str::to_owned).collect(),
            designators: designators
                .into_iter()
                .map(|(name, number)| (normalize(name), number))
                .collect(),
            accepts_all: false,
        }
    }

    /// Creates rules that accept every designator of every catalogue, for a client that does not
    /// know which ones the service accepts. The number of an unknown designator is a hash, which
    /// only keeps different objects apart. The two objects of a message never have the same hash,
    /// so that the service decides if they are the same object.
    pub fn accepting_all() -> ObjectRules {
        ObjectRules {
            accepts_all: true,
            ..ObjectRules::default()
        }
    }

    /// Returns the catalogue number of the space object with this designator. `catalog` is the name
    /// of the catalogue that has the designator, if the message names it.
    ///
    /// # Errors
    /// Returns the reason why the designator has no number, as a text for people.
    pub fn number_of(&self, designator: &str, catalog: Option<&str>) -> Result<u64, String> {
        self.resolve(Role::Primary, designator, catalog, None)
            .map_err(|fault| match fault {
                ObjectFault::Catalog(what) => format!("{:?} {what}", catalog.unwrap_or_default()),
                ObjectFault::NoNumber(what) => format!("{designator:?} {what}"),
                ObjectFault::TooGreat => format!("{designator:?} {TOO_GREAT}"),
            })
    }

    /// Returns the number for a designator. `listed` is the catalogue number that the message has
    /// next to the designator. It is used if the designator is neither mapped to a number by these
    /// rules, nor a number of an accepted catalogue.
    pub(super) fn resolve(
        &self,
        role: Role,
        designator: &str,
        catalog: Option<&str>,
        listed: Option<u64>,
    ) -> Result<u64, ObjectFault> {
        match (self.resolve_known(designator, catalog), listed) {
            (Err(ObjectFault::Catalog(_) | ObjectFault::NoNumber(_)), Some(listed)) => Ok(listed),
            (Err(_), _) if self.accepts_all => {
                let mut hasher = DefaultHasher::new();
                (role, designator, catalog).hash(&mut hasher);
                Ok(hasher.finish().max(1))
            }
            (known, _) => known,
        }
    }

    fn resolve_known(&self, designator: &str, catalog: Option<&str>) -> Result<u64, ObjectFault> {
        let catalog = catalog.filter(|catalog| !catalog.is_empty());
        let mapped = |key: &str| self.designators.get(&normalize(key));
        let of_catalog = catalog.and_then(|catalog| mapped(&format!("{catalog}/{designator}")));
        if let Some(number) = of_catalog.or_else(|| mapped(designator)) {
            return Ok(*number);
        }
        if catalog.is_some_and(|catalog| !self.is_satcat(catalog)) {
            return Err(ObjectFault::Catalog(format!(
                "is not one of the accepted catalogues ({}), so its numbers may mean other objects; if it uses the \
                 numbers of SATCAT, add its name to conjunction.catalogs",
                self.catalogs.join(", ")
            )));
        }
        if designator.is_empty() || !designator.bytes().all(|byte| byte.is_ascii_digit()) {
            let alpha_5 = of_alpha_5(designator)
                .map(|number| format!(" (as Alpha-5 it would be {number})"))
                .unwrap_or_default();
            return Err(ObjectFault::NoNumber(format!(
                "is not a catalogue number, which has only decimal digits{alpha_5}; conjunction.designators can map \
                 it to one"
            )));
        }
        // The designator consists of digits, so parsing fails only if the number is too great.
        designator.parse().map_err(|_| ObjectFault::TooGreat)
    }

    fn is_satcat(&self, catalog: &str) -> bool {
        let catalog = normalize(catalog);
        self.catalogs
            .iter()
            .any(|known| normalize(known).eq_ignore_ascii_case(&catalog))
    }
}

/// Returns a text with underscores and repeated blanks replaced by single blanks, because CCSDS
/// defines such texts as equal (508.0-B-1, 6.3.2.5).
fn normalize(text: &str) -> String {
    let words = text.split([' ', '_']).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// Parses a designator in the Alpha-5 scheme: one letter for the first two digits, then four
/// digits.
fn of_alpha_5(designator: &str) -> Option<u64> {
    let mut letters = designator.chars();
    let first = ALPHA_5.find(letters.next()?)?;
    let rest = letters.as_str();
    let is_alpha_5 = rest.len() == 4 && rest.bytes().all(|byte| byte.is_ascii_digit());
    let tens_of_thousands = 10 + u64::try_from(first).ok()?;
    is_alpha_5
        .then(|| {
            rest.parse()
                .ok()
                .map(|rest: u64| tens_of_thousands * 10_000 + rest)
        })
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_named_as_such_with_what_it_may_mean() {
        let rules = ObjectRules::default();
        for (designator, hint) in [
            ("UNKNOWN", None),
            ("L3972", Some("203972")),
            ("A0001", Some("100001")),
            ("T0001", Some("270001")),
            ("Z9999", Some("339999")),
            ("I0001", None),
            ("A00011", None),
            ("", None),
            ("-5", None),
        ] {
            let told = rules.number_of(designator, None).expect_err(designator);
            assert!(
                told.starts_with(&format!("{designator:?} is not a catalogue number")),
                "{told}"
            );
            assert!(told.contains("conjunction.designators"), "{told}");
            assert_eq!(told.contains("Alpha-5"), hint.is_some(), "{told}");
            assert!(hint.is_none_or(|hint| told.contains(hint)), "{told}");
        }
    }

    #[test]
    fn a_catalogue_counts_only_if_it_is_named() {
        let rules = ObjectRules::new(["SATCAT", "NORAD"], [("T0001", 7)]);
        for catalog in [None, Some(""), Some("satcat"), Some("NORAD")] {
            assert_eq!(rules.number_of("48274", catalog), Ok(48_274), "{catalog:?}");
        }
        let told = rules
            .number_of("48274", Some("LEOLABS"))
            .expect_err("another catalogue");
        assert!(
            told.contains("\"LEOLABS\" is not one of the accepted catalogues (SATCAT, NORAD)"),
            "{told}"
        );
        assert_eq!(
            rules.number_of("T0001", Some("LEOLABS")),
            Ok(7),
            "a designator that is mapped"
        );
    }

    #[test]
    fn underscores_and_several_blanks_in_a_catalogue_equal_one_blank() {
        let rules = ObjectRules::new(["SPACE_TRACK", "MY  SATS"], [("LEO LABS/L1", 5)]);
        for catalog in ["SPACE TRACK", "space   track", "SPACE_TRACK", "MY_SATS"] {
            assert_eq!(rules.number_of("48274", Some(catalog)), Ok(48_274));
        }
        for catalog in ["LEO LABS", "LEO_LABS", "LEO _LABS"] {
            assert_eq!(rules.number_of("L1", Some(catalog)), Ok(5), "{catalog}");
        }
        let error = rules
            .number_of("48274", Some("SPACETRACK"))
            .expect_err("another name");
        assert!(error.contains("(SPACE_TRACK, MY  SATS)"), "{error}");
    }

    #[test]
    fn rules_that_accept_everything_keep_objects_apart() {
        let rules = ObjectRules::accepting_all();
        let number = |designator, catalog| rules.number_of(designator, catalog).expect("accepted");
        assert_eq!(number("25544", Some("SATCAT")), 25_544);
        let unknown = [
            number("L1", None),
            number("L2", None),
            number("L1", Some("LEOLABS")),
            number("", None),
        ];
        for (at, one) in unknown.iter().enumerate() {
            assert!(*one > 0 && !unknown[..at].contains(one), "{unknown:?}");
        }
    }

    #[test]
    fn rules_that_accept_everything_prefer_the_number_in_the_message_to_a_hash() {
        let rules = ObjectRules::accepting_all();
        let resolve = |designator| rules.resolve(Role::Secondary, designator, None, Some(48_274));
        assert_eq!(resolve("UNKNOWN"), Ok(48_274));
        assert_eq!(resolve("25544"), Ok(25_544));
    }

    #[test]
    fn a_designator_of_one_catalogue_means_nothing_in_another() {
        let rules = ObjectRules::new(["SATCAT"], [("LEOLABS/L1", 5), ("799500001", 9)]);
        assert_eq!(rules.number_of("L1", Some("LEOLABS")), Ok(5));
        assert!(rules.number_of("L1", Some("SATCAT")).is_err());
        assert!(rules.number_of("L1", None).is_err());
        assert_eq!(
            rules.number_of("799500001", Some("SATCAT")),
            Ok(9),
            "nine digits"
        );
    }
}
