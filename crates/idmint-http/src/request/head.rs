//! The head of a request: path and query parameters, request id, trace context and transfer coding.
//!
//! Parsing is strict: an unknown or repeated parameter is refused.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};

use crate::answer::{MediaType, Problem, Slug, X_REQUEST_ID};
use idmint_core::id::{Format, Prefix, PrefixError};
use idmint_service::PAGE_LEN;
use idmint_wire::MintRequest;

/// The query parameters of one request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Query<'a> {
    pairs: Vec<(&'a str, Cow<'a, str>)>,
}

impl Query<'_> {
    /// Returns this parameter's decoded value, if any. The value of `?name` without `=` is empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.pairs
            .iter()
            .find(|(given, _)| *given == name)
            .map(|(_, value)| value.as_ref())
    }

    /// Returns the parameters as pairs of name and decoded value, in the order of the query.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs
            .iter()
            .map(|(name, value)| (*name, value.as_ref()))
    }

    /// Restores the plus sign in the values of these parameters, which are times such as
    /// `2026-01-01T00:00:00+01:00`. Some programs replace the plus sign with a space before they
    /// encode the time.
    pub(crate) fn with_times(mut self, names: &[&str]) -> Self {
        let times = self.pairs.iter_mut();
        for (_, value) in times.filter(|(name, _)| names.contains(name)) {
            if let Some((local, offset)) = value.rsplit_once(' ')
                && offset.len() == "01:00".len()
                && offset.contains(':')
            {
                *value = format!("{local}+{offset}").into();
            }
        }
        self
    }

    /// `true` if the parameter `name` has the value `true`, and `false` if it is absent or has the
    /// value `false`.
    ///
    /// # Errors
    /// Returns 422 `invalid-parameter` if the value is neither `true` nor `false`.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => {
                let detail = format!("{name} is {other:?}, but must be true or false");
                Err(Problem::parameter(name, detail).limit("true, false"))
            }
        }
    }

    /// `true` if the parameter `name` has the value in `only`, and `false` if the parameter is
    /// absent.
    ///
    /// # Errors
    /// Returns 422 `invalid-parameter` if the parameter has another value.
    pub(crate) fn is_set_to(&self, name: &str, only: &str) -> Result<bool, Problem> {
        match self.get(name) {
            Some(other) if other != only => {
                let detail = format!("{name} is {other:?}, but can only be {only}");
                Err(Problem::parameter(name, detail).limit(only))
            }
            given => Ok(given.is_some()),
        }
    }
}

