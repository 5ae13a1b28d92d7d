//! Determines the media types of responses and of request bodies.

use axum::http::{HeaderMap, header};

use super::body::{MINT_MEDIA_TYPES, MediaType};
use super::problem::Problem;
use super::problem_catalog::Slug;
use idmint_core::id::{Format, Rule};

/// The maximum q-value, in thousandths.
const QUALITY_MAX: u16 = 1_000;

/// Returns the offered media type that the caller prefers. The first offered type wins a tie. It is
/// also used if the caller has no preference.
///
/// Follows RFC 9110 section 12.5.1: the most specific range that covers a type determines its
/// q-value, and 0 rules the type out. Parameters other than `q` are ignored, because a request for
/// `application/json;indent=2` is better answered with JSON than refused. Unreadable ranges are
/// skipped. A header without any readable range counts as absent. `*` for `*/*` and `q=.2` are
/// accepted, because Java's `HttpURLConnection` has sent both for decades.
///
/// # Errors
/// Returns 406 `not-acceptable`, listing the offered types, if the header rules all of them out.
pub fn negotiate(headers: &HeaderMap, offered: &[MediaType]) -> Result<MediaType, Problem> {
    if accepts_anything(headers) {
        Ok(first_of(offered))
    } else {
        choose(headers, offered)
    }
}

/// `true` if the caller has no preference. Most callers have none.
#[inline]
fn accepts_anything(headers: &HeaderMap) -> bool {
    let Some(accept) = headers.get(header::ACCEPT) else {
        return true;
    };
    accept == "*/*" && headers.get_all(header::ACCEPT).iter().nth(1).is_none()
}

/// Implements [`negotiate`] for a caller with a preference.
fn choose(headers: &HeaderMap, offered: &[MediaType]) -> Result<MediaType, Problem> {
    let fields = headers.get_all(header::ACCEPT);
    let values = fields.iter().filter_map(|value| value.to_str().ok());
    let ranges: Vec<Range<'_>> = values
        .flat_map(|value| split_unquoted(value, ','))
        .filter_map(Range::parse)
        .collect();
    if ranges.is_empty() {
        return Ok(first_of(offered));
    }
    let mut best = None;
    for &media_type in offered {
        let quality = quality_of(media_type, &ranges);
        if quality > best.map_or(0, |(_, quality)| quality) {
            best = Some((media_type, quality));
        }
        // Stop here, because no later type can have a higher q-value.
        if quality == QUALITY_MAX {
            break;
        }
    }
    best.map(|(media_type, _)| media_type)
        .ok_or_else(|| not_acceptable(offered))
}

/// Returns the media type of a request body, which must be one of the `accepted` types. An empty
/// body without a type has the first accepted type.
///
/// The type is never guessed from the body, because a page of another site can make a browser send
/// a body without a type.
///
/// # Errors
/// Returns 415 `unsupported-media-type` if the type is missing or not accepted, or if the body has
/// a content coding such as gzip.
pub fn media_type_of_body(
    headers: &HeaderMap,
    is_empty: bool,
    accepted: &[MediaType],
) -> Result<MediaType, Problem> {
    if let Some(coding) = headers
        .get(header::CONTENT_ENCODING)
        .filter(|coding| *coding != "identity")
    {
        let detail =
            format!("content-encoding {coding:?} is not supported; send the body uncompressed");
        return Err(Problem::new(Slug::UnsupportedMediaType, detail).reason("content_encoding"));
    }
    let given = headers.get(header::CONTENT_TYPE);
    if given.is_none() && is_empty {
        return Ok(*accepted
            .first()
            .expect("a route accepts at least one media type"));
    }
    let text = given
        .and_then(|given| given.to_str().ok())
        .unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default().trim();
    accepted
        .iter()
        .copied()
        .find(|accepted| accepted.essence().eq_ignore_ascii_case(essence))
        .ok_or_else(|| {
            let accepts: Vec<_> = accepted.iter().map(|accepted| accepted.essence()).collect();
            let given = given.map_or_else(|| "missing".to_owned(), |given| format!("{given:?}"));
            let detail = format!(
                "content-type is {given}; this route reads {}",
                accepts.join(", ")
            );
            Problem::new(Slug::UnsupportedMediaType, detail)
                .reason("content_type")
                .accepts(accepts)
        })
}

fn first_of(offered: &[MediaType]) -> MediaType {
    *offered
        .first()
        .expect("a route offers at least one representation")
}

fn not_acceptable(offered: &[MediaType]) -> Problem {
    let types: Vec<_> = offered.iter().map(|offered| offered.essence()).collect();
    let detail = format!(
        "this route returns {}; the Accept header excludes that",
        types.join(", ")
    );
    Problem::new(Slug::NotAcceptable, detail).accepts(types)
}

