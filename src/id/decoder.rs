//! Reading an id whose format is not known: every format and every spelling is tried, and the readings are ranked.

use std::sync::Arc;

use super::encoding::Encoding;
use super::evidence::{OwnNumbers, TimeWeight, Weights, bits_of_text};
use super::field::FieldKind;
use super::format::{Format, Parts};
use super::layout::Layout;
use super::near_texts::near_texts;
use super::rejection::Rejection;
use super::spelling_groups::{Member, SpellingGroups};
use crate::time::UnixNanos;

/// A reading that has not so many bits more of evidence than the next one leaves a doubt.
const AMBIGUOUS_BITS: f64 = 4.0;

/// Tries every format and spelling. Strict: a reading counts only if it spells back to exactly the same text.
///
/// ```
/// use std::sync::Arc;
/// use idmint::id::{Decoder, FormatDefinition, PRESETS, Pin, Rejection};
/// use idmint::time::UnixNanos;
///
/// let payment = PRESETS.iter().find(|preset| preset.name == "payment").expect("a built-in format");
/// let format = FormatDefinition::from_toml(payment.name, payment.toml)?.compile(payment.name)?;
/// let decoder = Decoder::new(vec![Arc::new(format)]);
/// let decoder = decoder.at(UnixNanos::from_seconds(1_800_000_000));
///
/// let decoded = decoder.decode("1I9ZC1002", Pin::default());
/// assert_eq!(decoded.matches[0].encoding().name(), "base36");
/// assert_eq!(decoded.matches[0].parts().values, [91_164_961, 0, 2]);
///
/// let decoded = decoder.decode("1I9ZC1002", Pin { encoding: Some("decimal"), ..Pin::default() });
/// assert_eq!(decoded.rejected[0].1, Rejection::BadAlphabet);
/// assert_eq!(decoder.did_you_mean(" 1i9zc1002", Pin::default()), ["1I9ZC1002"]);
/// # Ok::<(), idmint::id::FormatError>(())
/// ```
#[derive(Debug)]
pub struct Decoder {
    formats: Vec<Arc<Format>>,
    groups: SpellingGroups,
    weights: Vec<Weights>,
}

/// A decoder at a moment, which decides what times are plausible. Good for as many texts as come at once.
#[derive(Debug)]
pub struct DecoderAt<'a> {
    decoder: &'a Decoder,
    times: Vec<Option<TimeWeight>>,
    /// The fewest bits that an id of each format has.
    least_bits: Vec<f64>,
}

/// Which formats and spellings to try.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pin<'a> {
    /// Only this format.
    pub format: Option<&'a str>,
    /// Only spellings of this name.
    pub encoding: Option<&'a str>,
}

/// What a text can be.
#[derive(Debug, Default)]
pub struct Decoded<'a> {
    /// Every reading, the one with the most evidence first; equal ones in the order of the formats and their encodings.
    pub matches: Vec<Match<'a>>,
    /// The formats that have no reading, each with the reason of the spelling that came nearest.
    pub rejected: Vec<(&'a Format, Rejection)>,
}

/// One reading of a text: a format and a spelling.
#[derive(Debug, Clone, Copy)]
pub struct Match<'a> {
    format: &'a Format,
    encoding: usize,
    id: u128,
    evidence_bits: f64,
    is_plausible: bool,
}

/// A match by the positions of its format and encoding.
#[derive(Debug, Clone, Copy)]
struct Reading {
    format: usize,
    encoding: usize,
    id: u128,
    evidence_bits: f64,
    is_plausible: bool,
}

impl Pin<'_> {
    fn wants(&self, format: &Format, encoding: &Encoding) -> bool {
        self.format.is_none_or(|name| name == format.name) && self.encoding.is_none_or(|name| name == encoding.name())
    }
}

impl Decoder {
    /// A decoder of these formats, of which the first wins where the evidence is the same.
    pub fn new(formats: Vec<Arc<Format>>) -> Decoder {
        Decoder::knowing(formats, &OwnNumbers::default())
    }

    /// The same where it is known what is minted with: ids with other numbers are less likely.
    pub fn knowing(formats: Vec<Arc<Format>>, own: &OwnNumbers) -> Decoder {
        let weights = formats.iter().map(|format| Weights::new(format, own)).collect();
        Decoder { groups: SpellingGroups::of(&formats), weights, formats }
    }

    /// The formats it tries, in order.
    pub fn formats(&self) -> &[Arc<Format>] {
        &self.formats
    }

    /// The decoder at this moment.
    pub fn at(&self, now: UnixNanos) -> DecoderAt<'_> {
        let times: Vec<_> = self.formats.iter().map(|format| TimeWeight::at(format, now)).collect();
        let of_fields = self.weights.iter().map(Weights::least);
        let least_bits = of_fields.zip(&times).map(|(bits, time)| bits + time.map_or(0.0, TimeWeight::least)).collect();
        DecoderAt { decoder: self, times, least_bits }
    }
}

