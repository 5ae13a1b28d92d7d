//! Reading an id whose format is not known: every format and every spelling is tried.

use std::sync::Arc;

use super::encoding::Encoding;
use super::format::{Format, Parts};
use super::rejection::Rejection;
use crate::time::UnixNanos;

/// Tries every format, in a fixed order. Strict: a reading counts only if it spells back to exactly the same text.
///
/// ```
/// use std::sync::Arc;
/// use idmint::id::{Decoder, FormatDefinition, PRESETS, Pin, Rejection};
///
/// let payment = PRESETS.iter().find(|preset| preset.name == "payment").expect("a built-in format");
/// let format = FormatDefinition::from_toml(payment.name, payment.toml)?.compile(payment.name)?;
/// let decoder = Decoder::new(vec![Arc::new(format)]);
///
/// let decoded = decoder.decode("1I9ZC1002", Pin::default());
/// assert_eq!(decoded.matches[0].encoding().name(), "base36");
/// assert_eq!(decoded.matches[0].parts().values, [91_164_961, 0, 2]);
///
/// let decoded = decoder.decode("1I9ZC1002", Pin { encoding: Some("decimal"), ..Pin::default() });
/// assert_eq!(decoded.rejected[0].1, Rejection::BadAlphabet);
/// # Ok::<(), idmint::id::FormatError>(())
/// ```
#[derive(Debug)]
pub struct Decoder {
    formats: Vec<Arc<Format>>,
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
pub struct Decoded {
    /// Every reading, in the order of the formats; within one, in the order of its encodings.
    pub matches: Vec<Match>,
    /// The formats that have no reading, each with the reason of the spelling that came nearest.
    pub rejected: Vec<(Arc<Format>, Rejection)>,
}

/// One reading of a text: a format and a spelling.
#[derive(Debug, Clone)]
pub struct Match {
    format: Arc<Format>,
    encoding: usize,
    id: u128,
}

impl Decoder {
    /// A decoder of these formats, tried in this order.
    pub fn new(formats: Vec<Arc<Format>>) -> Decoder {
        Decoder { formats }
    }

    /// The formats it tries, in order.
    pub fn formats(&self) -> &[Arc<Format>] {
        &self.formats
    }

    /// Every reading of `text` that spells back to exactly the same text.
    pub fn decode(&self, text: &str, pin: Pin<'_>) -> Decoded {
        let mut decoded = Decoded::default();
        for format in self.formats.iter().filter(|format| pin.format.is_none_or(|name| name == format.name)) {
            let mut nearest: Option<Rejection> = None;
            let mut is_read = false;
            for (at, encoding) in format.encodings.iter().enumerate() {
                if pin.encoding.is_some_and(|name| name != encoding.name()) {
                    continue;
                }
                match read(format, encoding, text) {
                    Ok(id) => {
                        is_read = true;
                        decoded.matches.push(Match { format: Arc::clone(format), encoding: at, id });
                    }
                    Err(rejection) => {
                        nearest = nearest.into_iter().chain([rejection]).max_by_key(|rejection| rejection.nearness());
                    }
                }
            }
            if let (false, Some(rejection)) = (is_read, nearest) {
                decoded.rejected.push((Arc::clone(format), rejection));
            }
        }
        decoded
    }
}

fn read(format: &Format, encoding: &Encoding, text: &str) -> Result<u128, Rejection> {
    let id = encoding.read(text)?;
    format.split(id)?;
    Ok(id)
}

impl Match {
    /// The format of this reading.
    pub fn format(&self) -> &Arc<Format> {
        &self.format
    }

    /// The spelling of this reading.
    pub fn encoding(&self) -> &Encoding {
        &self.format.encodings[self.encoding]
    }

    /// The id as a number.
    pub fn id(&self) -> u128 {
        self.id
    }

    /// The id taken apart.
    pub fn parts(&self) -> Parts<'_> {
        self.format.split(self.id).expect("a match splits, checked when it was made")
    }

    /// Whether the time of the id lies no later than the format's `plausible_ahead` after `now`; true without a time.
    pub fn is_plausible(&self, now: UnixNanos) -> bool {
        match self.parts().time {
            None => true,
            Some(time) => time <= now.after(self.format.plausible_ahead).into(),
        }
    }
}
