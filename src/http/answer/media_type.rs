//! The media types of this service.

/// A media type this service reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MediaType {
    /// `application/json`
    Json,
    /// `text/plain`, always UTF-8
    Text,
    /// `application/x-ndjson`: one JSON value a line
    Ndjson,
    /// `application/octet-stream`
    OctetStream,
    /// `application/vnd.idmint.rows+json`: the numbers of ids at equal distances
    Rows,
    /// `text/html`
    Html,
    /// `application/yaml` (RFC 9512)
    Yaml,
    /// `application/xml`
    Xml,
    /// `text/xml`, which says the same (RFC 7303)
    TextXml,
}

impl MediaType {
    /// Type and subtype, as `Accept` names them.
    pub const fn essence(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Text => "text/plain",
            Self::Ndjson => "application/x-ndjson",
            Self::OctetStream => "application/octet-stream",
            Self::Rows => "application/vnd.idmint.rows+json",
            Self::Html => "text/html",
            Self::Yaml => "application/yaml",
            Self::Xml => "application/xml",
            Self::TextXml => "text/xml",
        }
    }

    /// The value of `Content-Type`.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
            other => other.essence(),
        }
    }
}
