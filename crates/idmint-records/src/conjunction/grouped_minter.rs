//! Mints ids for reports of close approaches of two space objects. An id is made only from the time
//! and the two objects of a report.

use std::ops::RangeInclusive;
use std::sync::Arc;

use serde::Deserialize;

use super::anchor::{Pair, Tca};
use super::report::{Report, ReportError, Role};
use idmint_core::id::{Field, FieldKind, Format, Rejection, Rule};
use idmint_core::named;

named! {
    /// The rule that decides whether the order of the two objects in a report matters.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum PairOrder {
        /// The order matters: (a, b) and (b, a) are different pairs.
        Reported = "reported",
        /// The order of the two objects does not matter. The object with the smaller catalogue
        /// number counts as the primary object.
        Unordered = "unordered",
    }
}

/// Mints the ids of one grouped format, which are made from reports of close approaches. The minter
/// needs no clock, no worker number and no horizon.
///
/// ```
/// use std::sync::Arc;
/// use idmint_core::id::{FormatDefinition, PRESETS};
/// use idmint_records::conjunction::{GroupedMinter, PairOrder, Report};
/// use idmint_core::time::UnixTime;
///
/// let preset = PRESETS.iter().find(|preset| preset.name == "conjunction").expect("a built-in format");
/// let format = Arc::new(FormatDefinition::from_toml(preset.name, preset.toml)?.compile(preset.name)?);
/// let minter = GroupedMinter::new(Arc::clone(&format), PairOrder::Reported);
/// let report = Report::new(UnixTime::from_utc_text("2024-02-01T00:00:00.250Z")?, 25_544, 48_274)?;
/// assert_eq!(format.canonical().to_text(minter.id_of(&report)?), "zwwqlzz-pjjmxmd-lkpvwq");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct GroupedMinter {
    format: Arc<Format>,
    pair_order: PairOrder,
    /// The number that the constant fields of the format add to every id.
    fixed: u128,
    time_stride: u128,
    primary: ObjectField,
    secondary: ObjectField,
}

/// The last microsecond of the year 9999. Responses cannot represent a later time of an anchor.
const ANCHOR_MAX: Tca = Tca(253_402_300_799_999_999);

#[derive(Debug, Clone, Copy)]
struct ObjectField {
    max: u128,
    stride: u128,
}

impl GroupedMinter {
    /// Creates the minter of a format. The format's first field of kind object is for the primary
    /// object, and the second one for the secondary object.
    ///
    /// # Panics
    /// Panics if the rule of the format is not `Grouped`. Only the ids of a grouped format are
    /// made from reports.
    pub fn new(format: Arc<Format>, pair_order: PairOrder) -> GroupedMinter {
        assert_eq!(
            format.rule,
            Rule::Grouped,
            "only a grouped format is minted from reports"
        );
        let fields = format.variants[0].layout.fields();
        let fixed = fields
            .iter()
            .filter_map(|field| field.constant.map(|value| value * field.stride))
            .sum();
        let time = fields.iter().find(|field| field.kind == FieldKind::Time);
        let time_stride = time
            .expect("a grouped format has a time, checked in its definition")
            .stride;
        let object = |field: &Field| ObjectField {
            max: field.max,
            stride: field.stride,
        };
        let mut objects = fields
            .iter()
            .filter(|field| field.kind == FieldKind::Object)
            .map(object);
        let mut next = || {
            objects
                .next()
                .expect("a grouped format has two objects, checked in its definition")
        };
        let (primary, secondary) = (next(), next());
        GroupedMinter {
            pair_order,
            fixed,
            time_stride,
            primary,
            secondary,
            format,
        }
    }

    /// Returns whether the order of the two objects matters.
    pub fn pair_order(&self) -> PairOrder {
        self.pair_order
    }

    /// Returns the id for a report. Reports with the same two objects get the same id if their
    /// times are in the same tick, the unit of time in the format.
    ///
    /// # Errors
    /// Returns [`ReportError`] with the value and the bound if a value does not fit into the
    /// format.
    pub fn id_of(&self, report: &Report) -> Result<u128, ReportError> {
        let ticks = self.ticks_of(report)?;
        let is_swapped = self.is_swapped(report);
        let [first, second] = if is_swapped {
            [Role::Secondary, Role::Primary]
        } else {
            [Role::Primary, Role::Secondary]
        };
        let pair = self.share(report, first, self.primary)?
            + self.share(report, second, self.secondary)?;
        // The sum cannot overflow: every value is at most the maximum of its field, and the layout
        // has room for all maximums together.
        let id = self.fixed + ticks * self.time_stride + pair;
        if id < self.format.mint_below {
            return Ok(id);
        }
        Err(ReportError::IdTooGreat {
            id,
            format: self.format.name.clone(),
            below: self.format.mint_below,
        })
    }