/// Returns the caller's q-value for a media type in thousandths, from 0 to 1000. The value 0 means
/// that the type is not acceptable.
fn quality_of(media_type: MediaType, ranges: &[Range<'_>]) -> u16 {
    let covering = ranges
        .iter()
        .filter_map(|range| Some((range.specificity(media_type)?, range.quality)));
    // Among equally specific ranges the highest q-value counts. Such ranges differ only in
    // parameters, which are ignored.
    covering.max().map_or(0, |(_, quality)| quality)
}

/// One media range of an `Accept` header.
struct Range<'a> {
    main: &'a str,
    sub: &'a str,
    quality: u16,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = split_unquoted(text, ';');
        let essence = parts.next()?.trim();
        let (main, sub) = if essence == "*" {
            ("*", "*")
        } else {
            essence.split_once('/')?
        };
        if !is_token(main) || !is_token(sub) || (main == "*" && sub != "*") {
            return None;
        }
        let mut quality = QUALITY_MAX;
        for parameter in parts {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            if name.trim().eq_ignore_ascii_case("q") {
                quality = thousandths(value.trim())?;
                break;
            }
        }
        Some(Self { main, sub, quality })
    }

    fn specificity(&self, media_type: MediaType) -> Option<u8> {
        let (main, sub) = media_type.essence().split_once('/')?;
        match (self.main, self.sub) {
            ("*", _) => Some(0),
            (m, "*") if m.eq_ignore_ascii_case(main) => Some(1),
            (m, s) if m.eq_ignore_ascii_case(main) && s.eq_ignore_ascii_case(sub) => Some(2),
            _ => None,
        }
    }
}

/// Parses a q-value in thousandths: `0.25` is 250. Digits after the third are ignored.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: u16 = match whole {
        "0" => 0,
        "" if !fraction.is_empty() => 0,
        "1" => QUALITY_MAX,
        _ => return None,
    };
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = fraction.bytes().chain(*b"000").take(3);
    let thousandths = digits.fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
    Some(whole + thousandths).filter(|&quality| quality <= QUALITY_MAX)
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// Splits a text at separators that are not inside quotes.
fn split_unquoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let mut escaped = false;
    text.split(move |c| {
        if escaped {
            escaped = false;
        } else if quoted && c == '\\' {
            escaped = true;
        } else if c == '"' {
            quoted = !quoted;
        }
        c == separator && !quoted
    })
}

/// Returns the media type of a response with minted ids of this format.
///
/// # Errors
/// Returns 406 `not-acceptable` if no offered type is acceptable. The reason is `rows` if the caller
/// accepts only rows of equally spaced ids, but the ids of the format are not equally spaced.
#[inline]
pub(crate) fn negotiate_minted(headers: &HeaderMap, format: &Format) -> Result<MediaType, Problem> {
    if accepts_anything(headers) {
        return Ok(MediaType::Json);
    }
    choose(headers, offered(format)).map_err(|problem| explain(problem, headers, format))
}

fn offered(format: &Format) -> &'static [MediaType] {
    let [without_rows @ .., _] = &MINT_MEDIA_TYPES;
    if format.rule == Rule::Sequenced {
        &MINT_MEDIA_TYPES
    } else {
        without_rows
    }
}