/// Parses a query string. Each parameter must have one of the names in `allowed`, and may occur
/// once.
///
/// Percent-encoding is decoded. A plus sign is not decoded to a space, because times contain
/// `+01:00`.
///
/// # Errors
/// Returns 422 `invalid-parameter` if a name is unknown or given twice, and 400 `malformed-request`
/// if the encoding is broken.
pub(crate) fn strict_query<'a>(query: &'a str, allowed: &[&'a str]) -> Result<Query<'a>, Problem> {
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

/// Parses the query of a URI: see [`strict_query`].
///
/// # Errors
/// Returns the errors of [`strict_query`].
pub(crate) fn query_of<'a>(uri: &'a Uri, allowed: &[&'a str]) -> Result<Query<'a>, Problem> {
    strict_query(uri.query().unwrap_or_default(), allowed)
}

/// Parses the parameter `name`, which must be a whole number from 1 to `most`.
///
/// # Errors
/// Returns 422 `invalid-parameter` if the value is not a whole number in this range.
pub(crate) fn whole_number(
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
        let detail = format!("{name} is {text:?}, but must be a whole number from 1 to {most}");
        Problem::parameter(name, detail).limit(most.to_string())
    })
}

/// Parses the parameter `limit`, the maximum number of items in a page of a list. The parameter is
/// from 1 to [`PAGE_LEN`]. If it is absent, the limit is `default`.
///
/// # Errors
/// Returns 422 `invalid-parameter` if the value is not a whole number from 1 to [`PAGE_LEN`].
pub(crate) fn page_limit(query: &Query<'_>, default: usize) -> Result<usize, Problem> {
    let most = u64::try_from(PAGE_LEN).expect("a thousand");
    let limit = whole_number(query, "limit", most)?;
    Ok(limit.map_or(default, |limit| {
        usize::try_from(limit).expect("at most a thousand")
    }))
}

/// Checks that the URI of a GET request has no query parameters, for routes that accept none.
///
/// # Errors
/// Returns the errors of [`strict_query`].
pub(crate) fn no_query(uri: &Uri) -> Result<(), Problem> {
    query_of(uri, &[])
        .map(|_| ())
        .map_err(|problem| problem.or_example(|| format!("GET {}", uri.path())))
}

fn unknown(name: &str, allowed: &[&str]) -> Problem {
    let known = if allowed.is_empty() {
        "this route has none".to_owned()
    } else {
        format!("this route has {}", allowed.join(", "))
    };
    let detail = format!("parameter {name:?} is unknown; {known}");
    Problem::new(Slug::InvalidParameter, detail).reason("unknown_parameter")
}

/// Decodes `%41` to `A`. Borrows the text if it contains no escapes.
///
/// # Errors
/// Returns 400 `malformed-request` if a percent sign is not followed by two hexadecimal digits, or
/// if the result is not UTF-8.
pub(crate) fn percent_decode(text: &str) -> Result<Cow<'_, str>, Problem> {
    // Return early, because nearly every text has no percent sign and this check is cheap.
    if !text.contains('%') {
        return Ok(Cow::Borrowed(text));
    }
    let broken = || {
        Problem::new(
            Slug::MalformedRequest,
            format!("{text:?} is not valid percent-encoded UTF-8"),
        )
    };
    // Refuse invalid escapes here. The library would leave them in the text unchanged.
    let is_escape = |digits: &[u8]| digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit);
    let mut behind_percent = text.as_bytes().split(|byte| *byte == b'%').skip(1);
    if !behind_percent.all(|rest| rest.get(..2).is_some_and(is_escape)) {
        return Err(broken());
    }
    percent_encoding::percent_decode_str(text)
        .decode_utf8()
        .map_err(|_| broken())
}

/// Returns the requested number of ids, from the query or from the body. The default is 1.
pub(crate) fn count(
    query: &Query<'_>,
    in_body: &MintRequest,
    batch_max: u32,
) -> Result<NonZeroU32, Problem> {
    let refuse = |given: &str| {
        let detail = format!("count is {given}, but must be a whole number from 1 to {batch_max}");
        Problem::parameter("count", detail).limit(batch_max.to_string())
    };
    let given = match (query.get("count"), in_body.count) {
        (Some(_), Some(_)) => {
            let detail = "count is given twice, in the address and in the body: give it once";
            return Err(Problem::new(Slug::InvalidParameter, detail).reason("repeated_parameter"));
        }
        (None, None) => return Ok(NonZeroU32::MIN),
        (None, Some(count)) => count.to_string(),
        (Some(count), None) => count.to_owned(),
    };
    let is_plain = !given.is_empty() && given.bytes().all(|byte| byte.is_ascii_digit());
    let count = given
        .parse::<NonZeroU32>()
        .ok()
        .filter(|count| is_plain && count.get() <= batch_max);
    count.ok_or_else(|| refuse(if given.is_empty() { "empty" } else { &given }))
}

/// Returns the requested encoding, as an index into the encodings of the format.
pub(crate) fn encoding(query: &Query<'_>, format: &Format) -> Result<usize, Problem> {
    query
        .get("encoding")
        .map_or(Ok(0), |name| encoding_named(name, format))
}

/// Returns the index of the encoding with this name.
pub(crate) fn encoding_named(name: &str, format: &Format) -> Result<usize, Problem> {
    format.encoding_index(name).ok_or_else(|| {
        let names = format.encoding_names();
        let detail = format!("encoding {name:?} is not one of {names}");
        Problem::parameter("encoding", detail)
    })
}

