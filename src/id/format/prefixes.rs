//! What may stand before the canonical text of an id, beside what its encoding writes there.

use std::sync::Arc;

use crate::id::encoding::{Encoding, escape};
use crate::id::rejection::Rejection;

/// What stands between a type and the text behind it.
const SEPARATOR: char = '_';

/// The longest type, in letters.
const TYPE_LEN_MAX: usize = 63;

/// What may stand before the canonical text of the ids of a format. It is no part of the number.
///
/// Made with its format, and checked there: no two ids have one text, whatever stands before them.
///
/// ```
/// use idmint::id::Format;
///
/// let typeid = Format::built_in("typeid").expect("a built-in format");
/// let (prefix, id) = typeid.prefixes.read("user_01h455vb4pex5vsknk084sn02q", typeid.canonical()).expect("a type")?;
/// assert_eq!((prefix, typeid.prefixes.type_of(prefix)), ("user_", Some("user")));
/// assert_eq!(id, 0x0189_0a5d_ac96_774b_bcce_b302_099a_8057);
/// # Ok::<(), idmint::id::Rejection>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prefixes {
    /// Nothing, or one of these.
    Listed(Vec<Prefix>),
    /// A type and `_`, or nothing for the empty type.
    Types {
        /// Those that are minted; if empty, any that [`is_type`].
        minted: Vec<String>,
    },
}

/// What stands before the ids of one answer: allowed in their format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(Arc<str>);

/// What a type is, as the end of a sentence. Source: the TypeID specification 0.3.0 (jetify-com/typeid).
pub const TYPE_RULE: &str = "0 to 63 of a-z and _, beginning and ending with a letter";

/// Whether this is a type: 0 to 63 of a-z and `_`, neither first nor last a `_`.
///
/// Source: the TypeID specification 0.3.0 (jetify-com/typeid).
///
/// ```
/// use idmint::id::is_type;
///
/// assert!(["", "a", "user", "line__item"].into_iter().all(is_type));
/// assert!(!["_user", "user_", "_", "User", "user2"].into_iter().any(is_type));
/// ```
pub fn is_type(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    text.len() <= TYPE_LEN_MAX
        && text.bytes().all(is_inner)
        && !text.starts_with(SEPARATOR)
        && !text.ends_with(SEPARATOR)
}

impl Prefix {
    /// One that is checked.
    pub(super) fn new(text: &str) -> Prefix {
        Prefix(text.into())
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Prefixes {
    /// Whether only the canonical text itself is one.
    pub fn is_empty(&self) -> bool {
        matches!(self, Prefixes::Listed(listed) if listed.is_empty())
    }

    /// Whether texts begin with a type.
    pub fn are_types(&self) -> bool {
        matches!(self, Prefixes::Types { .. })
    }

    /// How long the longest of them is, in bytes.
    pub fn len_max(&self) -> usize {
        match self {
            Prefixes::Listed(listed) => listed
                .iter()
                .map(|prefix| prefix.0.len())
                .max()
                .unwrap_or(0),
            Prefixes::Types { .. } => TYPE_LEN_MAX + SEPARATOR.len_utf8(),
        }
    }

    /// An anchored regular expression that accepts the canonical texts with and without a prefix, and refuses other lengths and
    /// letters.
    pub fn pattern(&self, canonical: &Encoding) -> String {
        let optional = match self {
            Prefixes::Types { .. } => format!(
                "(?:[a-z]|[a-z][a-z_]{{0,{}}}[a-z]){SEPARATOR}",
                TYPE_LEN_MAX - 2
            ),
            Prefixes::Listed(listed) => listed
                .iter()
                .map(|prefix| escape(prefix.as_str()))
                .collect::<Vec<_>>()
                .join("|"),
        };
        let pattern = canonical.pattern();
        let body = pattern
            .strip_prefix('^')
            .expect("codecs anchor their patterns");
        format!("^(?:{optional})?{body}")
    }

    /// The first of the types that are minted, if only some are.
    pub fn minted_type(&self) -> Option<&str> {
        match self {
            Prefixes::Types { minted } => minted.first().map(String::as_str),
            Prefixes::Listed(_) => None,
        }
    }

    /// Those that can be asked for by name.
    pub fn listed(&self) -> &[Prefix] {
        match self {
            Prefixes::Listed(listed) => listed,
            Prefixes::Types { .. } => &[],
        }
    }

    /// The type that a prefix says; `None` where they are no types.
    pub fn type_of<'a>(&self, prefix: &'a str) -> Option<&'a str> {
        self.are_types()
            .then(|| prefix.strip_suffix(SEPARATOR).unwrap_or(prefix))
    }

