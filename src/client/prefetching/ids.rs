//! Ids of one format, most of them without a request.

use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError};

use arc_swap::{ArcSwap, Guard};
use serde_json::Value;

use super::asking::Kind;
use super::error::IdsError;
use super::number_text::NumberText;
use super::options::IdsOptions;
use super::owner::Owner;
use super::piece::{Piece, PieceIds};
use super::stock::Filled;
use crate::wire::FormatInfo;

/// Ids of one format, most of them without a request: a stock of them is filled before it is empty.
///
/// Any number of threads may share one. An id older than [`IdsOptions::prefetch_validity`] is never handed out; ids that were not
/// handed out when it is dropped stay gaps. One object for a process: see [`IdsOptions::may_be_forked`]. Where a machine or
/// container is copied while it runs, make it after the copy, which nothing tells of.
///
/// ```no_run
/// use idmint::client::{Ids, IdsOptions};
///
/// let urls = ["http://10.0.0.1:8080", "http://10.0.0.2:8080"];
/// let ids = Ids::new(&urls, "snowflake", IdsOptions { token: Some("…".to_owned()), ..IdsOptions::default() })?;
/// let id: u128 = ids.next()?;
/// let text: String = ids.next_text()?;                        // of any format
/// let thousand: Vec<String> = ids.mint(1_000)?;
/// let event = serde_json::json!({ "event": "Paid", "entities": {} });
/// let appended: Vec<String> = ids.append("aa77f99c", &[event])?;
/// # Ok::<(), idmint::client::IdsError>(())
/// ```
pub struct Ids {
    urls: Vec<String>,
    format: String,
    options: IdsOptions,
    numbers: ArcSwap<Piece>,
    texts: ArcSwap<Piece>,
    /// How texts are made of numbers, once that is known; `None` if only the service makes them.
    number_text: OnceLock<Option<NumberText>>,
    owner: ArcSwap<Owner>,
}

impl fmt::Debug for Ids {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Ids")
            .field("urls", &self.urls)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

impl Ids {
    /// Ids of a format of the service at these addresses; another one is asked after a failure. Nothing is sent yet.
    ///
    /// # Errors
    /// [`IdsError`] for options or addresses that cannot be.
    pub fn new<U: AsRef<str>>(
        urls: &[U],
        format: &str,
        options: IdsOptions,
    ) -> Result<Ids, IdsError> {
        options.check()?;
        let urls: Vec<String> = urls.iter().map(|url| url.as_ref().to_owned()).collect();
        let owner = Owner::new(&urls, format, &options)?;
        let empty = || ArcSwap::from_pointee(Piece::empty(owner.process));
        let (numbers, texts) = (empty(), empty());
        let owner = ArcSwap::from_pointee(owner);
        Ok(Ids {
            urls,
            format: format.to_owned(),
            options,
            numbers,
            texts,
            number_text: OnceLock::new(),
            owner,
        })
    }

    /// The next id. Waits only when there is none here; in a task, take [`Ids::next_in_task`].
    ///
    /// # Errors
    /// [`IdsError`], when there is none here and no address gives one in time.
    #[inline]
    pub fn next(&self) -> Result<u128, IdsError> {
        loop {
            let piece = self.numbers.load();
            if let Some(id) = self.number_of(&piece) {
                return Ok(id);
            }
            if let Some(filled) = self.advance(Kind::Numbers, piece)? {
                wait(filled)?;
            }
        }
    }

    /// The next id as a text. Waits only when there is none here; in a task, take [`Ids::next_text_in_task`].
    ///
    /// # Errors
    /// As [`Ids::next`].
    pub fn next_text(&self) -> Result<String, IdsError> {
        let number_text = match self.number_text.get() {
            Some(known) => *known,
            None => self.learn()?,
        };
        if let Some(number_text) = number_text {
            return Ok(number_text.text_of(self.next()?));
        }
        loop {
            let piece = self.texts.load();
            if let Some(text) = self.text_of(&piece) {
                return Ok(text);
            }
            if let Some(filled) = self.advance(Kind::Texts, piece)? {
                wait(filled)?;
            }
        }
    }

    /// The next id. Lets other tasks run when there is none here.
    ///
    /// # Errors
    /// As [`Ids::next`].
    pub async fn next_in_task(&self) -> Result<u128, IdsError> {
        loop {
            let filled = {
                let piece = self.numbers.load();
                if let Some(id) = self.number_of(&piece) {
                    return Ok(id);
                }
                self.advance(Kind::Numbers, piece)?
            };
            if let Some(filled) = filled {
                filled.await.unwrap_or_else(|_| Err(ended()))?;
            }
        }
    }

