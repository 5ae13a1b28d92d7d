//! Explains a sample of texts in two ways: as ids of a format, and as texts that no known format
//! produced.
//!
//! If the texts are ids of the format, its fields have patterns: the times are close together, the
//! worker numbers are few, and counters start at zero. Writing down these fields then takes fewer
//! bits than writing down texts without a pattern. This file also computes the bits for these rival
//! explanations:
//!
//! | what is written down | texts that it explains |
//! |---|---|
//! | the letters, position by position | dates, prefixed counters, codes, words |
//! | the numbers, somewhere in a span | random numbers, timestamps, the sequence of a database |
//! | the numbers, bit by bit | any other layout |
//! | the fields, with a time of any epoch | the same layout with an unknown epoch |
//! | the time, and any bits after it | a time with random bits |
//! | the fields of another format with constants | ids of the other format in an encoding that it does not have |

use std::sync::Arc;

use super::code_length::{
    bits_of_any_size, bits_of_bits, bits_of_field, bits_of_shares, bits_of_span, bits_of_texts,
    count_each, len_of,
};
use super::column::worker_in;
use crate::id::decoding::{
    BITS_OF_A_LETTER, BITS_OF_OTHER_ENCODING, Match, log2_of_values, to_f64,
};
use crate::id::encoding::{EncodingKind, LetterSet};
use crate::id::format::{Format, Parts};
use crate::id::layout::{Field, FieldKind, Layout};
use crate::id::rejection::Rejection;
use crate::time::{UnixNanos, UnixTime};

/// The cost, in bits, of assuming that the ids have an unknown epoch. The first value is for
/// encodings that can write any number, such as decimal: 4 bits, a probability of 1 in 16. The
/// second value is for all other encodings: 8 bits, a probability of 1 in 256.
const BITS_OF_UNKNOWN_EPOCH: [f64; 2] = [4.0, 8.0];

/// The cost, in bits, of assuming an unknown format that has the time of this format, followed by
/// random bits. 3 bits are a probability of 1 in 8.
const BITS_OF_UNKNOWN_REST: f64 = 3.0;

/// The cost, in bits, of assuming that the texts are ids of a second format, written in an encoding
/// that the second format does not have. 8 bits are a probability of 1 in 256.
const BITS_OF_FOREIGN_ENCODING: f64 = 8.0;

/// A text of the column's sample, and the id of one format and encoding that it stands for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<'t, 'a> {
    pub(super) text: &'t str,
    pub(super) found: Match<'a>,
}

/// The numbers of bits that it takes to write down the texts of a sample, in two ways. In one way,
/// the texts are ids of a format. In the other, they are something else, such as random numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Explanation {
    /// The number of bits that it takes to write down the texts as ids of the format.
    pub(super) bits: f64,
    /// The number of bits of the shortest other description of the texts, for example as random
    /// numbers.
    pub(super) bits_of_rival: f64,
}

/// The fields of all ids in the sample, for one format.
struct Fields<'a> {
    format: &'a Format,
    parts: Vec<(usize, Parts<'a>)>,
    ticks: Vec<u128>,
    workers: Vec<u128>,
}

impl Explanation {
    /// Computes how well a format explains a sample of texts. Each reading is a text read as an id
    /// of the format. There must be at least one reading, and all must have the same format and
    /// encoding. `newest` is the latest time of all lines of the column, if they are read as ids of
    /// the format.
    pub(super) fn of(
        readings: &[Reading<'_, '_>],
        newest: Option<UnixTime>,
        formats: &[Arc<Format>],
        now: UnixNanos,
    ) -> Explanation {
        let (format, encoding) = (readings[0].found.format(), readings[0].found.encoding());
        let is_canonical = readings[0].found.encoding_index() == 0;
        let prefixes = bits_of_prefixes(readings);
        let rarity = f64::from(format.rarity)
            + if is_canonical {
                0.0
            } else {
                BITS_OF_OTHER_ENCODING
            };
        let parts = readings
            .iter()
            .map(|reading| (reading.found.variant_index(), reading.found.parts()));
        let fields = Fields::of(format, parts.collect());
        let below_time = fields.bits();
        let times = fields.times(newest, now);
        let bits = rarity + prefixes + below_time + times.map_or(0.0, |(known, _)| known);

        let numbers: Vec<u128> = readings.iter().map(|reading| reading.found.id()).collect();
        let texts: Vec<&str> = readings.iter().map(|reading| reading.text).collect();
        let letters = texts.iter().fold(LetterSet::default(), |all, text| {
            all.with(LetterSet::of(text.as_bytes()))
        });
        let has_constants = format
            .layouts()
            .all(|layout| layout.field_of(FieldKind::Constant).is_some());
        let is_any_number = matches!(
            encoding.definition().kind,
            EncodingKind::Decimal
                | EncodingKind::Hex
                | EncodingKind::HexPadded
                | EncodingKind::Hashids
                | EncodingKind::Sqids
        );
        let unknown_epoch = times.filter(|_| !has_constants).map(|(_, of_any_epoch)| {
            BITS_OF_UNKNOWN_EPOCH[usize::from(!is_any_number)]
                + prefixes
                + below_time
                + of_any_epoch
        });
        let unknown_rest = times
            .filter(|_| fields.has_claims())
            .map(|(known, _)| BITS_OF_UNKNOWN_REST + prefixes + known + fields.bits_of_any_rest());
        let in_foreign_encoding = formats
            .iter()
            .filter(|other| !have_one_layout(format, other))
            .filter_map(|other| {
                other.variants[0].layout.field_of(FieldKind::Constant)?;
                let parts: Result<_, Rejection> = numbers
                    .iter()
                    .map(|id| Ok((other.variant_at(*id), other.split(*id)?)))
                    .collect();
                let fields = Fields::of(other, parts.ok()?);
                Some(
                    BITS_OF_FOREIGN_ENCODING
                        + prefixes
                        + fields.bits()
                        + fields.times(None, now).map_or(0.0, |(known, _)| known),
                )
            });
        let rivals = [
            Some(bits_of_texts(&texts, letters.usual_count())),
            Some(prefixes + bits_of_numbers(&numbers)),
            Some(
                prefixes + bits_of_bits(&numbers, numbers.iter().max().copied().unwrap_or(0)) + 7.0,
            ),
            unknown_epoch,
            unknown_rest,
        ];
        Explanation {
            bits,
            bits_of_rival: rivals
                .into_iter()
                .flatten()
                .chain(in_foreign_encoding)
                .fold(f64::INFINITY, f64::min),
        }
    }
}

