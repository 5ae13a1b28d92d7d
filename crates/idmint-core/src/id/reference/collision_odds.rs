//! The probability that two ids of a random format are equal.

use std::f64::consts::LN_2;

use crate::id::format::{Format, Monotonic, Rule};
use crate::id::layout::FieldKind;

/// The number of ids after which a collision has a given probability, for a random format.
///
/// Ids can be equal only if their times are equal, so the number counts the ids of one tick. With
/// `monotonic = "clock"`, the ids of different parts of a tick differ, so the number counts the ids
/// of one part. In a format without time, the number counts all ids.
///
/// Source: the birthday problem. For n ids drawn from N equally likely ones, p = 1 - exp(-n (n - 1)
/// / 2N). The numbers are rounded to three significant digits.
///
/// ```
/// use idmint_core::id::Format;
///
/// let format = Format::built_in("flax").expect("a built-in format");
/// let odds = format.collision_odds().expect("a random format");
/// assert_eq!((odds.one_in_a_million.as_str(), odds.even.as_str()), ("380000", "316000000"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollisionOdds {
    /// The number of random bits in an id, written as a decimal number such as `74` or `71.5`.
    pub random_bits: String,
    /// The number of ids among which two are equal with a probability of one in a million, written
    /// as a decimal number.
    pub one_in_a_million: String,
    /// The number of ids among which two are equal with a probability of one half, written as a
    /// decimal number.
    pub even: String,
}

impl Format {
    /// Returns the odds of a collision between ids of this format, or `None` if the format is not
    /// random.
    pub fn collision_odds(&self) -> Option<CollisionOdds> {
        if self.rule != Rule::Random {
            return None;
        }
        let fields = self.layout().fields_of(FieldKind::Random);
        // Compute the product as a float, because random fields may have up to 128 bits in total.
        let values: f64 = fields.map(|field| field.max as f64 + 1.0).product();
        // With `monotonic = "clock"`, the 12 most significant random bits hold a part of the time
        // and are not random.
        let values = if self.monotonic == Monotonic::Clock {
            values / Monotonic::PARTS_OF_TICK as f64
        } else {
            values
        };
        let bits = values.log2();
        let random_bits = if bits.fract() == 0.0 {
            format!("{bits:.0}")
        } else {
            format!("{bits:.1}")
        };
        // The chance of a collision is 1 - exp(-x), where x is the first argument of `ids_for`. For
        // a chance of one in a million, x is also one in a million, to seven digits.
        Some(CollisionOdds {
            random_bits,
            one_in_a_million: ids_for(1e-6, values),
            even: ids_for(LN_2, values),
        })
    }
}

/// Solves n (n - 1) / 2N = `exponent` for the number of ids n, where N is `values`: the chance of a
/// collision is then 1 - exp(-`exponent`). At least 2, because a collision needs two ids.
fn ids_for(exponent: f64, values: f64) -> String {
    let count = f64::midpoint((1.0 + 8.0 * values * exponent).sqrt(), 1.0).max(2.0);
    three_digits(format!("{count:.0}"))
}

/// Rounds a number in decimal digits to three significant digits.
fn three_digits(number: String) -> String {
    let Some(zeros) = number.len().checked_sub(3).filter(|zeros| *zeros > 0) else {
        return number;
    };
    let leading: u32 = number[..4].parse().expect("digits");
    format!("{}{}", (leading + 5) / 10, "0".repeat(zeros))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::format::FormatDefinition;
    use crate::id::preset;

    fn odds(fields: &str) -> CollisionOdds {
        let text =
            format!("summary = ''\nrule = 'random'\nfields = [{fields}]\nencodings = ['hex']");
        let format = FormatDefinition::from_toml("custom", &text)
            .expect("TOML")
            .compile("custom")
            .expect("sound");
        format.collision_odds().expect("a random format")
    }

    #[test]
    fn twenty_three_people_share_a_birthday_with_even_odds() {
        let odds = odds("{ name = 'day', kind = 'random', cardinality = 365 }");
        assert_eq!(
            odds,
            CollisionOdds {
                random_bits: "8.5".to_owned(),
                one_in_a_million: "2".to_owned(),
                even: "23".to_owned()
            }
        );
    }

    #[test]
    fn random_fields_count_together() {
        let apart = odds(
            "{ name = 'a', kind = 'random', bits = 60 }, { name = 'b', kind = 'random', bits = 62 }",
        );
        // The well-known figure for random UUIDs is 2.71 x 10^18 ids for even odds.
        assert_eq!(
            (apart.random_bits.as_str(), apart.even.as_str()),
            ("122", "2710000000000000000")
        );
        assert_eq!(odds("{ name = 'a', kind = 'random', bits = 122 }"), apart);
        assert_eq!(preset("snowflake").collision_odds(), None);
        let bits = |name| {
            preset(name)
                .collision_odds()
                .expect("a random format")
                .random_bits
        };
        assert_eq!(
            ["uuid7", "uuid4", "ulid"].map(bits),
            ["62", "122", "80"],
            "of a uuid7 twelve are time"
        );
    }

    #[test]
    fn all_of_128_bits_may_be_random() {
        let widest = odds(
            "{ name = 'a', kind = 'random', bits = 64 }, { name = 'b', kind = 'random', bits = 64 }",
        );
        assert_eq!(
            (widest.random_bits.as_str(), widest.even.as_str()),
            ("128", "21700000000000000000")
        );
    }

    #[test]
    fn numbers_are_rounded_to_three_digits() {
        for (number, rounded) in [
            ("7", "7"),
            ("999", "999"),
            ("9994", "9990"),
            ("9995", "10000"),
            ("123456", "123000"),
        ] {
            assert_eq!(three_digits(number.to_owned()), rounded);
        }
    }
}
