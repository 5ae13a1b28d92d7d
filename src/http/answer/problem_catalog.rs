//! Every problem this service can name: the status it has, and what an operator should and should not do about it.

use super::slug::{Page, Slug};

impl Slug {
    /// The kind with this name, as in `/problems/{name}`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|slug| slug.page().name == name)
    }

    /// Its name, status and advice.
    pub fn page(self) -> &'static Page {
        match self {
            Self::MalformedRequest => &Page {
                name: "malformed-request",
                status: 400,
                title: "The request cannot be read",
                cause: "The body, the address or the header Host is not what HTTP or JSON allows: a syntax error, a key given \
                    twice, nesting deeper than 64, bytes after the end, text that is not UTF-8.",
                safe_action: "Correct the request; `detail` says where it stops making sense. Nothing was minted or written.",
                dangerous_action: "Retrying it unchanged: it fails the same way every time.",
            },
            Self::IdempotencyKeyRequired => &Page {
                name: "idempotency-key-required",
                status: 400,
                title: "An Idempotency-Key is required",
                cause: "Appending to a ledger, or asking for a number, without the header Idempotency-Key: after a lost answer nobody \
                    could tell a retry from a second event.",
                safe_action: "Send 1 to 255 visible ASCII characters, a fresh value for each event or number and the same one for each retry of it.",
                dangerous_action: "Using one fixed key for everything, or a new key for a retry: the first loses events, the second \
                    appends them twice.",
            },
            Self::Unauthorized => &Page {
                name: "unauthorized",
                status: 401,
                title: "A valid token or certificate is required",
                cause: "The request carries no token and its connection no client certificate, or one that is unknown, has \
                    expired or has been withdrawn.",
                safe_action: "Send `Authorization: Bearer <token>`, or show a certificate of http.tls.client_ca. If it was \
                    rotated, take the new one; both work while they overlap.",
                dangerous_action: "Running without tokens and certificates to make the error go away: anybody who reaches the port can then mint and \
                    append.",
            },
            Self::Forbidden => &Page {
                name: "forbidden",
                status: 403,
                title: "The token or certificate does not cover this",
                cause: "The token or certificate is valid but lacks the scope of this route (mint, ledger, decode, metrics, import or number), is \
                    confined to other formats, ledgers or series, or no name of the certificate is listed.",
                safe_action: "Use one that covers it, or have its entry in the file of http.tokens, or http.tls.client_scopes, \
                    changed and the process told to read it again (SIGHUP).",
                dangerous_action: "Giving one token every scope: a leaked dashboard token could then append to ledgers.",
            },
            Self::CrossSite => &Page {
                name: "cross-site",
                status: 403,
                title: "A page of another site sent this",
                cause: "A browser says, by Sec-Fetch-Site or Origin, that the page it shows is not of this service, and the \
                    request would change something.",
                safe_action: "Name the page's origin in http.cors_origins if it is yours. Behind a proxy that changes Host, name \
                    the public host in http.hosts.",
                dangerous_action: "http.cors_origins = [\"*\"]: every page that somebody of your network opens could then mint.",
            },
            Self::NotFound => &Page {
                name: "not-found",
                status: 404,
                title: "There is nothing here",
                cause: "No route has this path. Often a trailing slash, a wrong prefix in a proxy, or a character that \
                    needed percent-encoding.",
                safe_action: "Compare with GET / or /openapi.yaml.",
                dangerous_action: "None.",
            },
            Self::UnknownFormat => &Page {
                name: "unknown-format",
                status: 404,
                title: "No such format",
                cause: "The format is misspelled, or not enabled on this node.",
                safe_action: "GET /formats lists what this node has. After a roll-out compare the configuration of all nodes.",
                dangerous_action: "Defining the missing format anew from memory: a different layout under an old name gives ids that \
                    read wrongly or clash.",
            },
            Self::NoFormatMatches => &Page {
                name: "no-format-matches",
                status: 404,
                title: "No format reads this id",
                cause: "Decoding is strict: every format rejected the text. `rejected` holds the reason of each, \
                    `did_you_mean` near encodings.",
                safe_action: "Look for a cut or changed character, a changed case, or a prefix added by another system.",
                dangerous_action: "Guessing: correcting characters until something decodes finds an id, but hardly the one that was meant.",
            },
            Self::UnknownLedger => &Page {
                name: "unknown-ledger",
                status: 404,
                title: "No such ledger",
                cause: "The ledger number is wrong, or the ledger was never created in this store.",
                safe_action: "GET /ledgers lists them. If one that existed is missing, stop writers and check which store this \
                    node has opened.",
                dangerous_action: "Creating it again: that starts a second chain beside the first, and the two never join.",
            },
            Self::MethodNotAllowed => &Page {
                name: "method-not-allowed",
                status: 405,
                title: "The method is not allowed here",
                cause: "The path exists, the method does not apply to it. Minting is POST only: an answer to GET might be \
                    cached, and a cached id is a duplicate.",
                safe_action: "Use a method named by the header Allow.",
                dangerous_action: "Having a proxy turn GET into POST: caches and prefetchers in front of it may replay the answer.",
            },
            Self::NotAcceptable => &Page {
                name: "not-acceptable",
                status: 406,
                title: "None of these representations is available",
                cause: "The Accept header rules out every media type this route can answer with.",
                safe_action: "Ask for one of `accepts`, or leave the header out.",
                dangerous_action: "None.",
            },
            Self::RequestTimeout => &Page {
                name: "request-timeout",
                status: 408,
                title: "The request body came too slowly",
                cause: "The body was not complete within http.body_timeout. A slow link, a stalled client, or a proxy that \
                    passes headers on before it has the body.",
                safe_action: "Send again on a new connection; for large documents send fewer at a time. Nothing was minted or \
                    written.",
                dangerous_action: "Raising the timeout to minutes: slow senders can then hold every connection.",
            },
            Self::HeadMoved => &Page {
                name: "head-moved",
                status: 409,
                title: "The head of the ledger moved",
                cause: "Another writer appended first: expected_previous is no longer the head. `head` carries the current \
                    one.",
                safe_action: "Read the events since, decide whether yours still holds, and send it with the new head and the same \
                    key.",
                dangerous_action: "Leaving expected_previous out to get through: the event is then appended behind events nobody has \
                    looked at.",
            },
            Self::LedgerExists => &Page {
                name: "ledger-exists",
                status: 409,
                title: "The ledger exists already",
                cause: "A ledger of this id was created before: from the same first event, or from another one whose checksum is \
                    the same.",
                safe_action: "GET /ledgers/{ledger} shows it. If its genesis is yours, use it; otherwise change the first event.",
                dangerous_action: "Deleting the stored ledger to create it again: ids already given out would be given out a second \
                    time.",
            },
            Self::LedgerImporting => &Page {
                name: "ledger-importing",
                status: 409,
                title: "The ledger is being imported",
                cause: "Somebody brings this ledger from elsewhere, part by part (`idmint ledger import`), and the last part is \
                    not there yet. An event of now would stand before older ones, which could not be imported any more.",
                safe_action: "Wait for the import. If it broke off, run the same command again; it goes on where it was. GET \
                    /ledgers/{ledger} says `importing` as long as more is expected.",
                dangerous_action: "Sending your own event with ?import=last: it ends the import where it stands, and the rest of \
                    the chain can never be added.",
            },
            Self::SeriesBegun => &Page {
                name: "series-begun",
                status: 409,
                title: "The series has begun already",
                cause: "A series begins once, and this one has: with another number, or under another key. Nothing was given.",
                safe_action: "GET /numbers/{series} shows its numbers. To go on at a stated number, begin a series of another name.",
                dangerous_action: "Taking numbers and making them void until the series is where it should be: each is there for ever.",
            },
            Self::AlreadyVoid => &Page {
                name: "already-void",
                status: 409,
                title: "The number is void for another reason",
                cause: "A number is made void once, and keeps the reason and the time of then.",
                safe_action: "GET /numbers/{series} shows why it is void. If that says the same in other words, nothing is to be done.",
                dangerous_action: "Making the next number void instead: a number that is on an invoice would be void.",
            },
            Self::PayloadTooLarge => &Page {
                name: "payload-too-large",
                status: 413,
                title: "The body is too large",
                cause: "The body is longer than this route reads; `limit` says how much that is. Compressed bodies are not unpacked.",
                safe_action: "Send it in parts; batches may be split anywhere.",
                dangerous_action: "None on the caller's side. Raising the limit lets every caller use that much memory at once.",
            },
            Self::UriTooLong => &Page {
                name: "uri-too-long",
                status: 414,
                title: "The address is too long",
                cause: "Path and query are longer than 8192 bytes.",
                safe_action: "Send the ids in the body of POST /decode instead.",
                dangerous_action: "None.",
            },
            Self::UnsupportedMediaType => &Page {
                name: "unsupported-media-type",
                status: 415,
                title: "The body is of the wrong media type",
                cause: "The Content-Type is missing or none of `accepts`, or the body is compressed. `curl -d` says \
                    application/x-www-form-urlencoded unless told otherwise.",
                safe_action: "Set Content-Type to what the body is, and send it uncompressed.",
                dangerous_action: "None.",
            },
            Self::UnknownHost => &Page {
                name: "unknown-host",
                status: 421,
                title: "The host is none of this service",
                cause: "The request names a host that is neither localhost, an IP address, the name of the machine nor in \
                    http.hosts. A foreign page can have its own name lead here.",
                safe_action: "Name the host in http.hosts if callers should use it, or call by address.",
                dangerous_action: "http.hosts = [\"*\"] without a proxy that checks hosts: a foreign page could then read answers.",
            },
            Self::InvalidParameter => &Page {
                name: "invalid-parameter",
                status: 422,
                title: "A parameter is invalid",
                cause: "A value is out of range, unknown, given twice or not allowed together with another; `detail` names \
                    it and the bound.",
                safe_action: "Correct the value; `example` is a request that works.",
                dangerous_action: "None.",
            },
            Self::InvalidEvent => &Page {
                name: "invalid-event",
                status: 422,
                title: "The event is invalid",
                cause: "The event lacks a field, has one of the wrong type, or a time at or before the head or more than 5 s \
                    ahead of the clock.",
                safe_action: "Correct the event. On import send events in the order of their times.",
                dangerous_action: "Changing the time of an event to get it in: the ledger then states something that did not happen.",
            },
            Self::InvalidReport => &Page {
                name: "invalid-report",
                status: 422,
                title: "The conjunction report is invalid",
                cause: "TCA or an object number is missing, malformed or out of range, or the message already names another \
                    conjunction id.",
                safe_action: "Correct the message; `detail` names the line and the field. Of a message that names another id, find out which \
                    system gave it.",
                dangerous_action: "Removing the id found in the message: two systems then know one conjunction under two names.",
            },
            Self::IdempotencyConflict => &Page {
                name: "idempotency-conflict",
                status: 422,
                title: "The key was used for another event or number",
                cause: "This Idempotency-Key was used before, on this ledger or series, for different content.",
                safe_action: "If this is a new event, use a new key. If it was a retry, send exactly what was sent first.",
                dangerous_action: "Making up a new key for a retry: if the first attempt was written, the event is there twice.",
            },
            Self::SeriesEnded => &Page {
                name: "series-ended",
                status: 422,
                title: "The series has not so many numbers any more",
                cause: "Its numbers would go beyond `max` of its rule (`numbers.<name>.max`). None was given.",
                safe_action: "Begin another series, such as that of the next year, or raise max and start the service again.",
                dangerous_action: "Counting on in the application: another caller would count on, too, from the same number.",
            },
            Self::RateLimited => &Page {
                name: "rate-limited",
                status: 429,
                title: "This caller is over its rate",
                cause: "The requests a second that each caller may send (http.rate) are used up: of this token, of this name of a \
                    certificate, or of this address. Other callers are not affected.",
                safe_action: "Wait for Retry-After, and ask for larger batches: one request may mint many ids.",
                dangerous_action: "Spreading the load over more tokens: the limit protects the other callers.",
            },
            Self::InternalError => &Page {
                name: "internal-error",
                status: 500,
                title: "A fault in the service",
                cause: "A bug: the service gave up on this one request. The log holds the cause under the request id.",
                safe_action: "Report it with the request id. Minting again is safe. For an append, retry with the same \
                    Idempotency-Key.",
                dangerous_action: "Retrying an append without its key: the first attempt may have been written.",
            },
            Self::UnknownTransferCoding => &Page {
                name: "unknown-transfer-coding",
                status: 501,
                title: "The transfer coding is not read here",
                cause: "Transfer-Encoding names a coding beside chunked, such as gzip. Often a proxy that compresses what it passes \
                    on.",
                safe_action: "Send the body uncompressed: with Content-Length, or with `Transfer-Encoding: chunked` alone. \
                    Nothing was minted or written.",
                dangerous_action: "Having a proxy drop the header and pass the body on as it is: its bytes are then read as \
                    something they are not.",
            },
            Self::SequenceExhausted => &Page {
                name: "sequence-exhausted",
                status: 503,
                title: "Every id of the moment is taken",
                cause: "More ids were asked for than the format has within mint.wait_max. The time ahead is spoken for.",
                safe_action: "Wait for Retry-After. If it lasts: more lanes, more nodes, or a format with a longer sequence; GET \
                    /formats shows the ceiling.",
                dangerous_action: "Giving two nodes the same worker number for more throughput: that mints duplicates.",
            },
            Self::ClockBehind => &Page {
                name: "clock-behind",
                status: 503,
                title: "The clock is behind the ids already minted",
                cause: "At the start, time up to more than 5 s ahead of the clock is already reserved: the clock went back, \
                    or an earlier run was ahead. Or the clock is behind those of the fleet by more than clock.skew_max.",
                safe_action: "Check the clock (chronyc tracking). If it is right, wait: minting begins by itself when it has \
                    caught up. Ledgers and conjunctions are served meanwhile.",
                dangerous_action: "Deleting or lowering the horizon, or restoring an old copy of it: the reserved ids would be minted a \
                    second time.",
            },
            Self::ClockJumped => &Page {
                name: "clock-jumped",
                status: 503,
                title: "The clock cannot be believed",
                cause: "The clock is ahead of those of the fleet by more than clock.skew_max, or is older than this build.",
                safe_action: "Correct the clock (chronyc tracking, chronyc makestep). The node becomes ready by itself when it \
                    agrees again.",
                dangerous_action: "Confirming a jump that nobody has checked: ids would be minted in the future, and after the \
                    correction minting waits that long.",
            },
            Self::HorizonReached => &Page {
                name: "horizon-reached",
                status: 503,
                title: "No more time is reserved",
                cause: "The next stretch of time is not yet durable: the store has not written it within two seconds, or \
                    refuses; or this is the first start without a record, or above a stated floor, and the format's next \
                    tick has not begun; or, in a fleet, the slot of this node was used further ahead than can be reserved yet.",
                safe_action: "Wait for Retry-After. If it lasts, look at the store: its disk, its latency, \
                    idmint_horizon_extensions_total.",
                dangerous_action: "Pointing the node at an empty data directory: it no longer knows what was minted.",
            },
            Self::NoWorkerSlot => &Page {
                name: "no-worker-slot",
                status: 503,
                title: "This node holds no worker slot",
                cause: "All slots are taken or cooling down, or this node lost its own, or the etcd of its fleet was restored \
                    from a backup: detail says which. It keeps trying.",
                safe_action: "Other nodes go on: send there. If it lasts, compare the number of nodes with worker.slots, and look \
                    for crash loops. After a restore of etcd run idmint fleet fence-restore.",
                dangerous_action: "Setting a slot by hand that another node may hold: both would mint the same ids.",
            },
            Self::CoordinatorUnavailable => &Page {
                name: "coordinator-unavailable",
                status: 503,
                title: "The coordinator does not answer",
                cause: "The coordinator (etcd) has no quorum, cannot be reached, or refuses this node.",
                safe_action: "Restore the quorum (etcdctl endpoint status). Nodes recover by themselves within seconds.",
                dangerous_action: "Starting an empty coordinator or restoring a backup without the restore fence: slots and ledgers go \
                    back in time, and ids repeat.",
            },
            Self::StorageUnavailable => &Page {
                name: "storage-unavailable",
                status: 503,
                title: "The store cannot be written",
                cause: "The disk, or the etcd of a fleet, is full, read-only or failing. Nothing of this request was written.",
                safe_action: "Free space (of etcd: compact, defragment, disarm its alarm) or replace the disk, then restart if the service has stopped. Minting goes on for as long \
                    as time is reserved.",
                dangerous_action: "Deleting files in the data directory to gain space: the horizon is what keeps ids from repeating.",
            },
            Self::Overloaded => &Page {
                name: "overloaded",
                status: 503,
                title: "Too much at once",
                cause: "There is too little room for this request: for all of them, for long ones, for memory, or in this \
                    peer's share of it; reason says which. Nothing was minted or appended.",
                safe_action: "Wait for Retry-After with some jitter, ask for larger batches, or add a node.",
                dangerous_action: "Retrying at once and in parallel: that is what keeps it overloaded.",
            },
            Self::Draining => &Page {
                name: "draining",
                status: 503,
                title: "This node is shutting down",
                cause: "The node was asked to stop. It finishes what it has accepted and takes nothing new.",
                safe_action: "Send to another node; the load balancer should already do so, as /health/ready says 503.",
                dangerous_action: "Killing it to be quicker: accepted requests are then lost without an answer.",
            },
            Self::EpochEnded => &Page {
                name: "epoch-ended",
                status: 503,
                title: "The format has run out of time",
                cause: "The time field of the format is full: no later id exists. Waiting does not help, so there is no \
                    Retry-After.",
                safe_action: "Move callers to a new format with a wider time field or a later epoch, under a new name. GET \
                    /formats shows each end date.",
                dangerous_action: "Moving the epoch under the same name: old and new ids would be the same numbers.",
            },
            Self::OutcomeUnknown => &Page {
                name: "outcome-unknown",
                status: 504,
                title: "It is not known whether this was written",
                cause: "The store did not answer in time. The append may or may not have happened.",
                safe_action: "Retry with the same Idempotency-Key: it is written once, and the answer says which id it has.",
                dangerous_action: "Retrying with a new key, or giving up and telling the user it failed: the first may append twice, \
                    the second may be untrue.",
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_listed_once_and_found_by_its_name() {
        for (place, slug) in Slug::ALL.into_iter().enumerate() {
            assert_eq!(slug as usize, place);
            assert_eq!(Slug::named(slug.page().name), Some(slug));
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
