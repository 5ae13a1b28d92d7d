//! The parameters of a path, as the template of its route names them.

use std::borrow::Cow;

use axum::http::Uri;

use super::query::percent_decode;
use crate::http::answer::Problem;

/// What the path of a request has for the parameters of its route, in order, percent-decoded.
///
/// `template`: as the router has it, such as `/ledgers/{ledger}/ids/{id}`; `{*id}` takes all that is left of the path.
/// What a path does not have, because it is not one of that route, is empty.
///
/// # Errors
/// 400 `malformed-request` for broken encoding.
pub(in crate::http) fn path_params<'a, const N: usize>(
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
