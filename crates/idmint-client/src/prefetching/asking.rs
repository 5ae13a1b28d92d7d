//! The requests of a client that prefetches ids: mint, describe a format, decode, append events.

use serde::Serialize;
use serde_json::Value;

use super::addresses::Addresses;
use super::error::IdsError;
use super::options::IdsOptions;
use super::piece::PieceIds;
use crate::http_client::Client;
use crate::request::{Request, segment};
use idmint_wire::{FormatInfo, MintAnswer, MintRows};

/// The media type of ids without texts, as rows of first id, distance to the next id, and count.
const ROWS: &str = "application/vnd.idmint.rows+json";

/// The kind of ids in a stock: numbers or texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Numbers,
    Texts,
}

/// The requests for ids of one format, and the addresses to which they are sent.
pub(super) struct Asking {
    addresses: Addresses,
    /// The name of the format, encoded as a path segment.
    format: String,
    query: Vec<(String, String)>,
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
        })
    }

    pub(super) async fn fetch(&self, kind: Kind, count: u32) -> Result<Vec<PieceIds>, IdsError> {
        if kind == Kind::Texts {
            let texts = self.mint_batch(count, count).await?;
            return Ok(vec![PieceIds::Texts(texts)]);
        }
        let path = format!("/ids/{}", self.format);
        let parse = |answer: MintRows| {
            let rows = answer.rows.iter().map(|row| row.progression());
            let rows: Vec<_> = rows.collect::<Option<_>>()?;
            let mut left = u64::from(count);
            for row in &rows {
                left = left.checked_sub(row.count)?;
                if row.step == 0 && row.count > 1 {
                    return None;
                }
            }
            let rows = rows.into_iter().map(PieceIds::Numbers).collect();
            (left == 0).then_some(rows)
        };
        self.addresses
            .ask(
                count,
                |client| self.post(client, &path, count).accept(ROWS),
                parse,
            )
            .await
    }

    pub(super) async fn mint(&self, count: u32) -> Result<Vec<String>, IdsError> {
        self.mint_batch(count, 1).await
    }

    /// Mints `count` ids as texts. `batch` is `count` for prefetched ids, and 1 for a call that
    /// needs exactly `count` ids. If `batch` exceeds [`BULK`](super::addresses::BULK) and the
    /// service is busy, each address is tried once, so the caller can soon retry with fewer ids.
    async fn mint_batch(&self, count: u32, batch: u32) -> Result<Vec<String>, IdsError> {
        let path = format!("/ids/{}", self.format);
        let parse = |answer| texts(answer, usize::try_from(count).ok()?);
        self.addresses
            .ask(batch, |client| self.post(client, &path, count), parse)
            .await
    }

    fn post<'a>(&self, client: &'a Client, path: &str, count: u32) -> Request<'a> {
        client
            .post(path)
            .query(&self.query)
            .query(&[("count", count)])
    }

    pub(super) async fn describe(&self) -> Result<FormatInfo, IdsError> {
        let path = format!("/formats/{}", self.format);
        self.addresses
            .ask(1, |client| client.get(&path), Some)
            .await
    }

    pub(super) async fn decode(&self, text: &str) -> Result<Value, IdsError> {
        let path = format!("/decode/{}", segment(text));
        let object = |answer: Value| answer.is_object().then_some(answer);
        self.addresses
            .ask(1, |client| client.get(&path), object)
            .await
    }

    pub(super) async fn append(
        &self,
        ledger: &str,
        key: &str,
        events: &[Value],
    ) -> Result<Vec<String>, IdsError> {
        let path = format!("/ledgers/{}/events", segment(ledger));
        let body = serde_json::to_vec(&Events { events }).expect("JSON is written again");
        let parse = |answer| texts(answer, events.len());
        self.addresses
            .ask(
                1,
                |client| {
                    let keyed = client
                        .post(&path)
                        .idempotency_key(key)
                        .expect("the caller has checked the key");
                    keyed.body("application/json", body.clone())
                },
                parse,
            )
            .await
    }
}

/// Returns the texts of a response if it has exactly `count` texts, each of them not empty.
fn texts(answer: MintAnswer, count: usize) -> Option<Vec<String>> {
    let are_whole = answer.ids.len() == count && answer.ids.iter().all(|text| !text.is_empty());
    are_whole.then_some(answer.ids)
}
