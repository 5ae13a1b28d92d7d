//! The query of an address, read strictly: every name known, every name once.

use std::borrow::Cow;

use axum::http::Uri;

use crate::http::answer::{Problem, Slug};

/// The parameters of one request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Query<'a> {
    pairs: Vec<(&'a str, Cow<'a, str>)>,
}

impl Query<'_> {
    /// The value of this parameter, decoded; empty for `?name` without `=`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs
            .iter()
            .find(|(given, _)| *given == name)
            .map(|(_, value)| value.as_ref())
    }

    /// The parameters in the order of the address: names, and values decoded.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs
            .iter()
            .map(|(name, value)| (*name, value.as_ref()))
    }

    /// Whether this parameter is `true`; not if it is absent.
    ///
    /// # Errors
    /// 422 `invalid-parameter` for anything but `true` and `false`.
    pub fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => {
                let detail = format!("{name} is {other:?}, it must be true or false");
                Err(Problem::new(Slug::InvalidParameter, detail)
                    .reason(name)
                    .limit("true, false"))
            }
        }
    }
}

/// Reads the part of an address after `?`, in which only these names may stand, each at most once.
///
/// Percent-encoding is decoded. A plus sign stays one: no value here contains a space, but times contain `+01:00`.
///
/// ```
/// let query = idmint::http::request::strict_query("count=3&encoding=hex", &["count", "encoding"])?;
/// assert_eq!((query.get("count"), query.get("from")), (Some("3"), None));
/// # Ok::<(), idmint::http::Problem>(())
/// ```
///
/// # Errors
/// 422 `invalid-parameter` naming what is unknown or given twice; 400 `malformed-request` for broken encoding.
pub fn strict_query<'a>(query: &'a str, allowed: &[&'a str]) -> Result<Query<'a>, Problem> {
    let mut pairs: Vec<(&'a str, Cow<'a, str>)> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = percent_decode(name)?;
        let Some(known) = allowed.iter().find(|allowed| **allowed == name) else {
            return Err(unknown(&name, allowed));
        };
        if pairs.iter().any(|(given, _)| given == known) {
            let detail = format!("parameter {known} is given more than once");
            return Err(Problem::new(Slug::InvalidParameter, detail).reason("repeated_parameter"));
        }
        pairs.push((known, percent_decode(value)?));
    }
    Ok(Query { pairs })
}

/// A parameter from 1 to `most`.
///
/// # Errors
/// 422 `invalid-parameter`.
pub(in crate::http) fn whole_number(
    query: &Query<'_>,
    name: &'static str,
    most: u64,
) -> Result<Option<u64>, Problem> {
    let Some(text) = query.get(name) else {
        return Ok(None);
    };
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text
        .parse()
        .ok()
        .filter(|number| is_plain && (1..=most).contains(number));
    number.map(Some).ok_or_else(|| {
        let detail = format!("{name} is {text:?}, it must be a whole number from 1 to {most}");
        Problem::new(Slug::InvalidParameter, detail)
            .reason(name)
            .limit(most.to_string())
    })
}

/// That an address has no parameters, for routes that know none.
///
/// # Errors
/// As [`strict_query`].
pub(crate) fn no_query(uri: &Uri) -> Result<(), Problem> {
    let query = strict_query(uri.query().unwrap_or_default(), &[]);
    query
        .map(|_| ())
        .map_err(|problem| problem.or_example(|| format!("GET {}", uri.path())))
}

fn unknown(name: &str, allowed: &[&str]) -> Problem {
    let known = if allowed.is_empty() {
        "this route has none".to_owned()
    } else {
        format!("this route has {}", allowed.join(", "))
    };
    Problem::new(
        Slug::InvalidParameter,
        format!("parameter {name:?} is unknown; {known}"),
    )
    .reason("unknown_parameter")
}

/// Decodes `%41` to `A`; borrows where there is nothing to decode.
///
/// # Errors
/// 400 `malformed-request` where two hexadecimal digits do not follow a percent sign, or the result is not UTF-8.
pub(crate) fn percent_decode(text: &str) -> Result<Cow<'_, str>, Problem> {
    // Nearly every text has none, and looking for one costs least.
    if !text.contains('%') {
        return Ok(Cow::Borrowed(text));
    }
    let broken = || {
        Problem::new(
            Slug::MalformedRequest,
            format!("{text:?} is not valid percent-encoded UTF-8"),
        )
    };
    // The library leaves alone what is no escape.
    let is_escape = |digits: &[u8]| digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit);
    let mut behind_percent = text.as_bytes().split(|byte| *byte == b'%').skip(1);
    if !behind_percent.all(|rest| rest.get(..2).is_some_and(is_escape)) {
        return Err(broken());
    }
    percent_encoding::percent_decode_str(text)
        .decode_utf8()
        .map_err(|_| broken())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: [&str; 3] = ["count", "encoding", "from"];

    fn refusal(query: &str) -> (Slug, String) {
        let problem = strict_query(query, &ALLOWED).expect_err(query);
        (problem.slug(), problem.detail().to_owned())
    }

    #[test]
    fn known_parameters_are_decoded() {
        let query = strict_query(
            "count=3&&enc%6Fding=a%2Bb%c3%a9&from=2024-01-01T00:00:00+01:00",
            &ALLOWED,
        )
        .expect("valid");
        assert_eq!(query.get("count"), Some("3"));
        assert_eq!(query.get("encoding"), Some("a+bé"));
        assert_eq!(query.get("from"), Some("2024-01-01T00:00:00+01:00"));
        assert_eq!(
            strict_query("count", &ALLOWED).expect("valid").get("count"),
            Some("")
        );
        assert_eq!(strict_query("", &[]).expect("valid"), Query::default());
    }

    #[test]
    fn a_flag_is_true_or_false_or_absent() {
        let flag =
            |query: &'static str| strict_query(query, &ALLOWED).expect("valid").flag("count");
        assert_eq!(
            [flag(""), flag("count=false"), flag("count=true")].map(|flag| flag.ok()),
            [Some(false), Some(false), Some(true)]
        );
        for query in ["count", "count=1", "count=TRUE"] {
            assert_eq!(flag(query).expect_err(query).slug(), Slug::InvalidParameter);
        }
    }

    #[test]
    fn unknown_and_repeated_parameters_are_named() {
        assert_eq!(
            refusal("conut=3"),
            (
                Slug::InvalidParameter,
                r#"parameter "conut" is unknown; this route has count, encoding, from"#.into()
            )
        );
        assert_eq!(
            refusal("count=3&%63ount=3"),
            (
                Slug::InvalidParameter,
                "parameter count is given more than once".into()
            )
        );
        assert_eq!(refusal("COUNT=3").0, Slug::InvalidParameter);
    }

    #[test]
    fn broken_percent_encoding_is_refused() {
        for query in [
            "count=%",
            "count=%4",
            "count=%zz",
            "count=%+1",
            "count=%ff",
            "%=1",
        ] {
            assert_eq!(refusal(query).0, Slug::MalformedRequest, "{query}");
        }
    }
}
