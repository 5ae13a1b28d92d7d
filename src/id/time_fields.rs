//! Which fields of an id carry its time, and whether a later time is a greater id.

use super::field::FieldKind;
use super::format::Format;
use super::layout::Layout;

/// A field that carries the time, or a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeField {
    /// Its place in the layout.
    pub(super) at: usize,
    /// Its greatest value.
    pub(super) max: u128,
    /// How many ticks one unit of it stands for.
    pub(super) scale: u128,
}

impl TimeField {
    /// What the field holds in an id of this tick.
    pub(super) fn value(&self, ticks: u128) -> u128 {
        ticks / self.scale % (self.max + 1)
    }
}

impl Format {
    /// The fields that carry the time, most significant in the id first; none for a format without time.
    ///
    /// What one unit of a field adds to the time is asked of [`Format::split`], so that the two cannot disagree.
    pub(super) fn time_fields(&self) -> Vec<TimeField> {
        let layout = &self.variants[0].layout;
        let fields = layout.fields().iter().enumerate();
        let of_time = fields.filter(|(_, field)| field.kind == FieldKind::Time);
        let scaled = of_time.filter_map(|(at, field)| {
            let scale = self.ticks_of_one(layout, at)?;
            Some(TimeField { at, max: field.max, scale })
        });
        scaled.filter(|field| field.scale > 0).collect()
    }

    /// The same where time leads: nothing but constants stands above and between them, so a later tick is a greater id.
    pub(super) fn leading_time_fields(&self) -> Option<Vec<TimeField>> {
        let of_time = self.time_fields();
        let fields = self.variants[0].layout.fields().iter();
        let varying = fields.enumerate().filter(|(_, field)| field.kind != FieldKind::Constant).map(|(at, _)| at);
        let lead = varying.take(of_time.len()).eq(of_time.iter().map(|field| field.at));
        let mut scale = Some(1);
        let descend = of_time.iter().rev().all(|field| {
            let fits = scale == Some(field.scale);
            scale = field.scale.checked_mul(field.max + 1);
            fits
        });
        (lead && descend && !of_time.is_empty()).then_some(of_time)
    }

    /// The ticks of an id in which this field is one and every other is zero, or what it must be.
    fn ticks_of_one(&self, layout: &Layout, at: usize) -> Option<u128> {
        let mut values: Vec<u128> = layout.fields().iter().map(|field| field.constant.unwrap_or(0)).collect();
        values[at] = 1;
        let time = self.split(layout.pack(&values).ok()?).ok()?.time?;
        u128::try_from(self.tick?.count(self.epoch, time)).ok()
    }
}

/// The greatest tick that these fields hold.
pub(super) fn greatest_tick(fields: &[TimeField]) -> u128 {
    fields.iter().map(|field| field.max * field.scale).sum()
}
