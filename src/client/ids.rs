//! `POST /ids/{format}`: ids, and documents with ids in them.

use serde::Serialize;

use super::error::ClientError;
use super::http_client::Client;
use super::request::{Request, segment};
use crate::wire::ReportRequest;

/// Which ids, and in which encoding. The service decides what is left out.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct MintQuery<'a> {
    /// How many.
    pub count: Option<u32>,
    /// The encoding.
    pub encoding: Option<&'a str>,
    /// What stands before each id, where the format has prefixes.
    pub prefix: Option<&'a str>,
    /// The type, where the format has types.
    #[serde(rename = "type")]
    pub of_type: Option<&'a str>,
    /// The domain, where the format has domains.
    pub domain: Option<&'a str>,
}

/// Conjunction Data Messages, as they are sent.
#[derive(Debug, Clone)]
pub struct CdmBody {
    /// The media type of their form.
    pub media_type: &'static str,
    /// The document.
    pub bytes: Vec<u8>,
    /// Whether messages keep the ids that they came with, however far their times have moved.
    pub keep_noted: bool,
}

impl Client {
    /// Mints ids, one a line; for a format that is minted from reports, the id of this one. Asks once: ids that come
    /// twice are other ids.
    ///
    /// # Errors
    /// [`ClientError`].
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

    /// The ids of the messages in a document, one a line.
    ///
    /// # Errors
    /// [`ClientError`].
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

    /// A document with the ids of its messages put in.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn annotate_document(
        &self,
        format: &str,
        encoding: Option<&str>,
        document: CdmBody,
    ) -> Result<Vec<u8>, ClientError> {
        let request = self
            .post_document(format, encoding, document)
            .query(&[("return", "cdm")]);
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