/// Returns the prefix to write before each id, from the parameter `prefix` or `type`. A prefix
/// applies only to canonical text, so an explicit `prefix` is refused for any other encoding or
/// media type. A `type`, such as `user` for ids like `user_…`, is always checked. It is written
/// only into canonical text, and only if the bits of the id do not contain the type.
pub(crate) fn prefix(
    query: &Query<'_>,
    format: &Format,
    encoding: usize,
    media: MediaType,
) -> Result<Option<Prefix>, PrefixError> {
    if let Some(given) = query.get("prefix") {
        let written = match encoding {
            _ if matches!(media, MediaType::OctetStream | MediaType::Rows) => {
                Some(media.content_type())
            }
            0 => None,
            _ => Some(format.encodings[encoding].name()),
        };
        return format.prefix(given, written).map(Some);
    }
    if !format.prefixes.are_types() {
        return Ok(None);
    }
    let prefix = format.prefix_of_type(query.get("type").unwrap_or_default())?;
    Ok(Some(prefix).filter(|prefix| !prefix.as_str().is_empty()))
}

/// Refuses the parameters `count`, `type` and `domain`, because this format mints one id for each
/// item in the body. `item` is the kind of item, such as `report`.
pub(crate) fn refuse_count(query: &Query<'_>, item: &str, format: &Format) -> Result<(), Problem> {
    for name in ["count", "type", "domain"] {
        if query.get(name).is_some() {
            let detail = format!(
                "{name} cannot be combined with {item}s: {} mints one id for each {item} in the body",
                format.name
            );
            return Err(Problem::parameter(name, detail));
        }
    }
    Ok(())
}

/// Returns the percent-decoded path parameters of a request, in the order in which the route's
/// template contains them.
///
/// `template` is the path of the route, such as `/ledgers/{ledger}/ids/{id}`. A parameter of the
/// form `{*id}` takes the rest of the path. If the path does not match the template, the missing
/// parameters are empty.
///
/// # Errors
/// Returns 400 `malformed-request` if the encoding is broken.
pub(crate) fn path_params<'a, const N: usize>(
    template: &str,
    uri: &'a Uri,
) -> Result<[Cow<'a, str>; N], Problem> {
    let mut params = [const { Cow::Borrowed("") }; N];
    let mut found = template.split('{').skip(1);
    let literal = template.split('{').next().unwrap_or_default();
    let mut rest = uri.path().strip_prefix(literal).unwrap_or_default();
    for param in &mut params {
        let (name, literal) = found
            .next()
            .and_then(|part| part.split_once('}'))
            .unwrap_or_default();
        let len = if name.starts_with('*') {
            rest.len()
        } else {
            rest.find('/').unwrap_or(rest.len())
        };
        let (text, behind) = rest.split_at(len);
        *param = percent_decode(text)?;
        rest = behind.strip_prefix(literal).unwrap_or_default();
    }
    Ok(params)
}

const CALLERS_LEN_MAX: usize = 128;
const PREFIX_LEN: usize = 12;

/// The prefix of all request ids that this process makes. The prefix is random, so that two
/// processes with a common log do not make the same ids, and a restart does not repeat ids.
static PREFIX: LazyLock<[u8; PREFIX_LEN]> = LazyLock::new(|| {
    let random: u64 = rand::random();
    std::array::from_fn(|place| b"0123456789abcdef"[(random >> (4 * place) & 0xf) as usize])
});

/// The number of request ids that this process has made.
/// Written and read by: `made_here`, by increment. Invariant: only grows, so no two requests get
/// the same number.
/// Ordering: `Relaxed`, because no other data depends on it. Tested by: `ids_made_here_differ`.
static MADE: AtomicU64 = AtomicU64::new(0);

/// Returns the id of this request: the caller's id if it is 1 to 128 visible ASCII characters, else
/// a new one.
///
/// A new id needs no system call, and no allocation except the header value.
pub(crate) fn request_id(headers: &HeaderMap) -> HeaderValue {
    match headers.get(X_REQUEST_ID) {
        Some(callers) if is_usable(callers.as_bytes()) => callers.clone(),
        _ => made_here(),
    }
}

// Accept only visible ASCII characters. Other characters could forge a line in the log or a member
// in JSON, because the request id is written to both.
fn is_usable(id: &[u8]) -> bool {
    (1..=CALLERS_LEN_MAX).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}

