//! The catalog of problems, which are the error responses of the API. Each problem has a status, a
//! cause, a safe remedy, and a tempting remedy that does harm.

/// The texts and the status that all problems of one kind share.
///
/// `GET /problems/{name}` and the table in `docs/ERRORS.md` are generated from these values.
#[derive(Debug)]
pub struct Page {
    /// The last part of the problem's `type`.
    pub name: &'static str,
    /// The HTTP status of the response.
    pub status: u16,
    /// The `title` of the problem.
    pub title: &'static str,
    /// The possible causes of the problem.
    pub cause: &'static str,
    /// A remedy that does no harm.
    pub safe_action: &'static str,
    /// A tempting remedy that does harm.
    pub dangerous_action: &'static str,
}

macro_rules! problems {
    ($(
        $kind:ident = $status:literal $name:literal: $title:literal,
        cause: $cause:literal,
        safe_action: $safe_action:literal,
        dangerous_action: $dangerous_action:literal;
    )+) => {
        /// One kind of problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Slug {
            $(#[doc = concat!(stringify!($status), ": ", $title, ".")] $kind,)+
        }

        impl Slug {
            /// Every kind, in the order of the catalog.
            pub const ALL: [Self; PAGES.len()] = [$(Self::$kind),+];
        }

        /// The pages of [`Slug::ALL`].
        const PAGES: &[Page] = &[$(Page {
            name: $name,
            status: $status,
            title: $title,
            cause: $cause,
            safe_action: $safe_action,
            dangerous_action: $dangerous_action,
        }),+];
    };
}

impl Slug {
    /// Returns the kind of problem with this name, which is also the last part of a path
    /// `/problems/{name}`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|slug| slug.as_str() == name)
    }

    /// Returns the name, such as `clock-behind`.
    pub fn as_str(self) -> &'static str {
        self.page().name
    }

    /// Returns the catalog page of this kind.
    pub fn page(self) -> &'static Page {
        &PAGES[self as usize]
    }
}

