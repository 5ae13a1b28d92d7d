//! Random ids, for tests that need an id but not a particular one.

use idmint_core::id::Format;
use rand::RngExt;
use rand::rngs::StdRng;

/// Returns a random id in any layout of the format. Each field has a random value, or the least or
/// greatest value that it can have.
pub fn any_id(format: &Format, random: &mut StdRng) -> u128 {
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
