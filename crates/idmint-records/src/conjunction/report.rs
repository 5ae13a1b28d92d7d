//! A report of a close approach, and the reasons why a report gets no id.

use std::fmt;

use idmint_core::id::Rejection;
use idmint_core::named;
use idmint_core::time::{UnixTime, UtcTextError};

/// A report of a close approach: the time and the two objects.
///
/// The time of closest approach (TCA) is rounded down to whole microseconds. The two catalogue
/// numbers are different, and neither is 0. [`GroupedMinter::id_of`](super::GroupedMinter::id_of)
/// checks whether the values fit a format.
///
/// ```
/// use idmint_records::conjunction::Report;
/// use idmint_core::time::UnixTime;
///
/// let report = Report::new(UnixTime::from_utc_text("2024-032T00:00:00.2500009")?, 25_544, 48_274)?;
/// assert_eq!(report.tca().to_text(9).as_deref(), Some("2024-02-01T00:00:00.250000000Z"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Report {
    tca: UnixTime,
    primary: u64,
    secondary: u64,
}

named! {
    /// The position of an object in a report.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Role {
        /// The object that the report names first.
        Primary = "primary",
        /// The object that the report names second.
        Secondary = "secondary",
    }
}

/// The reason why a report gets no id. The message begins with the name of the invalid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// The text of the time is not a valid time.
    #[error("tca: {0}")]
    TcaUnreadable(UtcTextError),
    /// The catalogue number of an object is 0.
    #[error("{role} is 0, but must be a catalogue number from 1 up")]
    ObjectZero {
        /// The position of the object in the report.
        role: Role,
    },
    /// The report names the same object twice.
    #[error("secondary is {object}, the same as primary, but must be another object")]
    SameObject {
        /// The catalogue number of the object.
        object: u64,
    },
    /// The catalogue number of an object, such as a satellite, is too great for the id format.
    #[error(
        "{role} is {object}, but must be a catalogue number from 1 to {most} in format `{format}`"
    )]
    ObjectTooGreat {
        /// The position of the object in the report.
        role: Role,
        /// The catalogue number of the object.
        object: u64,
        /// The name of the id format.
        format: String,
        /// The greatest catalogue number that fits the format.
        most: u128,
    },
    /// The time of closest approach is before the epoch of the id format.
    #[error("tca is {tca}, but must not be before {begins}, when `{format}` begins")]
    TcaTooEarly {
        /// The time of closest approach in the report.
        tca: UnixTime,
        /// The name of the id format.
        format: String,
        /// The epoch of the format, which is the first instant that an id of the format can
        /// represent.
        begins: UnixTime,
    },
    /// The time of closest approach is after the last tick of the id format.
    #[error("tca is {tca}, but must be before {ended}, when `{format}` ends")]
    TcaTooLate {
        /// The time of closest approach in the report.
        tca: UnixTime,
        /// The name of the id format.
        format: String,
        /// The first instant that the format cannot represent or mint.
        ended: UnixTime,
    },
    /// The id for this report of a close approach would be at or above `mint_below`, the bound
    /// below which the format mints ids.
    #[error(
        "tca, primary and secondary would give the id {id}, but `{format}` mints only ids below {below}"
    )]
    IdTooGreat {
        /// The id that the report would get.
        id: u128,
        /// The name of the id format.
        format: String,
        /// The bound `mint_below` of the format. Only smaller ids are minted.
        below: u128,
    },
}

impl Report {
    /// Creates a report. The time `tca` is rounded down to whole microseconds.
    ///
    /// # Errors
    /// Returns [`ReportError::ObjectZero`] if a catalogue number is 0, and
    /// [`ReportError::SameObject`] if both are equal.
    pub fn new(tca: UnixTime, primary: u64, secondary: u64) -> Result<Report, ReportError> {
        for (role, object) in [(Role::Primary, primary), (Role::Secondary, secondary)] {
            if object == 0 {
                return Err(ReportError::ObjectZero { role });
            }
        }
        if primary == secondary {
            return Err(ReportError::SameObject { object: primary });
        }
        Ok(Report {
            tca: cut_to_micros(tca),
            primary,
            secondary,
        })
    }