    /// Returns the objects of a report, in the order that the [`PairOrder`] requires.
    pub fn pair_of(&self, report: &Report) -> Pair {
        let pair = Pair {
            primary: report.primary(),
            secondary: report.secondary(),
        };
        if self.is_swapped(report) {
            pair.swapped()
        } else {
            pair
        }
    }

    /// Returns the range of anchors that give `id` to a conjunction of the objects of `report`, or
    /// `None` if the id belongs to other objects or is never minted. Anchors are never later than
    /// the year 9999.
    pub fn anchors_of(&self, id: u128, report: &Report) -> Option<RangeInclusive<Tca>> {
        let parts = self.format.split(id).ok()?;
        let ticks = parts.layout.sum_of(FieldKind::Time, &parts.values)?;
        let begins = self.format.time_of(ticks)?;
        let ends = self.format.time_of(ticks.checked_add(1)?)?;
        let micros = |nanos: i128| i64::try_from(nanos).ok().map(Tca);
        // `first` is the first whole microsecond in the id's tick, and `last` is the last one that
        // responses can represent.
        let first = micros(begins.nanos().checked_add(999)?.div_euclid(1_000))?;
        let last = micros(
            ends.nanos()
                .checked_add(999)?
                .div_euclid(1_000)
                .checked_sub(1)?,
        )?
        .min(ANCHOR_MAX);
        let is_of_report = first <= last && self.id_of(&report.at(first.into())) == Ok(id);
        is_of_report.then_some(first..=last)
    }

    /// Returns the two objects that an id contains, and the range of anchors that give this id to
    /// their conjunction. Returns `None` if the id is never minted.
    pub fn event_of(&self, id: u128) -> Option<(Pair, RangeInclusive<Tca>)> {
        let parts = self.format.split(id).ok()?;
        let of_objects = parts
            .layout
            .fields()
            .iter()
            .zip(&parts.values)
            .filter(|(field, _)| field.kind == FieldKind::Object);
        let objects: Vec<u64> = of_objects
            .map(|(_, value)| u64::try_from(*value).ok())
            .collect::<Option<_>>()?;
        let [primary, secondary] = objects[..] else {
            return None;
        };
        let report = Report::new(parts.time?, primary, secondary).ok()?;
        Some((Pair { primary, secondary }, self.anchors_of(id, &report)?))
    }

    /// Returns the id of the conjunction of these two objects whose anchor is at the time `tca`.
    ///
    /// # Errors
    /// Returns [`ReportError`] for the same reasons as [`id_of`](Self::id_of).
    pub fn id_at(&self, pair: Pair, tca: Tca) -> Result<u128, ReportError> {
        self.id_of(&Report::new(tca.into(), pair.primary, pair.secondary)?)
    }

    /// Returns the id format.
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// Returns the name of the id format.
    pub fn format_name(&self) -> &str {
        &self.format.name
    }

    fn is_swapped(&self, report: &Report) -> bool {
        self.pair_order == PairOrder::Unordered && report.primary() > report.secondary()
    }

    fn ticks_of(&self, report: &Report) -> Result<u128, ReportError> {
        let tca = report.tca();
        let name = || self.format.name.clone();
        let too_late = || ReportError::TcaTooLate {
            tca,
            format: name(),
            ended: self
                .format
                .end()
                .expect("it is not later than a TCA that comes after it"),
        };
        let ticks = self
            .format
            .ticks_at(tca)
            .map_err(|rejection| match rejection {
                Rejection::BeforeEpoch => ReportError::TcaTooEarly {
                    tca,
                    format: name(),
                    begins: self.format.epoch,
                },
                _ => too_late(),
            })?;
        if self.format.end_tick().is_some_and(|end| ticks >= end) {
            return Err(too_late());
        }
        Ok(ticks)
    }