impl<'a> Fields<'a> {
    fn of(format: &'a Format, parts: Vec<(usize, Parts<'a>)>) -> Fields<'a> {
        let ticks = parts
            .iter()
            .filter_map(|(_, parts)| parts.layout.sum_of(FieldKind::Time, &parts.values));
        let workers = parts.iter().filter_map(|(_, parts)| worker_in(parts));
        Fields {
            format,
            ticks: ticks.collect(),
            workers: workers.collect(),
            parts,
        }
    }

    /// Returns the number of bits for the times of all ids, computed in two ways. The first number
    /// assumes that the epoch is known and writes the newest time as its age. The second number
    /// assumes that the newest time may be any value of the time field. Returns `None` for a format
    /// without time.
    ///
    /// `newest` is the newest time of the whole column, which may be later than that of the sample.
    /// With the right epoch, the newest of many ids is usually only a little older than `now`.
    fn times(&self, newest: Option<UnixTime>, now: UnixNanos) -> Option<(f64, f64)> {
        let format = self.format;
        let most = format.variants[0].layout.greatest_of(FieldKind::Time)?;
        let ticks_at = |time: UnixTime| Some(format.tick?.count(format.epoch, time));
        let of_sample = i128::try_from(*self.ticks.iter().max()?).ok();
        let newest = of_sample.max(newest.and_then(ticks_at));
        let now = ticks_at(now.into())?;
        let age = newest.map_or(u128::MAX, |newest| newest.abs_diff(now));
        let [known, any] = [bits_of_any_size(age, most), log2_of_values(most)]
            .map(|newest| bits_of_span(&self.ticks, newest));
        Some((known, any))
    }

    /// Returns the bits that it takes to write down all ids without their times: the variant of
    /// each id, and its fields. Few bits mean that the fields have a pattern.
    fn bits(&self) -> f64 {
        let variants = count_each(self.parts.iter().map(|(variant, _)| *variant));
        let of_variants = bits_of_shares(variants.values().copied());
        let of_fields = variants.keys().map(|variant| {
            let with_layout: Vec<usize> = (0..self.parts.len())
                .filter(|at| self.parts[*at].0 == *variant)
                .collect();
            let of_those = |all: &[u128]| -> Vec<u128> {
                with_layout
                    .iter()
                    .filter_map(|at| all.get(*at))
                    .copied()
                    .collect()
            };
            let [ticks, workers] = [&self.ticks, &self.workers].map(|keys| of_those(keys));
            let fields = self.parts[with_layout[0]].1.layout.fields();
            let numbers = numbers_in(fields).into_iter();
            numbers
                .map(|places| {
                    let value = |at: &usize| {
                        let values = &self.parts[*at].1.values;
                        places.iter().fold(0, |number, place| {
                            number * (fields[*place].max + 1) + values[*place]
                        })
                    };
                    let values: Vec<u128> = with_layout.iter().map(value).collect();
                    let most = places.iter().fold(0, |most, place| {
                        most * (fields[*place].max + 1) + fields[*place].max
                    });
                    // The values of one worker may be close together, so group fields by worker
                    // number. Do not group the worker number itself, because its single value in
                    // each group would look like a pattern.
                    let is_origin = places
                        .iter()
                        .any(|place| fields[*place].kind == FieldKind::Worker);
                    let keys = [Some(&ticks), Some(&workers).filter(|_| !is_origin)];
                    let keys: Vec<&[u128]> = keys
                        .into_iter()
                        .flatten()
                        .map(Vec::as_slice)
                        .filter(|keys| !keys.is_empty())
                        .collect();
                    bits_of_field(&values, most, &keys)
                })
                .sum::<f64>()
        });
        of_variants + of_fields.sum::<f64>()
    }

    /// Returns the number of bits that it takes to write down the fields of all ids, except the
    /// time, as random values.
    fn bits_of_any_rest(&self) -> f64 {
        let of_one = |(_, parts): &(usize, Parts<'_>)| {
            let others = parts
                .layout
                .fields()
                .iter()
                .filter(|field| field.kind != FieldKind::Time);
            others.map(|field| log2_of_values(field.max)).sum::<f64>()
        };
        self.parts.iter().map(of_one).sum()
    }

    /// `true` if the format has a field in which its ids should show a pattern, such as few worker
    /// numbers. The time, random bits and checksums do not count.
    fn has_claims(&self) -> bool {
        let is_claim = |kind| {
            !matches!(
                kind,
                FieldKind::Time | FieldKind::Random | FieldKind::Checksum
            )
        };
        self.parts.iter().any(|(_, parts)| {
            parts
                .layout
                .fields()
                .iter()
                .any(|field| is_claim(field.kind))
        })
    }
}