    /// The next id as a text. Lets other tasks run when there is none here.
    ///
    /// # Errors
    /// As [`Ids::next`].
    pub async fn next_text_in_task(&self) -> Result<String, IdsError> {
        let number_text = match self.number_text.get() {
            Some(known) => *known,
            None => {
                let owner = self.owner_of_this_process()?;
                let asking = Arc::clone(&owner.asking);
                let described = owner
                    .runtime()
                    .spawn(async move { asking.describe().await })
                    .await;
                self.learn_from(described.unwrap_or_else(|_| Err(ended())))?
            }
        };
        if let Some(number_text) = number_text {
            return Ok(number_text.text_of(self.next_in_task().await?));
        }
        loop {
            let filled = {
                let piece = self.texts.load();
                if let Some(text) = self.text_of(&piece) {
                    return Ok(text);
                }
                self.advance(Kind::Texts, piece)?
            };
            if let Some(filled) = filled {
                filled.await.unwrap_or_else(|_| Err(ended()))?;
            }
        }
    }

    /// So many ids as texts, minted now: all of them or none. A retry mints others, so no id comes twice. Waits.
    ///
    /// # Errors
    /// [`IdsError`].
    pub fn mint(&self, count: u32) -> Result<Vec<String>, IdsError> {
        let owner = self.owner_of_this_process()?;
        owner.runtime().block_on(owner.asking.mint(count))
    }

    /// What the text can be: the answer of `GET /decode/{id}`. Waits.
    ///
    /// # Errors
    /// [`IdsError`], with status 404 if it is no id.
    pub fn decode(&self, text: &str) -> Result<Value, IdsError> {
        let owner = self.owner_of_this_process()?;
        owner.runtime().block_on(owner.asking.decode(text))
    }

    /// Appends events to a ledger and gives their ids. Done once, however often it must be sent. Waits.
    ///
    /// # Errors
    /// [`IdsError`].
    pub fn append(&self, ledger: &str, events: &[Value]) -> Result<Vec<String>, IdsError> {
        let owner = self.owner_of_this_process()?;
        owner
            .runtime()
            .block_on(owner.asking.append(ledger, events))
    }

    #[inline]
    fn number_of(&self, piece: &Piece) -> Option<u128> {
        if !self.may_take_of(piece) {
            return None;
        }
        let place = piece.place()?;
        match &piece.ids {
            PieceIds::Numbers(row) => Some(row.first + u128::from(place) * row.step),
            PieceIds::Texts(_) => None,
        }
    }

    fn text_of(&self, piece: &Piece) -> Option<String> {
        if !self.may_take_of(piece) {
            return None;
        }
        let place = usize::try_from(piece.place()?).expect("a place of a list");
        match &piece.ids {
            PieceIds::Texts(texts) => Some(texts[place].clone()),
            PieceIds::Numbers(_) => None,
        }
    }

    #[inline]
    fn may_take_of(&self, piece: &Piece) -> bool {
        !self.options.may_be_forked || piece.is_of(std::process::id())
    }

    #[cold]
    fn advance(&self, kind: Kind, used: Guard<Arc<Piece>>) -> Result<Option<Filled>, IdsError> {
        let used = Guard::into_inner(used);
        let owner = self.owner_of_this_process()?;
        let current = match kind {
            Kind::Numbers => &self.numbers,
            Kind::Texts => &self.texts,
        };
        Ok(owner
            .stock(kind)
            .advance(current, &used, &owner.asking, owner.runtime()))
    }

    /// After a fork another one: locks and connections of the first may be those of threads that were not copied.
    fn owner_of_this_process(&self) -> Result<Arc<Owner>, IdsError> {
        let owner = self.owner.load_full();
        if owner.process == std::process::id() {
            return Ok(owner);
        }
        let mine = Arc::new(Owner::new(&self.urls, &self.format, &self.options)?);
        let found = self.owner.compare_and_swap(&owner, Arc::clone(&mine));
        if Arc::ptr_eq(&found, &owner) {
            // Never dropped: a thread that was not copied may have locked something in it.
            std::mem::forget(owner);
            return Ok(mine);
        }
        // Another thread was quicker.
        Ok(Guard::into_inner(found))
    }

    #[cold]
    fn learn(&self) -> Result<Option<NumberText>, IdsError> {
        let owner = self.owner_of_this_process()?;
        let _alone = owner
            .learning
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match self.number_text.get() {
            Some(known) => Ok(*known),
            None => self.learn_from(owner.runtime().block_on(owner.asking.describe())),
        }
    }

    fn learn_from(
        &self,
        described: Result<FormatInfo, IdsError>,
    ) -> Result<Option<NumberText>, IdsError> {
        let number_text = match described {
            Ok(format) => NumberText::of(&format, &self.options),
            Err(error) if error.is_transient() || error.status().is_none() => return Err(error),
            // Who may mint need not be allowed to read formats; what else is wrong the request for texts says.
            Err(_) => None,
        };
        Ok(*self.number_text.get_or_init(|| number_text))
    }
}

fn wait(filled: Filled) -> Result<(), IdsError> {
    filled.blocking_recv().unwrap_or_else(|_| Err(ended()))
}

fn ended() -> IdsError {
    IdsError::NotStarted(Arc::new(std::io::Error::other("it has ended")))
}

#[cfg(test)]
mod tests {
    use std::process;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::client::prefetching::addresses::tests::service;
    use crate::id::Progression;

