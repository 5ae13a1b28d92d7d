//! The pieces of a series name such as `acme-2026`, or of a number's text such as `INV-00042`.

use super::series_name::is_letter;

/// A piece of a series name or a number's text: fixed characters, a name part, or the number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum TextField {
    /// Fixed characters.
    Literal(String),
    /// A part of the name of a series.
    Part {
        /// The index of the part in the pattern of the names.
        part: usize,
        /// The form in which the part is written.
        form: PartForm,
    },
    /// The number, padded with zeros to `width` digits.
    Number {
        /// The minimum number of digits.
        width: u8,
        /// The least number of the series.
        start: u64,
        /// The greatest number of the series.
        max: u64,
    },
}

/// The values that one part of a series name, such as `{year}`, can have, and how they are written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum PartForm {
    /// Zero or more characters of a name. The star of a pattern has this form.
    Rest,
    /// One or more characters of a name, except `-`.
    Open,
    /// One of several values. A `#` stands for any digit.
    Listed(Vec<String>),
    /// The last two digits of a year.
    LastTwo(Years),
}

/// A range of at most 100 years. Within such a range, the last two digits determine the year.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Years {
    first: u16,
    last: u16,
}

impl Years {
    /// Returns the range from `first` to `last`, or `None` if the range is empty, has more than 100
    /// years, or ends after 9999.
    pub fn new(first: u16, last: u16) -> Option<Years> {
        let is_range = first <= last && last - first < 100 && last <= 9_999;
        is_range.then_some(Years { first, last })
    }

    /// Returns the first year.
    pub fn first(self) -> u16 {
        self.first
    }

    /// Returns the last year.
    pub fn last(self) -> u16 {
        self.last
    }

    /// Returns the years as four digits each.
    pub(super) fn texts(self) -> impl Iterator<Item = String> {
        (self.first..=self.last).map(|year| format!("{year:04}"))
    }

    /// Returns `true` if the range contains this year, which is given as digits.
    pub(super) fn contains(self, year: &str) -> bool {
        year.parse()
            .is_ok_and(|year: u16| (self.first..=self.last).contains(&year))
    }
}

impl PartForm {
    /// Returns the length in bytes of each prefix of `text` that can be a name part of this form.
    fn lengths(&self, text: &str) -> Vec<usize> {
        let run = |is_open: bool| {
            let is_of_run = |byte: &u8| is_letter(*byte) && !(is_open && *byte == b'-');
            text.bytes().take_while(is_of_run).count()
        };
        match self {
            PartForm::Rest => (0..=run(false)).collect(),
            PartForm::Open => (1..=run(true)).collect(),
            PartForm::Listed(pictures) => {
                let fits = |picture: &&String| {
                    text.len() >= picture.len()
                        && picture.bytes().zip(text.bytes()).all(|(wanted, byte)| {
                            wanted == byte || wanted == b'#' && byte.is_ascii_digit()
                        })
                };
                pictures.iter().filter(fits).map(String::len).collect()
            }
            PartForm::LastTwo(years) => {
                let digits = text.get(..2).unwrap_or_default();
                let is_year = years.texts().any(|year| year.ends_with(digits));
                let is_year = digits.len() == 2 && is_year;
                is_year.then_some(2).into_iter().collect()
            }
        }
    }

    /// Returns the value of a name part if exactly one is listed, and it has no `#` (any digit).
    pub(super) fn only(&self) -> Option<&str> {
        match self {
            PartForm::Listed(pictures) => match &**pictures {
                [only] if !only.contains('#') => Some(only),
                _ => None,
            },
            PartForm::Rest | PartForm::Open | PartForm::LastTwo(_) => None,
        }
    }

    /// Returns an example of a value of this form. If the form has several values, the examples for
    /// `place` 0 and `place` 1 differ.
    pub(super) fn example(&self, place: usize) -> String {
        match self {
            PartForm::Rest | PartForm::Open => ["a", "b"][place % 2].to_owned(),
            PartForm::LastTwo(years) => years.texts().nth(place).unwrap_or_default(),
            PartForm::Listed(pictures) => {
                let picture = pictures.iter().cycle().nth(place).cloned();
                picture
                    .unwrap_or_default()
                    .replace('#', &(place % 2 + 1).to_string())
            }
        }
    }

    /// Returns the value that this form writes as `text`, such as the year `2026` for the last two
    /// digits `26`.
    pub(super) fn value(&self, text: &str) -> String {
        let year = match self {
            PartForm::LastTwo(years) => years.texts().find(|year| year.ends_with(text)),
            PartForm::Rest | PartForm::Open | PartForm::Listed(_) => None,
        };
        year.unwrap_or_else(|| text.to_owned())
    }

    /// Returns the text of a part's value: `26` for `2026` with `LastTwo`, or the value itself.
    pub(super) fn written<'a>(&self, value: &'a str) -> &'a str {
        match self {
            PartForm::LastTwo(_) => value.get(2..).unwrap_or(value),
            PartForm::Rest | PartForm::Open | PartForm::Listed(_) => value,
        }
    }
}

impl TextField {
    /// Returns the length in bytes of each prefix of `text` that is a value of this field.
    fn lengths(&self, text: &str) -> Vec<usize> {
        match self {
            TextField::Literal(literal) => {
                let begins = text.starts_with(literal.as_str());
                begins.then_some(literal.len()).into_iter().collect()
            }
            TextField::Part { form, .. } => form.lengths(text),
            TextField::Number { width, start, max } => {
                let width = usize::from(*width);
                let run = text.bytes().take_while(u8::is_ascii_digit).count();
                let is_number = |len: &usize| {
                    let is_canonical = *len == width || !text.starts_with('0');
                    let number = text[..*len].parse();
                    is_canonical && number.is_ok_and(|number| (*start..=*max).contains(&number))
                };
                (width..=run).filter(is_number).collect()
            }
        }
    }
}

/// Returns at most `limit` ways to split a text into fields. Each way has one piece of the text for
/// each field.
pub(super) fn splits<'t>(fields: &[TextField], text: &'t str, limit: usize) -> Vec<Vec<&'t str>> {
    let mut search = Search {
        fields,
        text,
        limit,
        dead: vec![false; (fields.len() + 1) * (text.len() + 1)],
        path: Vec::with_capacity(fields.len()),
        found: Vec::new(),
    };
    search.go_on(0);
    search.found
}

/// A depth-first search for the ways to split a text into fields.
struct Search<'f, 't> {
    fields: &'f [TextField],
    text: &'t str,
    limit: usize,
    /// Known dead ends: for each number of fields that were split off, and each byte offset, `true`
    /// if the rest of the text cannot be split into the remaining fields. Without this record, the
    /// search could take exponential time.
    dead: Vec<bool>,
    path: Vec<&'t str>,
    found: Vec<Vec<&'t str>>,
}

impl Search<'_, '_> {
    fn go_on(&mut self, offset: usize) {
        let rest = &self.text[offset..];
        let Some(field) = self.fields.get(self.path.len()) else {
            if rest.is_empty() {
                self.found.push(self.path.clone());
            }
            return;
        };
        let place = self.path.len() * (self.text.len() + 1) + offset;
        let found = self.found.len();
        if self.dead[place] {
            return;
        }
        for len in field.lengths(rest) {
            if self.found.len() == self.limit {
                return;
            }
            self.path.push(&rest[..len]);
            self.go_on(offset + len);
            self.path.pop();
        }
        self.dead[place] = self.found.len() == found;
    }
}