// Sorted by status.
problems! {
    MalformedRequest = 400 "malformed-request": "The request cannot be read",
        cause: "The body, the address or the header Host violates HTTP or JSON: a syntax error, a key given \
            twice, nesting deeper than 64, bytes after the end, text that is not UTF-8.",
        safe_action: "Correct the request; `detail` says where it is invalid. Nothing was minted or written.",
        dangerous_action: "Retrying it unchanged: it fails the same way every time.";
    IdempotencyKeyRequired = 400 "idempotency-key-required": "An Idempotency-Key is required",
        cause: "An append or a request for a number has no header Idempotency-Key, so after a lost response a retry \
            would look like a second event.",
        safe_action: "Send 1 to 255 visible ASCII characters, a new value for each event or number and the same value \
            for each retry.",
        dangerous_action: "Using one fixed key for everything, or a new key for a retry: the first loses events, the \
            second appends them twice.";
    Unauthorized = 401 "unauthorized": "A valid token or certificate is required",
        cause: "The request has no token and its connection no client certificate, or one that is unknown, expired or \
            revoked.",
        safe_action: "Send `Authorization: Bearer <token>`, or present a certificate of http.tls.client_ca. If it was \
            rotated, use the new one; both work while they overlap.",
        dangerous_action: "Running without tokens and certificates to avoid the error: anyone who reaches the port \
            can then mint and append.";
    Forbidden = 403 "forbidden": "The token or certificate does not cover this",
        cause: "The token or certificate is valid but lacks the scope of this route (mint, ledger, decode, metrics, \
            import or number), is confined to other formats, ledgers or series, or no name of the certificate is \
            listed.",
        safe_action: "Use one that covers it, or change its entry in the file of http.tokens, or \
            http.tls.client_scopes, and reload it (SIGHUP).",
        dangerous_action: "Giving one token every scope: a leaked dashboard token could then append to ledgers.";
    CrossSite = 403 "cross-site": "A page of another site sent this",
        cause: "Sec-Fetch-Site or Origin says that a page of another site sent this request, and the request would \
            change something.",
        safe_action: "Name the page's origin in http.cors_origins if it is yours. Behind a proxy that changes Host, \
            name the public host in http.hosts.",
        dangerous_action: "http.cors_origins = [\"*\"]: any page opened in your network could then mint.";
    NotFound = 404 "not-found": "There is nothing here",
        cause: "No route has this path. Often a trailing slash, a wrong prefix in a proxy, or a character that needed \
            percent-encoding.",
        safe_action: "Compare with GET / or /openapi.yaml.",
        dangerous_action: "None.";
    UnknownFormat = 404 "unknown-format": "No such format",
        cause: "The format is misspelled, or not enabled on this node.",
        safe_action: "GET /formats?detail=brief lists what this node has. After a roll-out compare the configuration of all nodes.",
        dangerous_action: "Redefining the missing format from memory: a different layout under an old name gives ids \
            that decode wrongly or clash.";
    NoFormatMatches = 404 "no-format-matches": "No format reads this id",
        cause: "Decoding is strict: every format rejected the text. `rejected` holds the reason of each, and \
            `did_you_mean` similar ids.",
        safe_action: "Look for a cut or changed character, a changed case, or a prefix added by another system.",
        dangerous_action: "Guessing: changing characters until something decodes finds an id, but rarely the intended \
            one.";
    UnknownLedger = 404 "unknown-ledger": "No such ledger",
        cause: "The ledger number is wrong, or the ledger was never created in this store.",
        safe_action: "GET /ledgers lists them. If an existing ledger is missing, stop writers and check which store \
            this node has opened.",
        dangerous_action: "Creating it again: this starts a second chain, which can never be joined with the first.";
    MethodNotAllowed = 405 "method-not-allowed": "The method is not allowed here",
        cause: "The path exists, the method does not apply to it. Minting is POST only: an answer to GET might be \
            cached, and a cached id is a duplicate.",
        safe_action: "Use a method named by the header Allow.",
        dangerous_action: "Having a proxy turn GET into POST: caches and prefetchers in front of it may replay the \
            answer.";
    NotAcceptable = 406 "not-acceptable": "None of these representations is available",
        cause: "The Accept header rules out every media type this route can answer with.",
        safe_action: "Ask for one of `accepts`, or leave the header out.",
        dangerous_action: "None.";
    RequestTimeout = 408 "request-timeout": "The request body came too slowly",
        cause: "The body was not complete within http.body_timeout. A slow link, a stalled client, or a proxy that \
            forwards headers before the body.",
        safe_action: "Send it again on a new connection, with fewer documents if they are large. Nothing was minted or \
            written.",
        dangerous_action: "Raising the timeout to minutes: slow senders can then hold every connection.";
    HeadMoved = 409 "head-moved": "The head of the ledger moved",
        cause: "Another writer appended first: expected_previous is no longer the head. `head` carries the current \
            one.",
        safe_action: "Read the newer events, decide if yours is still right, and send it with the new head and the \
            same key.",
        dangerous_action: "Omitting expected_previous to avoid the error: the event is then appended after events \
            that nobody has read.";
    LedgerExists = 409 "ledger-exists": "The ledger exists already",
        cause: "A ledger of this id was created before: from the same first event, or from another one whose checksum \
            is the same.",
        safe_action: "GET /ledgers/{ledger} shows it. If its genesis is yours, use it; otherwise change the first \
            event.",
        dangerous_action: "Deleting the stored ledger to create it again: ids already given out would be given out a \
            second time.";
    LedgerImporting = 409 "ledger-importing": "The ledger is being imported",
        cause: "This ledger is being imported in parts (`idmint ledger import`), and the last part is missing. A new \
            event would come before older ones, which could then not be imported.",
        safe_action: "Wait for the import. If it was interrupted, run the same command again to continue. GET \
            /ledgers/{ledger} has `importing` until the last part arrives.",
        dangerous_action: "Sending your own event with ?import=last: it ends the import where it stands, and the rest \
            of the chain can never be added.";
    SeriesBegun = 409 "series-begun": "The series has begun already",
        cause: "This series has already begun, with another number or under another key. No number was given.",
        safe_action: "GET /numbers/{series} shows its numbers. To start at a stated number, begin a series with \
            another name. A wrong first number can be replaced while it is the only one (instead_of).",
        dangerous_action: "Taking numbers and making them void to advance the series: each of them remains for ever.";
    SeriesClosed = 409 "series-closed": "The series is closed",
        cause: "This series was closed (`idmint numbers close`), for example because its year is over. No number was \
            given. Keys that have numbers still get them.",
        safe_action: "Correct the name of the series, or begin a new series, such as the one of the new year.",
        dangerous_action: "Using a number beyond the last one without the service: the closed series was reported \
            as complete.";
    AlreadyVoid = 409 "already-void": "The number is void for another reason",
        cause: "A number is made void only once, and keeps its reason and time.",
        safe_action: "GET /numbers/{series} shows why it is void. If the reason means the same, do nothing.",
        dangerous_action: "Making the next number void instead: a number that is on an invoice would be void.";
    PayloadTooLarge = 413 "payload-too-large": "The body is too large",
        cause: "The body is longer than the `limit` of this route. Compressed bodies are not \
            unpacked.",
        safe_action: "Send it in parts; batches may be split at any point.",
        dangerous_action: "Raising the limit: every caller may then use that much memory.";
    UriTooLong = 414 "uri-too-long": "The address is too long",
        cause: "Path and query are longer than 8192 bytes.",
        safe_action: "Send the ids in the body of POST /decode instead.",
        dangerous_action: "None.";
    UnsupportedMediaType = 415 "unsupported-media-type": "The body is of the wrong media type",
        cause: "The Content-Type is missing or not in `accepts`, or the body is compressed. `curl -d` says \
            application/x-www-form-urlencoded unless told otherwise.",
        safe_action: "Set Content-Type to the type of the body, and send it uncompressed.",
        dangerous_action: "None.";
    UnknownHost = 421 "unknown-host": "The host is not one of this service",
        cause: "The request names a host that is neither localhost, an IP address, the name of the machine nor in \
            http.hosts. A foreign page can make its own name resolve to this address.",
        safe_action: "Name the host in http.hosts if callers should use it, or call by address.",
        dangerous_action: "http.hosts = [\"*\"] without a proxy that checks hosts: a foreign page could then read \
            answers.";
    InvalidParameter = 422 "invalid-parameter": "A parameter is invalid",
        cause: "A value is out of range, unknown, given twice or not allowed together with another; `detail` names it \
            and the bound.",
        safe_action: "Correct the value; `example` is a request that works.",
        dangerous_action: "None.";
    InvalidEvent = 422 "invalid-event": "The event is invalid",
        cause: "The event lacks a field, has one of the wrong type, or a time at or before the head or more than 5 s \
            ahead of the clock.",
        safe_action: "Correct the event. On import send events in the order of their times.",
        dangerous_action: "Changing the time of an event to make it valid: the ledger then records something false.";
    InvalidReport = 422 "invalid-report": "The conjunction report is invalid",
        cause: "TCA or an object number is missing, malformed or out of range, or the message already names another \
            conjunction id.",
        safe_action: "Correct the message; `detail` names the line and the field. If a message names another id, find \
            out which system assigned it.",
        dangerous_action: "Removing the id from the message: two systems then have two ids for one conjunction.";
    IdempotencyConflict = 422 "idempotency-conflict": "The key was used for another event or number",
        cause: "This Idempotency-Key was used before, on this ledger or series, for different content.",
        safe_action: "If this is a new event, use a new key. If it is a retry, send exactly the first request.",
        dangerous_action: "Using a new key for a retry: if the first attempt was written, the event is stored twice.";
    SeriesEnded = 422 "series-ended": "The series does not have enough numbers left",
        cause: "Its numbers would go beyond `max` of its rule (`numbers.<name>.max`). None was given.",
        safe_action: "Begin another series, such as that of the next year, or raise max and start the service again.",
        dangerous_action: "Continuing to count in the application: other callers would count from the same number.";
    RateLimited = 429 "rate-limited": "This caller exceeded its rate limit",
        cause: "This caller (a token, a certificate name, or an address) sent more requests a second than http.rate \
            allows. Other callers are not affected.",
        safe_action: "Wait for Retry-After, and ask for larger batches: one request may mint many ids.",
        dangerous_action: "Spreading the load over more tokens: the limit protects the other callers.";
    InternalError = 500 "internal-error": "A fault in the service",
        cause: "A bug made this request fail. The log has the cause under the request id.",
        safe_action: "Report it with the request id. Minting again is safe. For an append, retry with the same \
            Idempotency-Key.",
        dangerous_action: "Retrying an append without its key: the first attempt may have been written.";
    UnknownTransferCoding = 501 "unknown-transfer-coding": "The transfer coding is not supported",
        cause: "Transfer-Encoding names another coding before chunked, such as gzip. Often a proxy compresses bodies.",
        safe_action: "Send the body uncompressed: with Content-Length, or with `Transfer-Encoding: chunked` alone. \
            Nothing was minted or written.",
        dangerous_action: "Letting a proxy drop the header and forward the encoded body: its bytes are then misread.";
    SequenceExhausted = 503 "sequence-exhausted": "All ids of the current time are taken",
        cause: "The request needs more ids than the format has left within mint.wait_max.",
        safe_action: "Wait for Retry-After. If it lasts, use more lanes, more nodes, or a format with a longer \
            sequence; GET /formats/{format} shows the limits.",
        dangerous_action: "Giving two nodes the same worker number for more throughput: that mints duplicates.";
    ClockBehind = 503 "clock-behind": "The clock is behind ids already minted",
        cause: "At the start, time more than clock.max_ahead ahead of the clock is already reserved: the clock went back, or was \
            ahead in an earlier run. Or the clock is more than clock.skew_max behind the fleet.",
        safe_action: "Check the clock (chronyc tracking). If it is right, wait: minting begins once it has caught up. Ledgers and conjunctions are served meanwhile. While the clock is more than an hour behind the fleet, appends are refused.",
        dangerous_action: "Deleting or lowering the horizon, or restoring an old copy of it: the reserved ids would be \
            minted a second time.";
    ClockJumped = 503 "clock-jumped": "The clock cannot be trusted",
        cause: "The clock is more than clock.skew_max ahead of the fleet, or is before the date of this build.",
        safe_action: "Correct the clock (chronyc tracking, chronyc makestep). The node becomes ready by itself when it \
            agrees again.",
        dangerous_action: "Confirming a jump without checking it: ids get times in the future, and after the \
            correction minting waits that long.";
    HorizonReached = 503 "horizon-reached": "Not ready to mint yet",
        cause: "No time is reserved yet, because the store took over two seconds, or refuses. Or this is a first \
                start, or one with --floor, and the format's next tick has not begun. Or, in a fleet, the slot was \
                used further ahead than this node can reserve.",
        safe_action: "Wait for Retry-After. If it lasts, check the disk and latency of the store, and \
            idmint_horizon_extensions_total.",
        dangerous_action: "Giving the node an empty data directory: it then does not know which ids exist.";
    NoWorkerSlot = 503 "no-worker-slot": "This node holds no worker slot",
        cause: "All slots are held or may still be in use, or this node lost its own, or its etcd was restored from a \
            backup; `detail` has the reason. The node keeps trying.",
        safe_action: "Send requests to other nodes. If it lasts, compare the number of nodes with worker.slots, and \
            look for crash loops. After a restore of etcd, run idmint fleet fence-restore.",
        dangerous_action: "Setting a slot by hand that another node may hold: both would mint the same ids.";
    CoordinatorUnavailable = 503 "coordinator-unavailable": "The coordinator does not answer",
        cause: "The coordinator (etcd) has no quorum, cannot be reached, refuses this node, or was restored from a backup. \
            The detail says which.",
        safe_action: "Restore the quorum (etcdctl endpoint status), correct the credentials, or after a restore run \
            `idmint fleet fence-restore`. Nodes recover by themselves within seconds.",
        dangerous_action: "Starting an empty coordinator or restoring a backup without the restore fence: slots and \
            ledgers go back in time, and ids repeat.";
    StorageUnavailable = 503 "storage-unavailable": "The store cannot be written",
        cause: "The disk, or the etcd of a fleet, is full, read-only or failing. The detail says which. Nothing of this \
            request was written, except possibly some conjunctions. If only room is missing, reads and known keys are \
            answered.",
        safe_action: "Free space (of etcd: compact, defragment, disarm its alarm) or replace the disk, then restart if \
            the service has stopped. Minting continues while time is reserved.",
        dangerous_action: "Deleting files in the data directory to gain space: the horizon is what keeps ids from \
            repeating.";
    NumbersHeld = 503 "numbers-held": "The series waits to be resumed after a restore",
        cause: "The service was started on restored data, so numbers that were given after the backup may be missing. \
            Giving the next stored number could put one number on two invoices.",
        safe_action: "Find the highest number of the series in your own records, and run `idmint numbers resume SERIES \
            --from N` with that number plus one. Numbers in between become void.",
        dangerous_action: "Resuming at a lower number than the highest one in use: numbers would be given twice.";
    Overloaded = 503 "overloaded": "Overloaded",
        cause: "A limit is reached: all requests, long requests, memory, or this peer's share of it; `reason` says \
            which. Nothing was minted or appended, except possibly some conjunctions.",
        safe_action: "Wait for Retry-After with some jitter, ask for larger batches, or add a node.",
        dangerous_action: "Retrying at once and in parallel: this keeps the service overloaded.";
    Draining = 503 "draining": "This node is shutting down",
        cause: "The node was asked to stop. It accepts requests for http.drain_delay, and then finishes them.",
        safe_action: "Send to another node; the load balancer should do so already, because /health/ready returns 503.",
        dangerous_action: "Killing it to save time: accepted requests then get no response.";
    EpochEnded = 503 "epoch-ended": "The format has ended or not begun",
        cause: "The time field of the format is full: no later id exists. Waiting does not help, so there is no \
            Retry-After. With the `reason` `before_epoch`, the clock is before the epoch of the format.",
        safe_action: "Move callers to a new format with a wider time field or a later epoch, under a new name. GET \
            /formats/{format} shows the end date.",
        dangerous_action: "Changing the epoch under the same name: new ids would repeat old ones.";
    OutcomeUnknown = 504 "outcome-unknown": "It is unknown whether this was written",
        cause: "The store did not answer in time. The append may or may not have happened.",
        safe_action: "Retry with the same Idempotency-Key: it is written once, and the response has its id.",
        dangerous_action: "Retrying with a new key, which may append twice, or reporting a failure, which may be \
            false.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_listed_once_and_found_by_its_name() {
        for (place, slug) in Slug::ALL.into_iter().enumerate() {
            assert_eq!(slug as usize, place);
            assert_eq!(Slug::named(slug.as_str()), Some(slug));
        }
        assert_eq!(Slug::named("no-such-problem"), None);
    }

    #[test]
    fn every_page_is_complete() {
        for page in Slug::ALL.map(Slug::page) {
            assert!((400..=599).contains(&page.status), "{}", page.name);
            assert!(
                page.name
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b == b'-'),
                "{}",
                page.name
            );
            assert!(!page.title.ends_with('.'), "{}", page.name);
            for text in [page.cause, page.safe_action, page.dangerous_action] {
                assert!(
                    text.ends_with('.') && !text.contains("  "),
                    "{}: {text}",
                    page.name
                );
            }
        }
    }
}
