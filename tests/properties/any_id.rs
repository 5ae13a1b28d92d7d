//! Ids drawn for tests that need any.

use idmint::id::Format;
use rand::RngExt;
use rand::rngs::StdRng;

/// An id of any layout of the format, each field anywhere in its range or at an end of it.
pub(crate) fn any_id(format: &Format, random: &mut StdRng) -> u128 {
    let variant = &format.variants[random.random_range(0..format.variants.len())];
    let fields = variant.layout.fields().iter();
    let values: Vec<u128> = fields
        .map(|field| match (field.constant, random.random_range(0..4)) {
            (Some(constant), _) => constant,
            (None, 0) => 0,
            (None, 1) => field.max,
            (None, _) => random.random_range(0..=field.max),
        })
        .collect();
    variant.layout.pack(&values).unwrap()
}
