//! What is asked of a service.

use serde::Serialize;
use serde::de::Error;
use serde_json::Value;

use super::addresses::Addresses;
use super::error::IdsError;
use super::options::IdsOptions;
use super::piece::PieceIds;
use crate::client::error::ClientError;
use crate::client::request::segment;
use crate::wire::{FormatInfo, MintAnswer, MintRows};

/// The media type of numbers without texts.
const ROWS: &str = "application/vnd.idmint.rows+json";

/// What a stock is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Numbers,
    Texts,
}

/// What is asked of a service for ids of one format.
pub(super) struct Asking {
    addresses: Addresses,
    /// As it stands in a path.
    format: String,
    query: Vec<(String, String)>,
    urls: String,
}

#[derive(Serialize)]
struct Events<'a> {
    events: &'a [Value],
}

impl Asking {
    pub(super) fn new(
        urls: &[String],
        format: &str,
        options: &IdsOptions,
    ) -> Result<Asking, IdsError> {
        let addresses = Addresses::new(urls, options)?;
        Ok(Asking {
            addresses,
            format: segment(format).to_string(),
            query: options.query.clone(),
            urls: urls.join(", "),
        })
    }

    pub(super) async fn fetch(&self, kind: Kind, count: u32) -> Result<Vec<PieceIds>, IdsError> {
        match kind {
            Kind::Texts => Ok(vec![PieceIds::Texts(self.mint(count).await?)]),
            Kind::Numbers => {
                let path = format!("/ids/{}", self.format);
                let count = [("count", count)];
                let answer: MintRows = self
                    .addresses
                    .ask(|client| {
                        client
                            .post(&path)
                            .query(&self.query)
                            .query(&count)
                            .accept(ROWS)
                    })
                    .await?;
                let rows = answer
                    .rows
                    .iter()
                    .map(|row| row.progression().map(PieceIds::Numbers));
                rows.collect::<Option<_>>().ok_or_else(|| {
                    let cause =
                        ClientError::NotIdmint(serde_json::Error::custom("a row is no numbers"));
                    IdsError::unanswered(&self.urls, cause)
                })
            }
        }
    }

    pub(super) async fn mint(&self, count: u32) -> Result<Vec<String>, IdsError> {
        let path = format!("/ids/{}", self.format);
        let answer: MintAnswer = self
            .addresses
            .ask(|client| {
                client
                    .post(&path)
                    .query(&self.query)
                    .query(&[("count", count)])
            })
            .await?;
        Ok(answer.ids)
    }

    pub(super) async fn describe(&self) -> Result<FormatInfo, IdsError> {
        let path = format!("/formats/{}", self.format);
        self.addresses.ask(|client| client.get(&path)).await
    }

    pub(super) async fn decode(&self, text: &str) -> Result<Value, IdsError> {
        let path = format!("/decode/{}", segment(text));
        self.addresses.ask(|client| client.get(&path)).await
    }

    pub(super) async fn append(
        &self,
        ledger: &str,
        events: &[Value],
    ) -> Result<Vec<String>, IdsError> {
        let path = format!("/ledgers/{}/events", segment(ledger));
        let key = format!("{:032x}", rand::random::<u128>());
        let body = serde_json::to_vec(&Events { events }).expect("JSON is written again");
        let answer: MintAnswer = self
            .addresses
            .ask(|client| {
                let keyed = client
                    .post(&path)
                    .idempotency_key(&key)
                    .expect("digits can be sent");
                keyed.body("application/json", body.clone())
            })
            .await?;
        Ok(answer.ids)
    }
}