fn made_here() -> HeaderValue {
    const SEPARATOR: u8 = b'-';
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(number).as_bytes();
    let mut id = [SEPARATOR; PREFIX_LEN + 1 + 20];
    id[..PREFIX_LEN].copy_from_slice(&*PREFIX);
    let len = PREFIX_LEN + 1 + digits.len();
    id[PREFIX_LEN + 1..len].copy_from_slice(digits);
    HeaderValue::from_bytes(&id[..len])
        .expect("hexadecimal digits, a dash and decimal digits are visible ASCII")
}

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The length of a `traceparent`: 2 digits for the version, 32 for the trace id, 16 for the parent
/// id and 2 for the flags, separated by hyphens.
const LEN: usize = 55;

/// Returns the header `traceparent`, or `None` if it is missing or occurs more than once.
pub(crate) fn traceparent_of(headers: &HeaderMap) -> Option<&HeaderValue> {
    let mut all = headers.get_all(TRACEPARENT).iter();
    all.next().filter(|_| all.next().is_none())
}

/// Returns the trace context in this header, or `None` if it is malformed. Only the first 55
/// characters are used, because later versions may append more.
///
/// Source: W3C Trace Context, Recommendation of 23 November 2021,
/// <https://www.w3.org/TR/trace-context/>, section 3.2.
pub(crate) fn trace_parent(header: &HeaderValue) -> Option<&str> {
    let text = header.to_str().ok()?;
    let (parent, rest) = text.split_at_checked(LEN)?;
    let mut parts = parent.split('-');
    let mut hex = |len: usize| {
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        parts
            .next()
            .filter(|part| part.len() == len && part.bytes().all(is_hex))
    };
    let (version, trace, span, _flags) = (hex(2)?, hex(32)?, hex(16)?, hex(2)?);
    let is_some = |id: &str| id.bytes().any(|byte| byte != b'0');
    let ends_well = if version == "00" {
        rest.is_empty()
    } else {
        rest.is_empty() || rest.starts_with('-')
    };
    (version != "ff" && is_some(trace) && is_some(span) && ends_well).then_some(parent)
}

