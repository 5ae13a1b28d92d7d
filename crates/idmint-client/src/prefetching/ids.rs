//! Ids of one format, mostly served from a prefetched stock.

use std::fmt;
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, Guard};
use rand::TryRng;
use rand::rngs::SysRng;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::asking::Kind;
use super::error::{IdsError, ended};
use super::number_text::NumberText;
use super::options::IdsOptions;
use super::owner::Owner;
use super::piece::{Piece, PieceIds};
use super::stock::Filled;
use idmint_wire::FormatInfo;

/// Ids of one format, mostly served from a prefetched stock that is refilled before it is empty.
///
/// Threads may share one `Ids`. An id that is older than [`IdsOptions::prefetch_validity`] is never
/// returned. Ids that are still unused when `Ids` is dropped are lost and remain gaps.
///
/// Give several addresses to [`Ids::append`] only if they belong to one fleet, because other nodes
/// share no ledgers.
///
/// Create one `Ids` per process, and see [`IdsOptions::may_be_forked`]. If a machine or container
/// is cloned while it runs, create the `Ids` after the clone. The process cannot notice the clone,
/// so both copies would return the same prefetched ids.
///
/// ```no_run
/// use idmint_client::{Ids, IdsOptions};
///
/// let urls = ["http://10.0.0.1:8080", "http://10.0.0.2:8080"];
/// let ids = Ids::new(&urls, "snowflake", IdsOptions { token: Some("…".to_owned()), ..IdsOptions::default() })?;
/// let id: u128 = ids.next()?;
/// let text: String = ids.next_text()?;                        // of any format
/// let thousand: Vec<String> = ids.mint(1_000)?;
/// let event = serde_json::json!({ "event": "Paid", "entities": {} });
/// let appended: Vec<String> = ids.append("aa77f99c", &[event])?;
/// # Ok::<(), idmint_client::IdsError>(())
/// ```
pub struct Ids {
    urls: Vec<String>,
    format: String,
    options: IdsOptions,
    numbers: ArcSwap<Piece>,
    texts: ArcSwap<Piece>,
    /// The way to write an id of this format as text. Empty until the service has described the
    /// format. Contains `None` if only the service can write the texts.
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
    /// Creates a source of ids of one format, from the service at these addresses. After an error,
    /// a request is sent to another address. This function sends no request.
    ///
    /// # Errors
    /// Returns [`IdsError`] if the options or addresses are invalid, or the refill thread cannot be
    /// started.
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

    /// Returns the next id. Blocks only while the stock is empty. In an async task, call
    /// [`Ids::next_in_task`] instead.
    ///
    /// # Errors
    /// Returns [`IdsError`] if the stock is empty and no address returns ids in time.
    #[inline]
    pub fn next(&self) -> Result<u128, IdsError> {
        self.take(Kind::Numbers, None, Ids::number_of)
    }

    /// Returns the next id as a text. Blocks only while the stock is empty. In an async task, call
    /// [`Ids::next_text_in_task`] instead.
    ///
    /// # Errors
    /// Returns the errors of [`Ids::next`].
    pub fn next_text(&self) -> Result<String, IdsError> {
        let (number_text, deadline) = match self.number_text.get() {
            Some(known) => (*known, None),
            None => {
                let deadline = self.deadline();
                (self.learn(deadline)?, Some(deadline))
            }
        };
        match number_text {
            Some(number_text) => {
                let number = self.take(Kind::Numbers, deadline, Ids::number_of)?;
                Ok(number_text.text_of(number))
            }
            None => self.take(Kind::Texts, deadline, Ids::text_of),
        }
    }

    /// Returns the next id. Yields to other tasks while the stock is empty.
    ///
    /// # Errors
    /// Returns the errors of [`Ids::next`].
    pub async fn next_in_task(&self) -> Result<u128, IdsError> {
        self.take_in_task(Kind::Numbers, None, Ids::number_of).await
    }

    /// Returns the next id as a text. Yields to other tasks while the stock is empty.
    ///
    /// # Errors
    /// Returns the errors of [`Ids::next`].
    pub async fn next_text_in_task(&self) -> Result<String, IdsError> {
        let (number_text, deadline) = match self.number_text.get() {
            Some(known) => (*known, None),
            None => {
                let deadline = self.deadline();
                let owner = self.owner_of_this_process()?;
                let asking = Arc::clone(&owner.asking);
                let described = async move { timeout_at(deadline, asking.describe()).await };
                let described = owner.runtime().spawn(described).await;
                let described = described.unwrap_or_else(|_| Ok(Err(ended())));
                let number_text = self.learn_from(described.unwrap_or(Err(IdsError::Late)))?;
                (number_text, Some(deadline))
            }
        };
        match number_text {
            Some(number_text) => {
                let number = self.take_in_task(Kind::Numbers, deadline, Ids::number_of);
                Ok(number_text.text_of(number.await?))
            }
            None => self.take_in_task(Kind::Texts, deadline, Ids::text_of).await,
        }
    }