impl<'a> DecoderAt<'a> {
    /// Every reading of `text` that spells back to exactly the same text, and for the other formats why there is none.
    pub fn decode(&self, text: &str, pin: Pin<'_>) -> Decoded<'a> {
        let formats = &self.decoder.formats;
        let mut readings = Vec::new();
        let mut nearest: Vec<Option<Rejection>> = vec![None; formats.len()];
        let text_bits = bits_of_text(text);
        for group in self.decoder.groups.all() {
            // Not before a format is wanted, then once for all of them.
            let mut number = None;
            for member in group.members().iter().filter(|member| pin.wants(&formats[member.format], member.of(formats)))
            {
                let number = *number.get_or_insert_with(|| member.of(formats).read_unbounded(text));
                match number.and_then(|id| self.reading(*member, id, text_bits)) {
                    Ok(reading) => readings.push(reading),
                    Err(why) => {
                        let before = nearest[member.format].into_iter();
                        nearest[member.format] = before.chain([why]).max_by_key(|why| why.nearness());
                    }
                }
            }
        }
        for reading in &readings {
            nearest[reading.format] = None;
        }
        readings.sort_by(Reading::rank);
        let rejected = formats.iter().zip(nearest).filter_map(|(format, why)| Some((&**format, why?)));
        Decoded {
            rejected: rejected.collect(),
            matches: readings.iter().map(|reading| self.match_of(reading)).collect(),
        }
    }

    /// The first of the matches that [`decode`](DecoderAt::decode) finds, without the reasons: for many texts at once.
    pub fn best(&self, text: &str, pin: Pin<'_>) -> Option<Match<'a>> {
        let formats = &self.decoder.formats;
        let mut best: Option<Reading> = None;
        let text_bits = bits_of_text(text);
        for group in self.decoder.groups.of_len(text.len()) {
            let mut number = None;
            for member in group.members() {
                // What cannot be likelier than the best so far need not be read.
                let most = text_bits - self.least_bits[member.format];
                let is_beaten = best.is_some_and(|best| most < best.evidence_bits);
                if is_beaten || !pin.wants(&formats[member.format], member.of(formats)) {
                    continue;
                }
                let number = *number.get_or_insert_with(|| member.of(formats).read_unbounded(text));
                let Ok(reading) = number.and_then(|id| self.reading(*member, id, text_bits)) else { continue };
                if best.is_none_or(|best| reading.rank(&best).is_lt()) {
                    best = Some(reading);
                }
            }
        }
        best.map(|reading| self.match_of(&reading))
    }

    /// Texts that are ids and differ from `text` only by spaces or quotes around it, by case, or by separators: at most
    /// four, the likeliest first.
    pub fn did_you_mean(&self, text: &str, pin: Pin<'_>) -> Vec<String> {
        let mut found: Vec<(String, Match<'_>)> = Vec::new();
        for text in near_texts(text, self.decoder.groups.shapes()) {
            if let Some(best) = self.best(&text, pin).filter(|best| best.is_plausible && best.evidence_bits > 0.0) {
                found.push((text, best));
            }
        }
        found.sort_by(|(_, one), (_, other)| other.evidence_bits.total_cmp(&one.evidence_bits));
        found.into_iter().map(|(text, _)| text).take(4).collect()
    }

    /// What a number that a spelling of that format has read is as its id.
    fn reading(&self, Member { format: at, encoding }: Member, id: u128, text_bits: f64) -> Result<Reading, Rejection> {
        let format = &self.decoder.formats[at];
        format.encodings[encoding].check(id)?;
        let variant = format.variant_at(id);
        let layout = &format.variants[variant].layout;
        let mut values = [0; Layout::FIELDS_MAX];
        layout.unpack_into(id, &mut values)?;
        let time = self.times[at].zip(layout.sum_of(FieldKind::Time, &values));
        let bits = time.map_or(0.0, |(weight, ticks)| weight.bits(ticks));
        Ok(Reading {
            format: at,
            encoding,
            id,
            evidence_bits: text_bits - bits - self.decoder.weights[at].bits(variant, &values),
            is_plausible: time.is_none_or(|(weight, ticks)| weight.is_plausible(ticks)),
        })
    }

    fn match_of(&self, reading: &Reading) -> Match<'a> {
        Match {
            format: &self.decoder.formats[reading.format],
            encoding: reading.encoding,
            id: reading.id,
            evidence_bits: reading.evidence_bits,
            is_plausible: reading.is_plausible,
        }
    }
}

impl Reading {
    fn rank(&self, other: &Reading) -> std::cmp::Ordering {
        let by_evidence = other.evidence_bits.total_cmp(&self.evidence_bits);
        by_evidence.then((self.format, self.encoding).cmp(&(other.format, other.encoding)))
    }
}

impl<'a> Decoded<'a> {
    /// Whether the first match has a rival.
    pub fn is_ambiguous(&self) -> bool {
        self.matches.first().is_some_and(|best| self.rivals(best).next().is_some())
    }

    /// The matches that leave a doubt about this one: another id, or the same number as another format, with nearly as
    /// much evidence or more. Two spellings of one id leave none.
    pub fn rivals<'b>(&'b self, found: &'b Match<'a>) -> impl Iterator<Item = &'b Match<'a>> {
        self.matches.iter().filter(|other| {
            let is_another = (&other.format.name, other.id) != (&found.format.name, found.id);
            is_another && found.evidence_bits - other.evidence_bits <= AMBIGUOUS_BITS
        })
    }
}

impl<'a> Match<'a> {
    /// The format of this reading.
    pub fn format(&self) -> &'a Format {
        self.format
    }

    /// The spelling of this reading.
    pub fn encoding(&self) -> &'a Encoding {
        &self.format.encodings[self.encoding]
    }

    /// The id as a number.
    pub fn id(&self) -> u128 {
        self.id
    }

    /// The id taken apart.
    pub fn parts(&self) -> Parts<'a> {
        self.format.split(self.id).expect("a match splits, checked when it was made")
    }

    /// How much likelier the text is as an id of this format than as a random text of its length and letters, in bits;
    /// below zero where it is less likely.
    pub fn evidence_bits(&self) -> f64 {
        self.evidence_bits
    }

    /// Whether the time of the id lies no later than the format's `plausible_ahead` after the moment of decoding; true
    /// without a time.
    pub fn is_plausible(&self) -> bool {
        self.is_plausible
    }
}
