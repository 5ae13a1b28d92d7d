//! A lower bound for the evidence against reading a number as an id of a format. Computing the
//! bound is fast, because the number is not split into fields.

use std::ops::RangeInclusive;

use super::evidence::TimeWeight;
use super::packed_layout::Constants;
use crate::id::format::Format;
use crate::id::layout::{FieldKind, Layout};

/// Lower bounds, in bits, for the evidence against the ids of a format at one moment. Ids with a
/// recent, a past and an implausible time have separate bounds.
///
/// If the time is the leading field, comparing numbers shows whether an id is recent, past or
/// implausible. Constants that fill whole bits are compared in one step. Most formats that could
/// read a decimal number can therefore be ruled out without splitting the number into fields.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeastBits {
    of_recent: f64,
    of_past: f64,
    of_implausible: f64,
    /// The smallest id with a plausible time.
    plausible_from: u128,
    /// The smallest id with a recent time.
    recent_from: u128,
    /// The smallest id with a time too far in the future to be plausible.
    implausible_from: u128,
    constants: Constants,
}

impl LeastBits {
    /// Creates the lower bounds for one format. `of_fields` is the evidence, in bits, against the
    /// likeliest id of the format, not counting the time. `constants` are the bits with the same
    /// value in every id.
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
            plausible_from: 0,
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
            plausible_from: time.first.saturating_mul(stride),
            recent_from: time.recent_from.saturating_mul(stride),
            implausible_from: time
                .last
                .map_or(0, |last| (last + 1).saturating_mul(stride)),
            ..any
        }
    }

    /// Returns a lower bound, in bits, for the improbability of every number in the range `numbers`
    /// as an id of the format.
    #[inline]
    pub(super) fn of_any(&self, numbers: &RangeInclusive<u128>) -> f64 {
        let (least, greatest) = (*numbers.start(), *numbers.end());
        let has_recent = greatest >= self.recent_from && least < self.implausible_from;
        let has_past = greatest >= self.plausible_from && least < self.recent_from;
        let has_implausible = greatest >= self.implausible_from || least < self.plausible_from;
        let of = |is_there, bits| if is_there { bits } else { f64::INFINITY };
        of(has_recent, self.of_recent)
            .min(of(has_past, self.of_past))
            .min(of(has_implausible, self.of_implausible))
    }

    /// Returns a lower bound, in bits, for how improbable `id` is as an id of the format. For
    /// example, 10 bits mean 1 in 1024. Returns infinity if one of the bits in `constants` has
    /// another value in `id`.
    #[inline]
    pub(super) fn of(&self, id: u128) -> f64 {
        match id {
            _ if !self.constants.are_in(id) => f64::INFINITY,
            _ if id >= self.implausible_from || id < self.plausible_from => self.of_implausible,
            _ if id >= self.recent_from => self.of_recent,
            _ => self.of_past,
        }
    }
}

/// Returns the amount that one tick adds to an id. Returns `None` unless every layout begins with
/// its only time field, that field counts single ticks, and all layouts agree on the amount.
fn time_stride(format: &Format) -> Option<u128> {
    let stride_of = |layout: &Layout| {
        let times = layout.fields_of(FieldKind::Time).count();
        let first = layout.fields().first();
        let first =
            first.filter(|first| first.kind == FieldKind::Time && first.scale == 1 && times == 1);
        first.map(|first| first.stride)
    };
    let first = stride_of(format.layout())?;
    let mut strides = format.layouts().map(stride_of);
    strides.all(|stride| stride == Some(first)).then_some(first)
}