    /// What stands before the text, and the number that is behind it, which may lie above the greatest one; `None` where
    /// nothing is before it. There is no second way to read it.
    ///
    /// # Errors
    /// [`Rejection::BadPrefix`] for what is no type, and whatever the encoding finds behind it.
    pub fn read<'a>(
        &self,
        text: &'a str,
        canonical: &Encoding,
    ) -> Option<Result<(&'a str, u128), Rejection>> {
        let behind = |prefix: &'a str, rest: &str| match rest {
            "" => Err(Rejection::WrongLength),
            rest => canonical.read_unbounded(rest).map(|id| (prefix, id)),
        };
        match self {
            Prefixes::Types { .. } => {
                let at = text.len().checked_sub(canonical.fixed_len()?)?;
                let (prefix, rest) = text.split_at_checked(at)?;
                let of_type = prefix.strip_suffix(SEPARATOR)?;
                let is_sound = is_type(of_type) && !of_type.is_empty();
                Some(if is_sound {
                    behind(prefix, rest)
                } else {
                    Err(Rejection::BadPrefix)
                })
            }
            Prefixes::Listed(listed) => {
                let split = |prefix: &Prefix| {
                    text.split_at_checked(prefix.0.len())
                        .filter(|(head, _)| *head == &*prefix.0)
                };
                let splits = listed.iter().filter_map(split);
                let mut readings = splits.map(|(prefix, rest)| behind(prefix, rest));
                let first = readings.next()?;
                Some(readings.fold(first, Result::or))
            }
        }
    }

    /// The text of an id behind one of these that somebody meant: see `Encoding::lenient_text`. A type has small letters; the
    /// case of another prefix may differ where the letters behind it have one case.
    pub(in crate::id) fn lenient_text(&self, text: &str, canonical: &Encoding) -> Option<String> {
        match self {
            Prefixes::Types { .. } => {
                let (of_type, rest) = text.rsplit_once(SEPARATOR)?;
                let of_type = of_type.to_ascii_lowercase();
                let is_sound = is_type(&of_type) && !of_type.is_empty();
                let meant = canonical.lenient_text(rest).filter(|_| is_sound)?;
                Some(format!("{of_type}{SEPARATOR}{meant}"))
            }
            Prefixes::Listed(listed) => {
                let is_as_written = |prefix: &&Prefix| text.starts_with(prefix.as_str());
                let is_meant = |prefix: &&Prefix| {
                    let head = text.get(..prefix.0.len());
                    canonical.letter_case().is_some()
                        && head.is_some_and(|head| head.eq_ignore_ascii_case(&prefix.0))
                };
                let meant_behind = |prefix: &Prefix| {
                    let meant = canonical.lenient_text(text.get(prefix.0.len()..)?)?;
                    Some(format!("{}{meant}", prefix.as_str()))
                };
                let as_written = listed.iter().filter(is_as_written).find_map(meant_behind);
                let mut others = listed.iter().filter(is_meant).filter_map(meant_behind);
                // Of two that differ by their case alone nobody knows which was meant.
                as_written.or_else(|| others.next().filter(|_| others.next().is_none()))
            }
        }
    }
}