    /// Creates a report from the text of a time. The text is in the calendar or day-of-year form of
    /// CCSDS, or in RFC 3339.
    ///
    /// # Errors
    /// Returns [`ReportError::TcaUnreadable`] if the text is not a valid time. Otherwise returns
    /// the errors of [`Report::new`].
    pub fn from_text(tca: &str, primary: u64, secondary: u64) -> Result<Report, ReportError> {
        Report::new(
            UnixTime::from_utc_text(tca).map_err(ReportError::TcaUnreadable)?,
            primary,
            secondary,
        )
    }

    /// Returns this report with another time of closest approach. `tca` is rounded down to whole
    /// microseconds.
    #[must_use]
    pub fn at(self, tca: UnixTime) -> Report {
        Report {
            tca: cut_to_micros(tca),
            ..self
        }
    }

    /// Returns the time of closest approach, in whole microseconds.
    pub fn tca(&self) -> UnixTime {
        self.tca
    }

    /// Returns the catalogue number of the object in this position.
    pub fn object(&self, role: Role) -> u64 {
        match role {
            Role::Primary => self.primary,
            Role::Secondary => self.secondary,
        }
    }

    /// Returns the catalogue number of the object that the report names first.
    pub fn primary(&self) -> u64 {
        self.primary
    }

    /// Returns the catalogue number of the object that the report names second.
    pub fn secondary(&self) -> u64 {
        self.secondary
    }
}

fn cut_to_micros(time: UnixTime) -> UnixTime {
    UnixTime::from_nanos(time.nanos().div_euclid(1_000) * 1_000)
}

impl ReportError {
    /// Returns the reason as one word, which programs can match on.
    pub fn reason(&self) -> &'static str {
        match self {
            ReportError::TcaUnreadable(_) => Rejection::BadTimestamp.code(),
            ReportError::ObjectZero { .. } | ReportError::ObjectTooGreat { .. } => {
                Rejection::OutOfRange.code()
            }
            ReportError::SameObject { .. } => "same_object",
            ReportError::TcaTooEarly { .. } => Rejection::BeforeEpoch.code(),
            ReportError::TcaTooLate { .. } | ReportError::IdTooGreat { .. } => {
                Rejection::Overflow.code()
            }
        }
    }

    /// Returns the bound that a value of the report violates, such as the greatest catalogue number
    /// that fits the format. Returns `None` if the error is not about a bound.
    pub fn limit(&self) -> Option<String> {
        match self {
            ReportError::ObjectZero { .. } => Some("1".to_owned()),
            ReportError::TcaUnreadable(_) | ReportError::SameObject { .. } => None,
            ReportError::ObjectTooGreat { most, .. } => Some(most.to_string()),
            ReportError::TcaTooEarly { begins, .. } => Some(begins.to_string()),
            ReportError::TcaTooLate { ended, .. } => Some(ended.to_string()),
            ReportError::IdTooGreat { below, .. } => Some(below.to_string()),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_cut_to_microseconds_before_1970_as_well() {
        for (nanos, cut) in [
            (1_999, 1_000),
            (1_000, 1_000),
            (999, 0),
            (0, 0),
            (-1, -1_000),
            (-1_000, -1_000),
        ] {
            let report = Report::new(UnixTime::from_nanos(nanos), 1, 2).expect("two objects");
            assert_eq!(report.tca().nanos(), cut, "{nanos}");
        }
    }

    #[test]
    fn no_object_and_one_object_twice_are_refused() {
        let refused =
            |primary, secondary| Report::new(UnixTime::EPOCH, primary, secondary).map(|_| ());
        assert_eq!(
            refused(0, 2),
            Err(ReportError::ObjectZero {
                role: Role::Primary
            })
        );
        assert_eq!(
            refused(2, 0),
            Err(ReportError::ObjectZero {
                role: Role::Secondary
            })
        );
        assert_eq!(
            refused(0, 0),
            Err(ReportError::ObjectZero {
                role: Role::Primary
            })
        );
        let same = refused(25_544, 25_544).expect_err("one object");
        assert_eq!(
            same.to_string(),
            "secondary is 25544, the same as primary, but must be another object"
        );
    }
}