    fn rows(first: u32, count: u32) -> (&'static str, String) {
        let rows = format!(r#"[{{"first":"{first}","step":"1","count":{count}}}]"#);
        (
            "200 OK",
            format!(r#"{{"format":"f","count":{count},"rows":{rows}}}"#),
        )
    }

    #[test]
    fn a_stock_is_handed_out_once_and_more_is_fetched_from_its_middle_on() {
        let (url, answers) = service(vec![rows(0, 4), rows(100, 4), rows(200, 4)]);
        let ids = Ids::new(
            &[url],
            "f",
            IdsOptions {
                prefetch_count: 4,
                ..IdsOptions::default()
            },
        )
        .expect("options");
        let taken: Vec<u128> = (0..12).map(|_| ids.next().expect("an id")).collect();
        assert_eq!(taken, [0, 1, 2, 3, 100, 101, 102, 103, 200, 201, 202, 203]);
        assert!(answers.lock().expect("no panic").len() >= 3);
    }

    #[test]
    fn what_is_too_old_is_not_handed_out() {
        let (url, _) = service(vec![rows(0, 100)]);
        let ids = Ids::new(&[url], "f", IdsOptions::default()).expect("options");
        let row = PieceIds::Numbers(Progression {
            first: 7,
            step: 1,
            count: 9,
        });
        ids.numbers.store(Arc::new(Piece::new(
            row,
            Instant::now(),
            process::id(),
            false,
        )));
        assert_eq!(ids.next().expect("an id"), 0);
    }

    #[test]
    fn an_append_that_must_be_sent_again_has_the_same_key() {
        let unknown = ("504 Gateway Timeout", r#"{"retry_after_ms":0}"#.to_owned());
        let done = (
            "200 OK",
            r#"{"format":"evently","count":1,"ids":["7"]}"#.to_owned(),
        );
        let (url, heard) = service(vec![unknown.clone(), unknown, done]);
        let ids = Ids::new(&[url], "f", IdsOptions::default()).expect("options");
        for _ in 0..2 {
            assert_eq!(
                ids.append("aa77f99c", &[Value::Null]).expect("an answer"),
                ["7"]
            );
        }
        let heard = heard.lock().expect("no panic");
        let key = |request: &String| {
            request
                .lines()
                .find(|line| line.starts_with("idempotency-key: "))
                .map(str::to_owned)
        };
        let keys: Vec<String> = heard
            .iter()
            .map(|request| key(request).expect("a key"))
            .collect();
        assert!(
            keys.len() == 4 && keys[0] == keys[1] && keys[1] == keys[2] && keys[2] != keys[3],
            "{keys:?}"
        );
    }

    /// The next id where stock, connections and piece are those of another process.
    fn next_in_a_copy(may_be_forked: bool) -> u128 {
        let (url, _) = service(vec![rows(1_000, 4)]);
        let options = IdsOptions {
            may_be_forked,
            ..IdsOptions::default()
        };
        let ids = Ids::new(&[url], "f", options).expect("options");
        let other = process::id() + 1;
        let row = PieceIds::Numbers(Progression {
            first: 7,
            step: 1,
            count: 9,
        });
        ids.numbers.store(Arc::new(Piece::new(
            row,
            Instant::now() + Duration::from_secs(600),
            other,
            false,
        )));
        let mut owner = Owner::new(&ids.urls, "f", &ids.options).expect("options");
        owner.process = other;
        ids.owner.store(Arc::new(owner));
        ids.next().expect("an id")
    }

    #[test]
    fn a_process_that_was_copied_has_a_stock_of_its_own_if_it_may_be_copied() {
        assert_eq!(next_in_a_copy(true), 1_000);
        assert_eq!(next_in_a_copy(false), 7);
    }

    #[tokio::test]
    async fn a_task_waits_and_takes() {
        let (url, _) = service(vec![rows(5, 4)]);
        let ids = Ids::new(&[url], "f", IdsOptions::default()).expect("options");
        assert_eq!(ids.next_in_task().await.expect("an id"), 5);
        drop(ids);
    }

    #[test]
    fn options_that_cannot_be_are_refused() {
        let wrong = [
            IdsOptions {
                prefetch_count: 0,
                ..IdsOptions::default()
            },
            IdsOptions {
                prefetch_count: 20_000,
                ..IdsOptions::default()
            },
            IdsOptions {
                prefetch_validity: Duration::ZERO,
                ..IdsOptions::default()
            },
        ];
        for options in wrong {
            assert!(matches!(
                Ids::new(&["127.0.0.1:1"], "f", options),
                Err(IdsError::Options(_))
            ));
        }
        assert!(matches!(
            Ids::new::<&str>(&[], "f", IdsOptions::default()),
            Err(IdsError::Options(_))
        ));
    }
}
