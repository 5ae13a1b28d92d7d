//! The fewest bits that an id of a format has, told by its number alone, before it is taken apart.

use std::ops::RangeInclusive;

use super::evidence::TimeWeight;
use super::packed_layout::Constants;
use crate::id::format::Format;
use crate::id::layout::{FieldKind, Layout};

/// The fewest bits that ids of a format have at some moment.
///
/// Where the time leads, an id is recent, past or not yet possible by comparing numbers; and constants of whole bits are
/// compared at once. So of the formats that share a decimal number most need not be taken apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeastBits {
    of_recent: f64,
    of_past: f64,
    of_implausible: f64,
    /// The first id that is recent.
    recent_from: u128,
    /// The first id that is not plausible.
    implausible_from: u128,
    constants: Constants,
}

impl LeastBits {
    /// Of a format whose fields beside the time have so few bits, and these alike.
    pub(super) fn new(
        format: &Format,
        of_fields: f64,
        constants: Constants,
        time: Option<TimeWeight>,
    ) -> LeastBits {
        let least = of_fields + time.map_or(0.0, TimeWeight::least);
        let any = LeastBits {
            of_recent: least,
            of_past: least,
            of_implausible: least,
            recent_from: 0,
            implausible_from: u128::MAX,
            constants,
        };
        let Some((time, stride)) = time.zip(time_stride(format)) else {
            return any;
        };
        LeastBits {
            of_recent: of_fields + time.bits_of_recent,
            of_past: of_fields + time.bits_of_past,
            of_implausible: of_fields + time.bits_of_implausible,
            recent_from: time.recent_from.saturating_mul(stride),
            implausible_from: time
                .last
                .map_or(0, |last| (last + 1).saturating_mul(stride)),
            ..any
        }
    }

    /// Of any of these numbers.
    #[inline]
    pub(super) fn of_any(&self, numbers: &RangeInclusive<u128>) -> f64 {
        let (least, greatest) = (*numbers.start(), *numbers.end());
        let has_recent = greatest >= self.recent_from && least < self.implausible_from;
        let of_recent = if has_recent {
            self.of_recent
        } else {
            f64::INFINITY
        };
        let of_past = if least < self.recent_from {
            self.of_past
        } else {
            f64::INFINITY
        };
        let of_implausible = if greatest >= self.implausible_from {
            self.of_implausible
        } else {
            f64::INFINITY
        };
        of_recent.min(of_past).min(of_implausible)
    }

    /// Of this id; infinitely many if it is none.
    #[inline]
    pub(super) fn of(&self, id: u128) -> f64 {
        match id {
            _ if !self.constants.are_in(id) => f64::INFINITY,
            _ if id >= self.implausible_from => self.of_implausible,
            _ if id >= self.recent_from => self.of_recent,
            _ => self.of_past,
        }
    }
}

/// What a tick counts in ids, if ids are in the order of their times and nothing stands above those.
fn time_stride(format: &Format) -> Option<u128> {
    let stride_of = |layout: &Layout| {
        let times = layout
            .fields()
            .iter()
            .filter(|field| field.kind == FieldKind::Time)
            .count();
        let first = layout
            .fields()
            .first()
            .filter(|first| first.kind == FieldKind::Time && first.scale == 1 && times == 1);
        first.map(|first| first.stride)
    };
    let first = stride_of(&format.variants[0].layout)?;
    format
        .variants
        .iter()
        .all(|variant| stride_of(&variant.layout) == Some(first))
        .then_some(first)
}
