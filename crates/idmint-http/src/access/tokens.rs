//! The tokens that a service accepts. Its operator lists them in a file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use serde::{Deserialize, Serialize};

use super::permit::Permit;
use super::scope::Scope;
use super::token_digest::TokenDigest;
use super::token_text::without_tokens;
use idmint_core::id::FormatAlias;
use idmint_core::time::UnixTime;
use idmint_records::ledger::{LedgerId, SeriesPattern};
use idmint_service::{Expiry, ExpiryKind};

/// The maximum number of tokens. The number is limited because the token of each request is
/// compared with all of them.
const TOKENS_MAX: usize = 1_024;

/// The tokens of a service.
#[derive(Debug, Default)]
pub struct Tokens {
    permits: Vec<(TokenDigest, Arc<Permit>)>,
    expiries: Vec<Expiry>,
}

/// The content of a token file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenFile {
    #[serde(default)]
    token: Vec<TokenEntry>,
}

/// One token of the file, with its owner and its permissions. Two tokens may have the same name, so
/// that an owner can use the old and the new token while replacing one with the other.
///
/// ```
/// use idmint_http::{Scope, TokenDigest, TokenEntry};
///
/// let entry = TokenEntry {
///     name: "billing".to_owned(),
///     sha256: TokenDigest::of(b"a token"),
///     scopes: vec![Scope::Mint],
///     formats: Some(vec!["payment".to_owned()]),
///     ledgers: None,
///     series: None,
///     expires: None,
/// };
/// assert!(entry.to_toml().starts_with("[[token]]\nname = \"billing\"\n"));
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenEntry {
    /// The owner of the token, for messages and the log.
    pub name: String,
    /// The SHA-256 of the token.
    pub sha256: TokenDigest,
    /// The scopes, at least one.
    pub scopes: Vec<Scope>,
    /// The permitted formats, or all formats if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formats: Option<Vec<String>>,
    /// The permitted ledgers, or all ledgers if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledgers: Option<Vec<String>>,
    /// The permitted series of numbers, or prefixes of their names such as `acme-*`. Absent means
    /// all series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<Vec<String>>,
    /// The time from which the token is no longer accepted, such as `2027-01-01T00:00:00Z`. A token
    /// without this time never expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// An error in a token file.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// The file cannot be read.
    #[error("http.tokens: {} cannot be read", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// The file is not a valid token file, one of its tokens is invalid, or it has no tokens or too
    /// many. The text names the file, and the line or the token. It does not quote the line, because
    /// the line may contain a token.
    #[error("http.tokens: {0}")]
    Invalid(String),
}

impl TokenEntry {
    /// Returns the TOML text that lists this token in a token file.
    pub fn to_toml(&self) -> String {
        format!(
            "[[token]]\n{}",
            toml::to_string(self).expect("texts and lists of texts always serialize")
        )
    }

    /// Checks that a service with these formats accepts this entry. A single invalid entry makes
    /// the service refuse the whole token file.
    ///
    /// # Errors
    /// Returns the reason as text, in which tokens are redacted.
    pub fn check(&self, formats: &[String]) -> Result<(), String> {
        self.permit(formats)
            .map(drop)
            .map_err(|reason| without_tokens(&reason))
    }