    /// Mints `count` ids as texts: all of them or none. Blocks until the service responds.
    ///
    /// A retry mints other ids, so no id is returned twice.
    ///
    /// # Errors
    /// Returns [`IdsError`] if the request fails.
    pub fn mint(&self, count: u32) -> Result<Vec<String>, IdsError> {
        let owner = self.owner_of_this_process()?;
        owner.runtime().block_on(owner.asking.mint(count))
    }

    /// Returns the response of `GET /decode/{id}`, which lists the possible readings of the text.
    /// Blocks until the service responds.
    ///
    /// # Errors
    /// Returns [`IdsError`] if the request fails. The status is 404 if the text is not an id.
    pub fn decode(&self, text: &str) -> Result<Value, IdsError> {
        let owner = self.owner_of_this_process()?;
        owner.runtime().block_on(owner.asking.decode(text))
    }

    /// Appends events to a ledger and returns their ids. Blocks until the service responds. The
    /// events are appended once, however often the request is retried.
    ///
    /// # Errors
    /// Returns [`IdsError`] if the request fails.
    pub fn append(&self, ledger: &str, events: &[Value]) -> Result<Vec<String>, IdsError> {
        self.append_with_key(ledger, &random_key(), events)
    }

    /// Appends events to a ledger as [`Ids::append`] does, with this idempotency key. All calls with
    /// the same key and events together append once, so a call whose outcome is unknown can be
    /// repeated.
    ///
    /// # Errors
    /// Returns [`IdsError`] if the key is empty or not visible ASCII, or if the request fails.
    pub fn append_with_key(
        &self,
        ledger: &str,
        key: &str,
        events: &[Value],
    ) -> Result<Vec<String>, IdsError> {
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(IdsError::Options(
                "a key must be one or more visible ASCII characters",
            ));
        }
        let owner = self.owner_of_this_process()?;
        owner
            .runtime()
            .block_on(owner.asking.append(ledger, key, events))
    }

    /// Returns the deadline of a call that begins now.
    fn deadline(&self) -> Instant {
        Instant::now() + self.options.timeout
    }

    /// Returns the next id of the stock. Blocks while the stock is empty, until `deadline`. Without
    /// a deadline, blocks for at most the timeout of a call. `id_of` takes an id from a [`Piece`],
    /// or returns `None` if the piece is used up.
    #[inline]
    fn take<T>(
        &self,
        kind: Kind,
        mut deadline: Option<Instant>,
        id_of: fn(&Ids, &Piece) -> Option<T>,
    ) -> Result<T, IdsError> {
        loop {
            let piece = self.pieces(kind).load();
            if let Some(id) = id_of(self, &piece) {
                return Ok(id);
            }
            if let Some(filled) = self.advance(kind, piece)? {
                let deadline = *deadline.get_or_insert_with(|| self.deadline());
                let owner = self.owner_of_this_process()?;
                owner.runtime().block_on(filled_before(deadline, filled))?;
            }
        }
    }

    /// Returns the next id of the stock, as [`Ids::take`] does, but yields to other tasks while the
    /// stock is empty.
    async fn take_in_task<T>(
        &self,
        kind: Kind,
        mut deadline: Option<Instant>,
        id_of: fn(&Ids, &Piece) -> Option<T>,
    ) -> Result<T, IdsError> {
        loop {
            let filled = {
                let piece = self.pieces(kind).load();
                if let Some(id) = id_of(self, &piece) {
                    return Ok(id);
                }
                self.advance(kind, piece)?
            };
            if let Some(filled) = filled {
                let deadline = *deadline.get_or_insert_with(|| self.deadline());
                let owner = self.owner_of_this_process()?;
                // Wait on the runtime of the owner, because the runtime of the caller may have no
                // timer.
                let filled = owner.runtime().spawn(filled_before(deadline, filled));
                filled.await.unwrap_or_else(|_| Err(ended()))?;
            }
        }
    }

    #[inline]
    fn pieces(&self, kind: Kind) -> &ArcSwap<Piece> {
        match kind {
            Kind::Numbers => &self.numbers,
            Kind::Texts => &self.texts,
        }
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
        let (current, stock) = (self.pieces(kind), owner.stock(kind));
        stock.advance(current, &used, &owner.asking, owner.runtime())
    }

    /// Returns the owner of this process's stocks and connections. In a forked child, creates a new
    /// owner, because threads of the parent may have held locks and connections of the previous
    /// owner. These threads do not exist in the child.
    fn owner_of_this_process(&self) -> Result<Arc<Owner>, IdsError> {
        let owner = self.owner.load_full();
        if owner.process == std::process::id() {
            return Ok(owner);
        }
        let mine = Arc::new(Owner::new(&self.urls, &self.format, &self.options)?);
        let found = self.owner.compare_and_swap(&owner, Arc::clone(&mine));
        if Arc::ptr_eq(&found, &owner) {
            // The previous owner is leaked, because dropping it could block on a lock that a thread
            // of the parent process held.
            std::mem::forget(owner);
            return Ok(mine);
        }
        // Another thread of this process has created the owner first. Use the stocks and
        // connections of that owner.
        Ok(Guard::into_inner(found))
    }

    #[cold]
    fn learn(&self, deadline: Instant) -> Result<Option<NumberText>, IdsError> {
        let owner = self.owner_of_this_process()?;
        let learnt = async {
            let _alone = owner.learning.lock().await;
            match self.number_text.get() {
                Some(known) => Ok(*known),
                None => self.learn_from(owner.asking.describe().await),
            }
        };
        let learnt = async { timeout_at(deadline, learnt).await };
        let learnt = owner.runtime().block_on(learnt);
        learnt.unwrap_or(Err(IdsError::Late))
    }

    fn learn_from(
        &self,
        described: Result<FormatInfo, IdsError>,
    ) -> Result<Option<NumberText>, IdsError> {
        let number_text = match described {
            Ok(format) => NumberText::of(&format, &self.options),
            Err(error) if error.is_transient() || error.status().is_none() => return Err(error),
            // The service refused to describe the format, for example because the token only
            // permits minting. The service then writes the ids as texts. If the refusal has another
            // cause, the next request for texts reports it.
            Err(_) => None,
        };
        Ok(*self.number_text.get_or_init(|| number_text))
    }
}