    /// Returns the object's catalogue number times the stride of its field in the id.
    fn share(&self, report: &Report, role: Role, field: ObjectField) -> Result<u128, ReportError> {
        let object = report.object(role);
        if u128::from(object) > field.max {
            let format = self.format.name.clone();
            return Err(ReportError::ObjectTooGreat {
                role,
                object,
                format,
                most: field.max,
            });
        }
        Ok(u128::from(object) * field.stride)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use idmint_core::id::FormatDefinition;
    use idmint_core::time::UnixTime;

    /// Creates a minter for tests. Its format has an object number of 8 bits and then `fields`,
    /// which are TOML tables as in `REST`. `more` is further TOML, such as `mint_below`.
    fn minter(fields: &str, more: &str) -> Result<GroupedMinter, String> {
        let text = format!(
            "summary = ''\nrule = 'grouped'\ntick = '1s'\nepoch = '1970-01-01T00:00:00Z'\nencodings = ['decimal']\n\
             fields = [{{ name = 'a', kind = 'object', bits = 8 }}, {fields}]\n{more}"
        );
        let format = FormatDefinition::from_toml("mine", &text)
            .expect("parses")
            .compile("mine");
        let format = format.map_err(|error| error.to_string())?;
        Ok(GroupedMinter::new(Arc::new(format), PairOrder::Reported))
    }

    const REST: &str = "{ name = 'mark', kind = 'constant', bits = 4, value = 9 }, \
        { name = 't', kind = 'time', bits = 8 }, { name = 'b', kind = 'object', bits = 8 }";

    fn id_of(
        minter: &GroupedMinter,
        seconds: i128,
        primary: u64,
        secondary: u64,
    ) -> Result<u128, ReportError> {
        let tca = UnixTime::from_nanos(seconds * 1_000_000_000);
        minter.id_of(&Report::new(tca, primary, secondary).expect("two objects"))
    }

    #[test]
    fn every_field_stands_at_its_place_whatever_their_order() {
        let minter = minter(REST, "").expect("sound");
        assert_eq!(id_of(&minter, 0x12, 0xab, 0xcd), Ok(0xab9_12cd));
        assert_eq!(id_of(&minter, 255, 255, 254), Ok(0xff9_fffe));
        assert!(matches!(
            id_of(&minter, 256, 1, 2),
            Err(ReportError::TcaTooLate { .. })
        ));
    }

    #[test]
    fn an_anchor_is_never_later_than_the_year_9999() {
        let text = "summary = ''\nrule = 'grouped'\ntick = '1s'\nepoch = '1970-01-01T00:00:00.5Z'\n\
            encodings = ['decimal']\nfields = [{ name = 'a', kind = 'object', bits = 8 }, \
            { name = 't', kind = 'time', bits = 40 }, { name = 'b', kind = 'object', bits = 8 }]";
        let format = FormatDefinition::from_toml("mine", text)
            .expect("parses")
            .compile("mine");
        let format = Arc::new(format.expect("sound"));
        let minter = GroupedMinter::new(format, PairOrder::Reported);
        // The tick of this id ends half a second after the year 9999.
        let tca = UnixTime::from_nanos(253_402_300_799_700_000_000);
        let report = Report::new(tca, 1, 2).expect("two objects");
        let id = minter.id_of(&report).expect("the id of a time in 9999");
        let of_9999 = Tca(253_402_300_799_500_000)..=Tca(253_402_300_799_999_999);
        assert_eq!(minter.anchors_of(id, &report), Some(of_9999));
        let of_next_tick = id + (1 << 8);
        assert_eq!(minter.anchors_of(of_next_tick, &report), None);
        assert_eq!(minter.event_of(of_next_tick), None);
    }

    #[test]
    fn what_is_only_read_is_not_minted() {
        let minter = minter(REST, "mint_below = '1642548'").expect("sound");
        assert_eq!(id_of(&minter, 0x10, 1, 0x33), Ok(1_642_547));
        let error = id_of(&minter, 0x10, 1, 0x34).expect_err("at the bound");
        assert_eq!(
            error.to_string(),
            "tca, primary and secondary would give the id 1642548, but `mine` mints only ids below 1642548"
        );
    }

    #[test]
    fn a_format_that_no_report_can_fill_is_refused() {
        for (fields, named) in [
            (
                "{ name = 't', kind = 'time', bits = 8 }",
                "two of kind object",
            ),
            (
                "{ name = 'b', kind = 'object', bits = 8 }",
                "one field of kind time",
            ),
            (
                "{ name = 't', kind = 'time', bits = 8 }, { name = 'r', kind = 'random', bits = 8 }, \
              { name = 'b', kind = 'object', bits = 8 }",
                "`r` of kind random",
            ),
            (
                "{ name = 't', kind = 'time', bits = 8, scale = 2 }, { name = 'b', kind = 'object', bits = 8 }",
                "scale 2",
            ),
        ] {
            let refusal = minter(fields, "").map(|_| ()).expect_err(named);
            assert!(
                refusal.contains(named) && refusal.contains("rule `grouped`"),
                "{refusal}"
            );
        }
    }
}