    /// Returns the permit of this token. `formats` are the formats of the service.
    fn permit(&self, formats: &[String]) -> Result<Permit, String> {
        if self.name.is_empty() {
            return Err("name is empty".to_owned());
        }
        if without_tokens(&self.name) != self.name {
            return Err(
                "name contains a token, but names are logged; use a name without the secret"
                    .to_owned(),
            );
        }
        let scopes: BTreeSet<_> = self.scopes.iter().copied().collect();
        if scopes.is_empty() {
            return Err(
                "scopes is empty; name mint, ledger, decode, metrics, import or number".to_owned(),
            );
        }
        let current = |name: &String| FormatAlias::current_name(name).to_owned();
        let is_unknown = |name: &&String| !formats.contains(&current(name));
        if let Some(unknown) = self.formats.iter().flatten().find(is_unknown) {
            return Err(format!(
                "format {unknown:?} is not one of {}",
                formats.join(", ")
            ));
        }
        let ledger = |text: &String| {
            let refuse = |_| format!("ledger {text:?} must be {}", LedgerId::RULE);
            LedgerId::from_text(text).map_err(refuse)
        };
        let ledgers = self
            .ledgers
            .as_ref()
            .map(|ledgers| ledgers.iter().map(ledger).collect::<Result<_, _>>());
        let pattern = |text: &String| {
            SeriesPattern::from_text(text)
                .ok_or_else(|| format!("series {text:?} must be {}", SeriesPattern::RULE))
        };
        let series = self
            .series
            .as_ref()
            .map(|series| series.iter().map(pattern).collect::<Result<_, _>>());
        let expires = self.expires.as_ref().map(|text| {
            text.parse::<UnixTime>()
                .map_err(|error| format!("expires: {error}"))
        });
        Ok(Permit {
            shown_by: format!("the token `{}`", self.name),
            scopes,
            formats: self
                .formats
                .as_ref()
                .map(|formats| formats.iter().map(current).collect()),
            ledgers: ledgers.transpose()?,
            series: series.transpose()?,
            expires: expires.transpose()?,
            allowance: Arc::default(),
        })
    }
}

impl Tokens {
    /// Reads the tokens in a file. `formats` are the formats of the service.
    ///
    /// # Errors
    /// Returns [`TokensError`], which names the file, the token, the value and the bound.
    pub fn load(path: &Path, formats: &[String]) -> Result<Tokens, TokensError> {
        let text = fs::read_to_string(path).map_err(|cause| TokensError::Unreadable {
            path: path.to_owned(),
            cause,
        })?;
        Tokens::parse(&text, path, formats)
    }

    /// Parses the text of a token file. `path` is named in errors, and `formats` are the formats of
    /// the service.
    ///
    /// # Errors
    /// Returns [`TokensError`], which names the file, the token, the value and the bound.
    pub fn parse(text: &str, path: &Path, formats: &[String]) -> Result<Tokens, TokensError> {
        let file = path.display();
        let malformed = |error: toml::de::Error| {
            let before = error
                .span()
                .and_then(|span| text.get(..span.start))
                .unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let reason = without_tokens(&error.message().replace('\n', "; "));
            TokensError::Invalid(format!("{file}: line {line}: {reason}"))
        };
        let TokenFile { token: entries } = toml::from_str(text).map_err(malformed)?;
        let count = entries.len();
        if !(1..=TOKENS_MAX).contains(&count) {
            return Err(TokensError::Invalid(format!(
                "{file} has {count} tokens, but must have 1 to {TOKENS_MAX}"
            )));
        }
        let mut tokens = Tokens::default();
        for entry in &entries {
            let wrong = |reason: &str| {
                let (name, reason) = (without_tokens(&entry.name), without_tokens(reason));
                TokensError::Invalid(format!("{file}: token `{name}`: {reason}"))
            };
            let permit = entry.permit(formats).map_err(|reason| wrong(&reason))?;
            if tokens.permit(&entry.sha256).is_some() {
                return Err(wrong(
                    "the same sha256 is listed for another token; remove one of the two",
                ));
            }
            tokens.expiries.extend(permit.expires.map(|at| Expiry {
                kind: ExpiryKind::Token,
                name: entry.name.clone(),
                at,
            }));
            let permit = (entry.sha256.clone(), Arc::new(permit));
            tokens.permits.push(permit);
        }
        Ok(tokens)
    }

    /// Returns the permits of all tokens.
    pub(super) fn permits(&self) -> impl Iterator<Item = &Arc<Permit>> {
        self.permits.iter().map(|(_, permit)| permit)
    }

    /// Returns the tokens that expire.
    pub fn expiries(&self) -> &[Expiry] {
        &self.expiries
    }

    /// Returns the number of tokens.
    pub fn count(&self) -> usize {
        self.permits.len()
    }