/// Groups the fields of an id into numbers that are written down separately, without constants and
/// the time. Each number is a list of field indices.
///
/// Adjacent worker and shard fields form one number, because the program that minted the ids may
/// have divided their bits at another position.
fn numbers_in(fields: &[Field]) -> Vec<Vec<usize>> {
    let is_origin = |field: &Field| matches!(field.kind, FieldKind::Worker | FieldKind::Shard);
    let mut numbers: Vec<Vec<usize>> = Vec::new();
    for (place, field) in fields.iter().enumerate() {
        match numbers.last_mut() {
            _ if field.constant.is_some() || field.kind == FieldKind::Time => {}
            Some(number)
                if is_origin(field)
                    && number.last() == Some(&(place.wrapping_sub(1)))
                    && is_origin(&fields[place - 1]) =>
            {
                number.push(place);
            }
            _ => numbers.push(vec![place]),
        }
    }
    numbers
}

/// `true` if both formats have the same fields at the same positions. The names of the fields may
/// differ.
fn have_one_layout(one: &Format, other: &Format) -> bool {
    let fields = |format: &Format| -> Vec<_> {
        let fields = format.layouts().flat_map(Layout::fields);
        fields
            .map(|field| (field.kind, field.max, field.stride, field.constant))
            .collect()
    };
    fields(one) == fields(other)
}

fn bits_of_prefixes(readings: &[Reading<'_, '_>]) -> f64 {
    let prefixes = count_each(
        readings
            .iter()
            .map(|reading| &reading.text[..reading.found.prefix_len()]),
    );
    let letters = prefixes.keys().map(|prefix| prefix.len()).sum::<usize>();
    BITS_OF_A_LETTER * to_f64(letters as u128) + bits_of_shares(prefixes.values().copied())
}

/// Returns the number of bits that are needed to describe these numbers. Each number is described
/// by its distance from the smallest number, in steps. The step is the greatest common divisor of
/// the distances, such as 20 for the numbers 5, 25 and 65.
fn bits_of_numbers(numbers: &[u128]) -> f64 {
    let least = numbers.iter().min().copied().unwrap_or(0);
    let most = numbers.iter().max().copied().unwrap_or(0);
    let step = numbers
        .iter()
        .map(|number| number - least)
        .fold(0, gcd)
        .max(1);
    let steps: Vec<u128> = numbers
        .iter()
        .map(|number| (number - least) / step)
        .collect();
    let of_step = if step == 1 {
        1.0
    } else {
        1.0 + 2.0 * log2_of_values(step)
    };
    // The greatest number takes 7 bits for its length, which is at most 128 bits, plus its own
    // bits.
    bits_of_span(&steps, 7.0 + log2_of_values(most)) + of_step
}

fn gcd(one: u128, other: u128) -> u128 {
    if other == 0 {
        one
    } else {
        gcd(other, one % other)
    }
}

/// Returns the number of bits that it takes to write down texts of random letters, in which every
/// letter is written by itself.
pub(super) fn bits_of_any_texts<'a>(texts: impl Iterator<Item = &'a str>) -> f64 {
    let bits = |text: &str| {
        let letters = f64::from(LetterSet::of(text.as_bytes()).usual_count().max(2));
        len_of(text.as_bytes()) * letters.log2()
    };
    texts.map(bits).sum()
}
