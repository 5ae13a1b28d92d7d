//! The kinds of problems, as callers tell them apart.

/// One kind of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slug {
    /// 400: the request cannot be read.
    MalformedRequest,
    /// 400: an Idempotency-Key is required.
    IdempotencyKeyRequired,
    /// 401: a valid token is required.
    Unauthorized,
    /// 403: the token does not cover this.
    Forbidden,
    /// 403: a page of another site sent it.
    CrossSite,
    /// 404: there is nothing here.
    NotFound,
    /// 404: no such format.
    UnknownFormat,
    /// 404: no format reads this id.
    NoFormatMatches,
    /// 404: no such ledger.
    UnknownLedger,
    /// 405: the method is not allowed here.
    MethodNotAllowed,
    /// 406: none of these representations is available.
    NotAcceptable,
    /// 408: the request body came too slowly.
    RequestTimeout,
    /// 409: the head of the ledger moved.
    HeadMoved,
    /// 409: the ledger exists already.
    LedgerExists,
    /// 409: the ledger is being imported.
    LedgerImporting,
    /// 409: the series has begun already.
    SeriesBegun,
    /// 409: the number is void for another reason.
    AlreadyVoid,
    /// 413: the body is too large.
    PayloadTooLarge,
    /// 414: the address is too long.
    UriTooLong,
    /// 415: the body is of the wrong media type.
    UnsupportedMediaType,
    /// 421: the host is none of this service.
    UnknownHost,
    /// 422: a parameter is invalid.
    InvalidParameter,
    /// 422: the event is invalid.
    InvalidEvent,
    /// 422: the conjunction report is invalid.
    InvalidReport,
    /// 422: the key was used for another event.
    IdempotencyConflict,
    /// 422: the series has not so many numbers any more.
    SeriesEnded,
    /// 429: this caller is over its rate.
    RateLimited,
    /// 500: a fault in the service.
    InternalError,
    /// 501: the body is coded in a way that is not read.
    UnknownTransferCoding,
    /// 503: every id of the moment is taken.
    SequenceExhausted,
    /// 503: the clock is behind the ids already minted.
    ClockBehind,
    /// 503: the clock cannot be believed.
    ClockJumped,
    /// 503: no more time is reserved.
    HorizonReached,
    /// 503: this node holds no worker slot.
    NoWorkerSlot,
    /// 503: the coordinator does not answer.
    CoordinatorUnavailable,
    /// 503: the store cannot be written.
    StorageUnavailable,
    /// 503: too many requests at once.
    Overloaded,
    /// 503: this node is shutting down.
    Draining,
    /// 503: the format has run out of time.
    EpochEnded,
    /// 504: it is not known whether this was written.
    OutcomeUnknown,
}

impl Slug {
    /// Every kind, in the order of status and declaration.
    // The length is the last variant's place, so that a forgotten row does not compile.
    pub const ALL: [Self; Self::OutcomeUnknown as usize + 1] = [
        Self::MalformedRequest,
        Self::IdempotencyKeyRequired,
        Self::Unauthorized,
        Self::Forbidden,
        Self::CrossSite,
        Self::NotFound,
        Self::UnknownFormat,
        Self::NoFormatMatches,
        Self::UnknownLedger,
        Self::MethodNotAllowed,
        Self::NotAcceptable,
        Self::RequestTimeout,
        Self::HeadMoved,
        Self::LedgerExists,
        Self::LedgerImporting,
        Self::SeriesBegun,
        Self::AlreadyVoid,
        Self::PayloadTooLarge,
        Self::UriTooLong,
        Self::UnsupportedMediaType,
        Self::UnknownHost,
        Self::InvalidParameter,
        Self::InvalidEvent,
        Self::InvalidReport,
        Self::IdempotencyConflict,
        Self::SeriesEnded,
        Self::RateLimited,
        Self::InternalError,
        Self::UnknownTransferCoding,
        Self::SequenceExhausted,
        Self::ClockBehind,
        Self::ClockJumped,
        Self::HorizonReached,
        Self::NoWorkerSlot,
        Self::CoordinatorUnavailable,
        Self::StorageUnavailable,
        Self::Overloaded,
        Self::Draining,
        Self::EpochEnded,
        Self::OutcomeUnknown,
    ];
}

/// Everything known about one kind of problem, for the document and for its page.
#[derive(Debug)]
pub struct Page {
    /// The last part of the problem's address.
    pub name: &'static str,
    /// The HTTP status it is answered with.
    pub status: u16,
    /// What it is, in a few words; the same each time.
    pub title: &'static str,
    /// What leads to it.
    pub cause: &'static str,
    /// What helps, and harms nothing.
    pub safe_action: &'static str,
    /// What looks like help, and harms.
    pub dangerous_action: &'static str,
}