/// Checks that the transfer coding of a body is supported. Only `chunked` is supported.
///
/// # Errors
/// Returns 400 `malformed-request` if `chunked` is given twice, and 501 `unknown-transfer-coding`
/// for any other coding.
pub(crate) fn check_transfer_coding(headers: &HeaderMap) -> Result<(), Problem> {
    let fields = headers.get_all(header::TRANSFER_ENCODING).iter();
    let codings = fields
        .flat_map(|field| field.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii);
    let mut is_chunked = false;
    for coding in codings.filter(|coding| !coding.is_empty()) {
        if !coding.eq_ignore_ascii_case(b"chunked") {
            let coding = String::from_utf8_lossy(coding);
            let detail =
                format!("the transfer coding {coding:?} is not supported; use only `chunked`");
            return Err(Problem::new(Slug::UnknownTransferCoding, detail).limit("chunked"));
        }
        if std::mem::replace(&mut is_chunked, true) {
            return Err(Problem::new(
                Slug::MalformedRequest,
                "Transfer-Encoding says `chunked` twice; a body is chunked once",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

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
        let spaced = strict_query(
            "from=2024-01-01T00:00:00%2001:00&encoding=a%2001:00",
            &ALLOWED,
        )
        .expect("valid")
        .with_times(&["from"]);
        assert_eq!(spaced.get("from"), query.get("from"));
        assert_eq!(spaced.get("encoding"), Some("a 01:00"));
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
    fn a_page_holds_from_1_to_1000_items_and_by_default_those_of_its_list() {
        let limit =
            |query: &'static str| page_limit(&strict_query(query, &["limit"]).expect("valid"), 10);
        let limits = ["", "limit=1", "limit=1000"].map(|query| limit(query).ok());
        assert_eq!(limits, [Some(10), Some(1), Some(1_000)]);
        for query in ["limit=0", "limit=1001", "limit=", "limit=+5"] {
            assert_eq!(
                limit(query).expect_err(query).slug(),
                Slug::InvalidParameter
            );
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

    fn params<const N: usize>(template: &str, path: &'static str) -> [String; N] {
        path_params::<N>(template, &Uri::from_static(path))
            .expect("well encoded")
            .map(Cow::into_owned)
    }

    #[test]
    fn parameters_are_cut_where_the_template_has_them() {
        assert_eq!(
            params("/ids/{format}", "/ids/snow%66lake?count=1"),
            ["snowflake"]
        );
        assert_eq!(
            params("/formats/{format}/range", "/formats/siq/range"),
            ["siq"]
        );
        assert_eq!(
            params("/ledgers/{ledger}/ids/{id}", "/ledgers/aa77f99c/ids/00"),
            ["aa77f99c", "00"]
        );
        assert_eq!(
            params("/decode/{*id}", "/decode/did:suou:a/b%2Fc"),
            ["did:suou:a/b/c"]
        );
        assert_eq!(params("/decode/", "/decode/"), [""]);
    }

    #[test]
    fn broken_encoding_is_a_problem() {
        assert!(path_params::<1>("/ids/{format}", &Uri::from_static("/ids/%zz")).is_err());
    }

    fn answer_to(callers: &[u8]) -> HeaderValue {
        let mut headers = HeaderMap::new();
        headers.insert(
            X_REQUEST_ID,
            HeaderValue::from_bytes(callers).expect("a header value"),
        );
        request_id(&headers)
    }

    #[test]
    fn the_callers_id_is_kept_when_it_is_visible_ascii() {
        for id in [
            "a",
            "0af7651916cd43dd8448eb211c80319c",
            "~!{}",
            &"x".repeat(128),
        ] {
            assert_eq!(answer_to(id.as_bytes()), id);
        }
    }

    #[test]
    fn any_other_id_is_replaced() {
        for id in [
            &b""[..],
            b"two words",
            b"tab\there",
            "é".as_bytes(),
            &[b'x'; 129],
        ] {
            let answer = answer_to(id);
            assert_ne!(answer.as_bytes(), id);
            assert!(is_usable(answer.as_bytes()));
        }
    }

    #[test]
    fn ids_made_here_differ() {
        let ids: HashSet<_> = (0..10_000).map(|_| request_id(&HeaderMap::new())).collect();
        assert_eq!(ids.len(), 10_000);
    }

    /// The example of W3C Trace Context, section 3.2.2.
    const EXAMPLE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn read(text: &str) -> Option<String> {
        trace_parent(&HeaderValue::from_str(text).expect("a header value")).map(str::to_owned)
    }

    #[test]
    fn what_is_well_formed_is_kept_and_of_later_versions_the_part_that_is_known() {
        assert_eq!(read(EXAMPLE).as_deref(), Some(EXAMPLE));
        let later = EXAMPLE.replacen("00", "cc", 1);
        for more in ["", "-what-the-future-will-be-like"] {
            assert_eq!(
                read(&format!("{later}{more}")).as_deref(),
                Some(later.as_str())
            );
        }
    }

    #[test]
    fn anything_else_is_none() {
        let later = EXAMPLE.replacen("00", "cc", 1);
        for text in [
            "",
            "00",
            &EXAMPLE.to_uppercase(),
            &EXAMPLE.replacen("00", "ff", 1),
            &EXAMPLE.replace('-', "_"),
            &EXAMPLE.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &EXAMPLE.replace("b7ad6b7169203331", &"0".repeat(16)),
            &EXAMPLE.replacen("0af7", "0ag7", 1),
            &EXAMPLE[..54],
            &format!("{EXAMPLE}-more"),
            &format!("{later}.more"),
            &format!(" {EXAMPLE}"),
            &EXAMPLE.replacen("c-b", "-cb", 1),
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
        assert_eq!(
            trace_parent(
                &HeaderValue::from_bytes("é".repeat(60).as_bytes()).expect("a header value")
            ),
            None
        );
    }

    #[test]
    fn a_request_that_says_it_twice_says_nothing() {
        let mut headers = HeaderMap::new();
        assert_eq!(traceparent_of(&headers), None);
        headers.append(TRACEPARENT, HeaderValue::from_static(EXAMPLE));
        assert_eq!(
            traceparent_of(&headers).and_then(trace_parent),
            Some(EXAMPLE)
        );
        headers.append(TRACEPARENT, HeaderValue::from_static(EXAMPLE));
        assert_eq!(traceparent_of(&headers), None);
    }
}
