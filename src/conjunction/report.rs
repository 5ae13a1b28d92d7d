//! A report of a conjunction, and why it gets no id.

use std::fmt;

use crate::id::Rejection;
use crate::time::{UnixTime, UtcTextError};

/// Two objects that come close to each other, and when.
///
/// Shape: the time of closest approach (TCA) in whole microseconds, rounded down; two catalogue numbers, neither of them
/// 0, and not the same. Whether they fit a format, [`GroupedMinter::id_of`](super::GroupedMinter::id_of) checks.
///
/// ```
/// use idmint::conjunction::Report;
/// use idmint::time::UnixTime;
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

/// Which of the two objects of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The one reported first.
    Primary,
    /// The other.
    Secondary,
}

/// A report that gets no id. The message begins with the name of what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// A time that cannot be read.
    #[error("tca: {0}")]
    TcaUnreadable(UtcTextError),
    /// An object without a number.
    #[error("{role} is 0, it must be a catalogue number from 1 up")]
    ObjectZero {
        /// The role of the object.
        role: Role,
    },
    /// One object twice.
    #[error("primary and secondary are both {object}, they must be two objects")]
    SameObject {
        /// Its number.
        object: u64,
    },
    /// A number that the format has no room for.
    #[error("{role} is {object}, `{format}` has catalogue numbers from 1 to {most}")]
    ObjectTooGreat {
        /// The role of the object.
        role: Role,
        /// Its number.
        object: u64,
        /// The format.
        format: String,
        /// The greatest number it has room for.
        most: u128,
    },
    /// A time before the format begins.
    #[error("tca is {tca}, `{format}` begins at {begins}")]
    TcaTooEarly {
        /// The reported time.
        tca: UnixTime,
        /// The format.
        format: String,
        /// Its epoch.
        begins: UnixTime,
    },
    /// A time after the last tick of the format.
    #[error("tca is {tca}, `{format}` ended at {ended}")]
    TcaTooLate {
        /// The reported time.
        tca: UnixTime,
        /// The format.
        format: String,
        /// The first instant it cannot express, or cannot mint.
        ended: UnixTime,
    },
    /// An id that is read and not minted.
    #[error("tca, primary and secondary make {id}, `{format}` mints ids below {below}")]
    IdTooGreat {
        /// What it would be.
        id: u128,
        /// The format.
        format: String,
        /// Its bound `mint_below`.
        below: u128,
    },
}

impl Report {
    /// A report of an instant, which is cut to microseconds, and two objects.
    ///
    /// # Errors
    /// [`ReportError::ObjectZero`], [`ReportError::SameObject`].
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

    /// A report whose time is in the calendar or day-of-year form of CCSDS, or in RFC 3339.
    ///
    /// # Errors
    /// [`ReportError::TcaUnreadable`], and those of [`Report::new`].
    pub fn from_text(tca: &str, primary: u64, secondary: u64) -> Result<Report, ReportError> {
        Report::new(
            UnixTime::from_utc_text(tca).map_err(ReportError::TcaUnreadable)?,
            primary,
            secondary,
        )
    }

    /// The report of the same objects at another time, which is cut to microseconds.
    #[must_use]
    pub fn at(self, tca: UnixTime) -> Report {
        Report {
            tca: cut_to_micros(tca),
            ..self
        }
    }

    /// The time of closest approach, in whole microseconds.
    pub fn tca(&self) -> UnixTime {
        self.tca
    }

    /// The number of the object of that role.
    pub fn object(&self, role: Role) -> u64 {
        match role {
            Role::Primary => self.primary,
            Role::Secondary => self.secondary,
        }
    }

    /// The number of the object reported first.
    pub fn primary(&self) -> u64 {
        self.primary
    }

    /// The number of the other object.
    pub fn secondary(&self) -> u64 {
        self.secondary
    }
}

fn cut_to_micros(time: UnixTime) -> UnixTime {
    UnixTime::from_nanos(time.nanos().div_euclid(1_000) * 1_000)
}

impl ReportError {
    /// Why, as one word a program can match on.
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

    /// The bound that was broken, if there is one.
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

impl Role {
    /// The role as it is written in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Primary => "primary",
            Role::Secondary => "secondary",
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
            "primary and secondary are both 25544, they must be two objects"
        );
    }
}
