//! The prefixes that canonical texts may have, such as `user_`, in addition to the fixed prefix of
//! their encoding.

use std::sync::Arc;

use crate::id::encoding::{Encoding, escape};
use crate::id::rejection::Rejection;

/// The separator between the type and the rest of a canonical text, such as in
/// `user_01h455vb4pex5vsknk084sn02q`.
const SEPARATOR: char = '_';

/// The maximum length of a type in letters.
const TYPE_LEN_MAX: usize = 63;

/// The prefixes that a format's canonical texts may have. A prefix is not part of the id's number.
///
/// Compiling the format checks that different ids never have the same text, even with different
/// prefixes.
///
/// ```
/// use idmint_core::id::Format;
///
/// let typeid = Format::built_in("typeid").expect("a built-in format");
/// let (prefix, id) = typeid.prefixes.read("user_01h455vb4pex5vsknk084sn02q", typeid.canonical()).expect("a type")?;
/// assert_eq!((prefix, typeid.prefixes.type_of(prefix)), ("user_", Some("user")));
/// assert_eq!(id, 0x0189_0a5d_ac96_774b_bcce_b302_099a_8057);
/// # Ok::<(), idmint_core::id::Rejection>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prefixes {
    /// A text has one of these prefixes, or none.
    Listed(Vec<Prefix>),
    /// The prefix of a text is a type followed by `_`, such as `user_`. A text without a type has
    /// no prefix.
    Types {
        /// The types that the format mints. If the list is empty, the format mints every type that
        /// [`is_type`] accepts.
        minted: Vec<String>,
    },
}

/// A prefix for the texts of ids, such as `user_`. Every value of this type is a prefix that the
/// format permits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(Arc<str>);

/// A description of valid types for error messages, phrased as the end of a sentence. Source: the
/// TypeID specification 0.3.0 (jetify-com/typeid).
pub const TYPE_RULE: &str = "0 to 63 characters from a-z and _ that begin and end with a letter";

/// Returns `true` if the text is a valid type: 0 to 63 characters from a-z and `_`, with no `_` at
/// the start or the end.
///
/// Source: the TypeID specification 0.3.0 (jetify-com/typeid).
///
/// ```
/// use idmint_core::id::is_type;
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
    /// Creates a prefix from a text that the caller has checked.
    pub(super) fn new(text: &str) -> Prefix {
        Prefix(text.into())
    }

    /// Returns the prefix as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Prefixes {
    /// Returns `true` if the format has neither prefixes nor types, so that its canonical texts
    /// never start with a prefix.
    pub fn is_empty(&self) -> bool {
        matches!(self, Prefixes::Listed(listed) if listed.is_empty())
    }

    /// Returns `true` if the format has types instead of listed prefixes.
    pub fn are_types(&self) -> bool {
        matches!(self, Prefixes::Types { .. })
    }

    /// Returns the length of the longest prefix that a text can have, in bytes.
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

    /// Returns a regular expression, anchored at both ends, that accepts canonical texts with and
    /// without a prefix, and refuses other lengths and letters.
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

    /// Returns the first type in the definition's list of types that may be minted. Returns `None`
    /// if the definition has no such list, because the format mints every type or has no types.
    pub fn minted_type(&self) -> Option<&str> {
        match self {
            Prefixes::Types { minted } => minted.first().map(String::as_str),
            Prefixes::Listed(_) => None,
        }
    }

    /// Returns the prefixes that the format's definition lists. The list is empty if callers choose
    /// a type instead, such as `user`.
    pub fn listed(&self) -> &[Prefix] {
        match self {
            Prefixes::Listed(listed) => listed,
            Prefixes::Types { .. } => &[],
        }
    }

    /// Returns the type that the prefix `prefix` stands for, or `None` if the format has no types.
    pub fn type_of<'a>(&self, prefix: &'a str) -> Option<&'a str> {
        self.are_types()
            .then(|| prefix.strip_suffix(SEPARATOR).unwrap_or(prefix))
    }

    /// Splits a text into its prefix and the number of its id, or returns `None` if the text has no
    /// prefix.
    ///
    /// The number may exceed the greatest id of the format. A text can be split in at most one way.
    ///
    /// # Errors
    /// Returns [`Rejection::BadPrefix`] if the type is invalid, or the encoding's error if the rest
    /// of the text is invalid.
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

    /// Reads `text` leniently, and returns the prefix and canonical text that the caller meant.
    /// `Encoding::lenient_text` lists the permitted differences.
    ///
    /// Types are read in any letter case and written in lower case. Listed prefixes are read in any
    /// case only if canonical texts have letters of a single case.
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
                // Ignoring letter case, the text may start with two of the listed prefixes. The
                // caller may then have meant either, so the result is `None`.
                as_written.or_else(|| others.next().filter(|_| others.next().is_none()))
            }
        }
    }
}