    /// Returns the permit of the token with this digest. All tokens are compared, so the duration
    /// does not reveal which token matched.
    pub(super) fn permit(&self, digest: &TokenDigest) -> Option<&Arc<Permit>> {
        self.permits.iter().fold(None, |found, (known, permit)| {
            if known.is_of_the_same_token(digest) {
                Some(permit)
            } else {
                found
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, token: &str, more: &str) -> String {
        format!(
            "[[token]]\nname = \"{name}\"\nsha256 = \"{}\"\n{more}\n",
            TokenDigest::of(token.as_bytes())
        )
    }

    fn parse(text: &str) -> Result<Tokens, String> {
        let formats = ["payment", "snowflake"].map(str::to_owned);
        Tokens::parse(text, Path::new("tokens.toml"), &formats).map_err(|error| error.to_string())
    }

    #[test]
    fn each_token_has_its_permit_and_two_of_one_name_are_valid_at_once() {
        let text = entry(
            "billing",
            "one",
            "scopes = [\"mint\"]\nformats = [\"payment\"]",
        ) + &entry(
            "billing",
            "two",
            "scopes = [\"mint\", \"decode\"]\nexpires = \"2027-01-01T00:00:00Z\"",
        ) + &entry(
            "audit",
            "three",
            "scopes = [\"ledger\"]\nledgers = [\"aa77f99c\"]",
        );
        let tokens = parse(&text).expect("three good ones");
        let permit = |token: &str| tokens.permit(&TokenDigest::of(token.as_bytes()));
        let [one, two, three] =
            ["one", "two", "three"].map(|token| permit(token).expect("it is listed"));
        assert!(one.is_confined() && !two.is_confined() && three.is_confined());
        let billing = "the token `billing`";
        assert_eq!(
            (
                &*one.shown_by,
                &*two.shown_by,
                two.scopes.len(),
                tokens.count()
            ),
            (billing, billing, 2, 3)
        );
        assert!(two.expires.is_some() && permit("four").is_none() && permit("").is_none());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_token_and_the_bound() {
        for (text, said) in [
            (String::new(), "has 0 tokens, but must have 1 to 1024"),
            (entry("a", "t", "scopes = []"), "token `a`: scopes is empty"),
            (
                entry("a", "t", "scopes = [\"all\"]"),
                "unknown variant `all`",
            ),
            (entry("", "t", "scopes = [\"mint\"]"), "name is empty"),
            (
                entry("a", "t", "scopes = [\"mint\"]\nformats = [\"siq\"]"),
                "format \"siq\" is not one of payment, snowflake",
            ),
            (
                entry("a", "t", "scopes = [\"ledger\"]\nledgers = [\"AA77F99C\"]"),
                "ledger \"AA77F99C\" must be 8 lower-case",
            ),
            (
                entry("a", "t", "scopes = [\"number\"]\nseries = [\"*-2026\"]"),
                "series \"*-2026\" must be the name of a series",
            ),
            (
                entry("a", "t", "scopes = [\"mint\"]\nexpires = \"soon\""),
                "token `a`: expires: ",
            ),
            (
                entry("a", "t", "scopes = [\"mint\"]\nformat = [\"payment\"]"),
                "unknown field `format`",
            ),
            (
                entry("a", "t", "scopes = [\"mint\"]").repeat(2),
                "the same sha256 is listed for another token",
            ),
            (
                "[[token]]\nname = \"a\"\nsha256 = \"secret\"\nscopes = [\"mint\"]".to_owned(),
                "64 lower-case hexadecimal",
            ),
        ] {
            let error = parse(&text).expect_err(said);
            assert!(
                error.contains("tokens.toml") && error.contains(said),
                "{error}"
            );
        }
    }

    #[test]
    fn an_entry_is_read_as_it_is_written() {
        let entry = TokenEntry {
            name: "billing".to_owned(),
            sha256: TokenDigest::of(b"one"),
            scopes: vec![Scope::Mint, Scope::Decode],
            formats: Some(vec!["payment".to_owned()]),
            ledgers: Some(vec!["aa77f99c".to_owned()]),
            series: Some(vec!["acme-*".to_owned()]),
            expires: Some("2027-01-01T00:00:00Z".to_owned()),
        };
        let tokens = parse(&entry.to_toml()).expect("what is written can be read");
        assert!(
            tokens
                .permit(&TokenDigest::of(b"one"))
                .is_some_and(|permit| permit.scopes.contains(&Scope::Decode))
        );
    }
}
