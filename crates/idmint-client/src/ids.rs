//! `POST /ids/{format}`: mints ids, and annotates documents with ids.

use serde::Serialize;

use super::error::ClientError;
use super::http_client::Client;
use super::request::{Request, segment};
use idmint_wire::ReportRequest;

/// The query of a mint request. The service uses its default for each `None`.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct MintQuery<'a> {
    /// The number of ids to mint.
    pub count: Option<u32>,
    /// The name of the encoding in which the ids are written.
    pub encoding: Option<&'a str>,
    /// The prefix of each id, for formats with prefixes.
    pub prefix: Option<&'a str>,
    /// The type of the ids, such as `user`, for formats with types.
    #[serde(rename = "type")]
    pub of_type: Option<&'a str>,
    /// The domain of the ids, for formats with domains.
    pub domain: Option<&'a str>,
}

/// A document with Conjunction Data Messages, as sent in a request.
#[derive(Debug, Clone)]
pub struct CdmBody {
    /// The media type of the document.
    pub media_type: &'static str,
    /// The document.
    pub bytes: Vec<u8>,
    /// `true` if each message keeps the id that it already contains. The id is kept even if the
    /// time of closest approach has changed a lot since then.
    pub keep_noted: bool,
}

impl Client {
    /// Mints ids and returns them, one per line. For a format whose ids are made from reports,
    /// returns the id for `report` instead.
    ///
    /// The request is sent only once, because a retry would mint other ids.
    ///
    /// # Errors
    /// Returns [`ClientError`] if the request fails.
    pub async fn mint(
        &self,
        format: &str,
        query: MintQuery<'_>,
        report: Option<&ReportRequest<'_>>,
    ) -> Result<Vec<u8>, ClientError> {
        let request = self.post_ids(format).query(&query).accept("text/plain");
        let request = match report {
            Some(report) => {
                let body = serde_json::to_vec(report).expect("texts and numbers always serialize");
                request.body("application/json", body)
            }
            None => request,
        };
        Ok(request.send().await?.body)
    }

    /// Returns the ids of the Conjunction Data Messages in a document, one per line.
    ///
    /// # Errors
    /// Returns [`ClientError`] if the request fails.
    pub async fn ids_of_document(
        &self,
        format: &str,
        encoding: Option<&str>,
        document: CdmBody,
    ) -> Result<String, ClientError> {
        let request = self
            .post_document(format, encoding, document)
            .accept("text/plain");
        Ok(String::from_utf8_lossy(&request.send().await?.body).into_owned())
    }

    /// Returns the document with the ids of its Conjunction Data Messages inserted.
    ///
    /// # Errors
    /// Returns [`ClientError`] if the request fails.
    pub async fn annotate_document(
        &self,
        format: &str,
        encoding: Option<&str>,
        document: CdmBody,
    ) -> Result<Vec<u8>, ClientError> {
        let form = match document.media_type {
            "text/csv" => "csv",
            _ => "cdm",
        };
        let request = self
            .post_document(format, encoding, document)
            .query(&[("return", form)]);
        Ok(request.send().await?.body)
    }

    fn post_document(
        &self,
        format: &str,
        encoding: Option<&str>,
        document: CdmBody,
    ) -> Request<'_> {
        let query = MintQuery {
            encoding,
            ..MintQuery::default()
        };
        let noted = document.keep_noted.then_some(("noted", "keep"));
        self.post_ids(format)
            .query(&query)
            .query(&Vec::from_iter(noted))
            .body(document.media_type, document.bytes)
    }

    fn post_ids(&self, format: &str) -> Request<'_> {
        self.post(&format!("/ids/{}", segment(format)))
    }
}