fn explain(problem: Problem, headers: &HeaderMap, format: &Format) -> Problem {
    if choose(headers, &[MediaType::Rows]).is_err() {
        return problem;
    }
    let rows = MediaType::Rows.essence();
    let accepts = offered(format).iter().map(|media| media.essence());
    let why = match format.rule {
        Rule::Random => "its ids are drawn at random",
        Rule::Grouped => "its ids are minted from reports",
        Rule::Chained => "its ids are minted from events",
        Rule::Sequenced | Rule::DecodeOnly => "its ids are not minted here",
    };
    let detail = format!(
        "the ids of `{}` cannot be sent as {rows}, which describes ids at equal distances: {why}",
        format.name
    );
    Problem::new(Slug::NotAcceptable, detail)
        .reason("rows")
        .accepts(accepts)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderValue, StatusCode};

    use super::*;

    const MINT: [MediaType; 4] = [
        MediaType::Json,
        MediaType::Text,
        MediaType::Ndjson,
        MediaType::OctetStream,
    ];

    fn accepting(values: &[&str]) -> HeaderMap {
        let values = values
            .iter()
            .map(|value| HeaderValue::from_str(value).expect("a header value"));
        values.map(|value| (header::ACCEPT, value)).collect()
    }

    #[test]
    fn the_most_preferred_representation_is_chosen() {
        use MediaType::{Json, Ndjson, OctetStream, Text};
        for (accept, chosen) in [
            ("*/*", Some(Json)),
            ("", Some(Json)),
            ("application/json", Some(Json)),
            ("text/plain", Some(Text)),
            ("TEXT/Plain", Some(Text)),
            ("text/*", Some(Text)),
            ("application/*", Some(Json)),
            ("application/x-ndjson, application/json", Some(Json)), // a tie
            ("application/x-ndjson, application/json;q=0.9", Some(Ndjson)),
            ("application/json;q=0.5, text/plain;q=0.501", Some(Text)),
            (
                "application/*;q=0.5, application/octet-stream",
                Some(OctetStream),
            ),
            ("*/*;q=0.1, text/plain;q=0.2", Some(Text)),
            ("*/*, application/json;q=0", Some(Text)),
            ("application/*;q=0, */*", Some(Text)),
            (
                "application/*;q=0, application/x-ndjson;q=0.001",
                Some(Ndjson),
            ),
            ("application/json;indent=2", Some(Json)),
            ("text/plain;format=flowed;q=0.1, text/plain", Some(Text)),
            ("text/plain; charset=utf-8 ; Q=1.000", Some(Text)),
            ("image/png;title=\"a,b;c\\\"d\";q=1, text/plain", Some(Text)),
            (
                "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",
                Some(Json),
            ), // Java
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                Some(Json),
            ), // a browser
            ("nonsense", Some(Json)),
            ("nonsense, text/plain", Some(Text)),
            ("application/json;q=7, text/plain;q=0.1", Some(Text)),
            ("*/json", Some(Json)),
            ("image/png", None),
            ("*/*;q=0", None),
            ("application/json;q=0.0", None),
            ("application/json;q=0", None),
        ] {
            let answer = negotiate(&accepting(&[accept]), &MINT);
            assert_eq!(answer.as_ref().ok(), chosen.as_ref(), "{accept}");
        }
    }

    #[test]
    fn several_headers_count_as_one() {
        assert_eq!(
            negotiate(&accepting(&["image/png", "text/plain;q=0.1"]), &MINT).ok(),
            Some(MediaType::Text)
        );
        assert_eq!(
            negotiate(&accepting(&["*/*", "application/json;q=0"]), &MINT).ok(),
            Some(MediaType::Text)
        );
        assert_eq!(
            negotiate(&HeaderMap::new(), &MINT).ok(),
            Some(MediaType::Json)
        );
    }

    #[test]
    fn a_refusal_lists_what_there_is() {
        let problem =
            negotiate(&accepting(&["image/png"]), &MINT).expect_err("no image is offered");
        assert_eq!(problem.status(), StatusCode::NOT_ACCEPTABLE);
        assert!(problem.detail().contains("application/x-ndjson"));
    }

    #[test]
    fn quality_has_three_digits() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1", Some(1_000)),
            ("1.000", Some(1_000)),
            ("0.5", Some(500)),
            (".5", Some(500)),
            ("0.1239", Some(123)),
            ("0.", Some(0)),
            ("1.001", None),
            ("", None),
            (".", None),
            ("-1", None),
            ("0.a", None),
        ] {
            assert_eq!(thousandths(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_body_of_another_type_or_packed_is_refused() {
        let accepted = [MediaType::Json, MediaType::Text];
        let with = |name, value: &str| {
            HeaderMap::from_iter([(name, HeaderValue::from_str(value).expect("a value"))])
        };
        for (value, expected) in [
            ("application/json", Some(MediaType::Json)),
            ("Application/JSON; charset=utf-8", Some(MediaType::Json)),
            ("text/plain;charset=utf-8", Some(MediaType::Text)),
            ("application/x-www-form-urlencoded", None),
            ("", None),
        ] {
            assert_eq!(
                media_type_of_body(&with(header::CONTENT_TYPE, value), false, &accepted).ok(),
                expected,
                "{value}"
            );
        }
        let untyped = media_type_of_body(&HeaderMap::new(), false, &accepted).expect_err("no type");
        assert!(
            untyped
                .detail()
                .starts_with("content-type is missing; this route reads application/json"),
            "{untyped:?}"
        );
        assert_eq!(
            media_type_of_body(&HeaderMap::new(), true, &accepted).ok(),
            Some(MediaType::Json)
        );
        let packed = media_type_of_body(&with(header::CONTENT_ENCODING, "gzip"), true, &accepted)
            .expect_err("gzip");
        assert_eq!(packed.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
}