/// Returns a random idempotency key. The random bytes come from the kernel, because a forked child
/// has a copy of the generator of `rand` and would repeat the keys of its parent.
fn random_key() -> String {
    let mut bytes = [0; 16];
    SysRng
        .try_fill_bytes(&mut bytes)
        .expect("the kernel has random numbers");
    format!("{:032x}", u128::from_be_bytes(bytes))
}

/// Waits until the stock was refilled, or fails at the deadline.
async fn filled_before(deadline: Instant, filled: Filled) -> Result<(), IdsError> {
    match timeout_at(deadline, filled).await {
        Ok(filled) => filled.unwrap_or_else(|_| Err(ended())),
        Err(_) => Err(IdsError::Late),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::process;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::prefetching::addresses::tests::service;
    use idmint_core::id::Progression;

    /// Returns options that fetch four ids per request.
    fn by_four() -> IdsOptions {
        IdsOptions {
            prefetch_count: 4,
            prefetch_count_max: 4,
            ..IdsOptions::default()
        }
    }

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
        let ids = Ids::new(&[url], "f", by_four()).expect("options");
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

    #[test]
    fn an_append_is_repeated_with_the_key_of_its_caller() {
        let done = r#"{"format":"evently","count":1,"ids":["7"]}"#.to_owned();
        let (url, heard) = service(vec![("200 OK", done)]);
        let ids = Ids::new(&[url], "f", IdsOptions::default()).expect("options");
        for _ in 0..2 {
            let appended = ids.append_with_key("aa77f99c", "order-1", &[Value::Null]);
            assert_eq!(appended.expect("an answer"), ["7"]);
        }
        for wrong in ["", "two words", "two\r\nlines"] {
            let refused = ids.append_with_key("aa77f99c", wrong, &[Value::Null]);
            assert!(matches!(refused, Err(IdsError::Options(_))), "{wrong:?}");
        }
        let heard = heard.lock().expect("no panic");
        let has_key = |request: &String| request.contains("idempotency-key: order-1\r\n");
        assert!(heard.len() == 2 && heard.iter().all(has_key), "{heard:?}");
    }

    /// Returns the next id of an `Ids` whose prefetched ids and connections belong to another
    /// process, as after a fork.
    fn next_in_a_copy(may_be_forked: bool) -> u128 {
        let (url, _) = service(vec![rows(1_000, 4)]);
        let options = IdsOptions {
            may_be_forked,
            ..by_four()
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

    #[test]
    fn a_row_that_is_too_long_too_short_or_stands_still_is_no_answer() {
        let still = r#"{"format":"f","count":4,"rows":[{"first":"7","step":"0","count":4}]}"#;
        for answer in [rows(0, 5), rows(0, 3), ("200 OK", still.to_owned())] {
            let (url, answers) = service(vec![answer]);
            let ids = Ids::new(&[url], "f", by_four()).expect("options");
            for _ in 0..100 {
                assert!(ids.next().expect_err("no row").is_bad_response());
            }
            assert!(answers.lock().expect("no panic").len() < 20);
        }
    }

    #[test]
    fn a_stock_that_is_refused_a_large_batch_asks_for_a_smaller_one() {
        let busy = (
            "503 Service Unavailable",
            r#"{"retry_after_ms":0}"#.to_owned(),
        );
        let (url, heard) = service(vec![busy, rows(0, 1_024)]);
        let options = IdsOptions {
            prefetch_count: 10_000,
            ..IdsOptions::default()
        };
        let ids = Ids::new(&[url], "f", options).expect("options");
        assert_eq!(ids.next().expect("an id"), 0);
        assert!(heard.lock().expect("no panic")[1].contains("count=1024"));
    }

    #[test]
    fn a_stock_asks_a_busy_address_for_a_smaller_batch_while_another_one_is_down() {
        let busy = (
            "503 Service Unavailable",
            r#"{"retry_after_ms":0}"#.to_owned(),
        );
        let (url, heard) = service(vec![busy, rows(0, 1_024)]);
        let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let down = format!("http://{}", free.expect("a free port"));
        let options = IdsOptions {
            prefetch_count: 10_000,
            ..IdsOptions::default()
        };
        let ids = Ids::new(&[down, url], "f", options).expect("options");
        assert_eq!(ids.next().expect("an id"), 0);
        assert!(heard.lock().expect("no panic")[1].contains("count=1024"));
    }

    /// Starts a slow service. It takes 0.45 s to refuse the description of a format, and 0.45 s to
    /// mint an id.
    fn slow_service() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                std::thread::spawn(move || {
                    let mut head = [0; 4096];
                    let length = stream.read(&mut head).unwrap_or(0);
                    std::thread::sleep(Duration::from_millis(450));
                    let answer = if head[..length].starts_with(b"POST") {
                        let body = r#"{"format":"f","count":1,"ids":["1"]}"#;
                        format!("200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
                    } else {
                        "404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned()
                    };
                    let answer = format!("HTTP/1.1 {answer}");
                    // Ignore an error, because the client may have closed the connection.
                    let _ = stream.write_all(answer.as_bytes());
                });
            }
        });
        url
    }

    fn slowly() -> Ids {
        let options = IdsOptions {
            prefetch_count: 1,
            prefetch_count_max: 1,
            timeout: Duration::from_secs(1),
            ..IdsOptions::default()
        };
        Ids::new(&[slow_service()], "f", options).expect("options")
    }

    fn assert_one_is_late(both: &[Result<String, IdsError>]) {
        let mut errors = both.iter().filter_map(|taken| taken.as_ref().err());
        assert!(errors.any(IdsError::is_transient), "{both:?}");
    }

    #[test]
    fn the_timeout_is_that_of_a_whole_call_though_it_waits_three_times() {
        let ids = slowly();
        let both = std::thread::scope(|scope| {
            let calls = [(); 2].map(|()| scope.spawn(|| ids.next_text()));
            calls.map(|call| call.join().expect("no panic"))
        });
        assert_one_is_late(&both);
    }

    #[tokio::test]
    async fn the_timeout_is_that_of_a_whole_call_of_a_task() {
        let ids = slowly();
        let both = tokio::join!(ids.next_text_in_task(), ids.next_text_in_task());
        assert_one_is_late(&[both.0, both.1]);
    }

    #[tokio::test]
    async fn a_task_waits_and_takes() {
        let (url, _) = service(vec![rows(5, 4)]);
        let ids = Ids::new(&[url], "f", by_four()).expect("options");
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
            IdsOptions {
                prefetch_validity: Duration::MAX,
                ..IdsOptions::default()
            },
            IdsOptions {
                timeout: Duration::MAX,
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
